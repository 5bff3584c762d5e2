"""Which pods come here, by the configuration that sends them."""

from __future__ import annotations

from typing import Any

import pytest

from webhook import names
from webhook.interception import webhooks
from webhook.server.published import Service
from webhook.server.reach import Reach, reach

SERVICE = Service(names.NAMESPACE, names.WEBHOOK)
ML = {"kubernetes.io/metadata.name": "ml"}
RUN = {names.RUN: "r"}
TRAINING = {"training.kubeflow.org/job-name": "train"}


def configuration(*sources: str, **changes: Any) -> dict[str, Any]:
    """The configuration for these sources, with members of its entries changed."""
    return {"webhooks": [entry | changes for entry in webhooks(sources)]}


def reach_of(*sources: str, **changes: Any) -> Reach:
    """Its reach."""
    found = reach(configuration(*sources, **changes), SERVICE)
    assert found
    return found


def test_a_pod_comes_by_its_mark() -> None:
    """Of the sources that are intercepted, and of no other."""
    assert reach_of("fairlead").takes(RUN, ML)
    assert not reach_of("fairlead").takes(TRAINING, ML)
    assert reach_of("fairlead", "kubeflow-training").takes(TRAINING, ML)


def test_a_pod_comes_by_its_namespace() -> None:
    """Where the namespace is placed as a whole."""
    placed = {**ML, names.PLACE: names.PLACE_ALL}
    assert reach_of("fairlead", "namespace").takes({}, placed)
    assert not reach_of("fairlead", "namespace").takes({}, ML)


def test_no_pod_comes_from_where_fairlead_stays_away() -> None:
    """From the namespaces that are excluded."""
    home = {"kubernetes.io/metadata.name": names.NAMESPACE}
    assert not reach_of("fairlead").takes(RUN, home)


def test_matching_labels_count_as_expressions_do() -> None:
    """People write either."""
    only = reach_of("fairlead", objectSelector={"matchLabels": {"team": "a"}})
    assert only.takes({"team": "a"}, ML)
    assert not only.takes(RUN, ML)


def test_no_pod_comes_while_the_entries_have_no_rules() -> None:
    """`fairlead disable` takes them away for a time."""
    assert not reach_of("fairlead", rules=[]).takes(RUN, ML)


def test_entries_without_selectors_take_every_pod() -> None:
    """That is what the API server makes of them."""
    assert reach_of("fairlead", objectSelector=None, namespaceSelector=None).takes({}, {})


@pytest.mark.parametrize("client", [{"url": "https://localhost"}, {}, None])
def test_entries_that_lead_elsewhere_tell_nothing(client: object) -> None:
    """Who is reached by another way cannot know what comes."""
    assert reach(configuration("fairlead", clientConfig=client), SERVICE) is None
    assert reach({}, SERVICE) is None
