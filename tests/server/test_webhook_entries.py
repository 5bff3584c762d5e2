"""What the API server is told to trust is read from the entries that go to our Service."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from webhook import names
from webhook.interception import webhooks
from webhook.server.webhook_entries import Published, SentPods, Service, published, reach

SERVICE = Service("fairlead-system", "fairlead-webhook")
OURS = Service(names.NAMESPACE, names.WEBHOOK)
ML = {"kubernetes.io/metadata.name": "ml"}
RUN = {names.RUN: "r"}
TRAINING = {"training.kubeflow.org/job-name": "train"}


def test_equal_bundles_are_published_once() -> None:
    bundles = {"a": b"one", "b": b"one", "c": b"two"}
    service = {"namespace": SERVICE.namespace, "name": SERVICE.name}
    entries = [
        {"name": name, "clientConfig": {"service": service, "caBundle": base64.b64encode(bundle)}}
        for name, bundle in bundles.items()
    ]
    assert published({"webhooks": entries}, SERVICE) == (
        Published("caBundle of webhook a", b"one"),
        Published("caBundle of webhook c", b"two"),
    )
    assert SERVICE.host == "fairlead-webhook.fairlead-system.svc"


def configuration(*sources: str, **changes: Any) -> dict[str, Any]:
    """The configuration for these sources, with members of its entries changed."""
    return {"webhooks": [entry | changes for entry in webhooks(sources)]}


def reach_of(*sources: str, **changes: Any) -> SentPods:
    found = reach(configuration(*sources, **changes), OURS)
    assert found
    return found


def test_a_pod_comes_by_its_mark() -> None:
    assert reach_of("fairlead").selects(RUN, ML)
    assert not reach_of("fairlead").selects(TRAINING, ML)
    assert reach_of("fairlead", "kubeflow-training").selects(TRAINING, ML)


def test_a_pod_comes_by_its_namespace() -> None:
    placed = {**ML, names.PLACE: names.PLACE_ALL}
    assert reach_of("fairlead", "namespace").selects({}, placed)
    assert not reach_of("fairlead", "namespace").selects({}, ML)


def test_no_pod_comes_from_where_fairlead_stays_away() -> None:
    home = {"kubernetes.io/metadata.name": names.NAMESPACE}
    assert not reach_of("fairlead").selects(RUN, home)


def test_matching_labels_count_as_expressions_do() -> None:
    """People write either."""
    only = reach_of("fairlead", objectSelector={"matchLabels": {"team": "a"}})
    assert only.selects({"team": "a"}, ML)
    assert not only.selects(RUN, ML)


def test_no_pod_comes_while_the_entries_have_no_rules() -> None:
    """`fairlead webhook disable` takes them away for a time."""
    assert not reach_of("fairlead", rules=[]).selects(RUN, ML)


def test_entries_without_selectors_take_every_pod() -> None:
    """That is what the API server makes of them."""
    assert reach_of("fairlead", objectSelector=None, namespaceSelector=None).selects({}, {})


@pytest.mark.parametrize("client", [{"url": "https://localhost"}, {}, None])
def test_entries_that_lead_elsewhere_tell_nothing(client: object) -> None:
    """Who is reached by another way cannot know what comes."""
    assert reach(configuration("fairlead", clientConfig=client), OURS) is None
    assert reach({}, OURS) is None
