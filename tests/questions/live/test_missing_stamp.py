"""Why a pod has no stamp, by what is known of the webhook's configuration."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wording import Wording, mentions
from webhook import names
from webhook.evaluation.sending import NoConfiguration, unsent
from webhook.interception import rules
from webhook.questions.live.missing_stamp import sending_notes, why
from webhook.workloads.object import Object

POD = Object(
    "cluster",
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "research",
            "labels": {names.RUN: "r"},
            "creationTimestamp": "2026-11-22T08:00:00Z",
            "ownerReferences": [{"kind": "Job", "name": "j", "controller": True}],
        },
    },
)
ENTRY: dict[str, Any] = {
    "name": "pods-0",
    "rules": rules(),
    "objectSelector": {"matchExpressions": [{"key": names.RUN, "operator": "Exists"}]},
}


def configuration(
    since: str = "2026-11-01T08:00:00Z", entry: Any = ENTRY, **annotations: str
) -> dict[str, Any]:
    metadata = {"creationTimestamp": since, "annotations": annotations}
    return {"metadata": metadata, "webhooks": [entry]}


@pytest.mark.parametrize(
    ("seen", "first"),
    [
        (None, ""),
        (NoConfiguration(), "fairlead install; "),
        (NoConfiguration("helm upgrade ml CHART", installed=True), "helm upgrade ml CHART; "),
        (configuration("2026-11-22T09:00:00Z"), ""),
        (
            configuration(entry={"namespaceSelector": {"matchLabels": {"place": "all"}}}),
            "label the namespace so that the namespaceSelector ",
        ),
        (
            configuration(entry={"objectSelector": {"matchLabels": {"x": "y"}}}),
            "fairlead install --source NAME",
        ),
        (
            configuration(entry={**ENTRY, "rules": []}, **{names.DISABLED_UNTIL: "soon"}),
            "fairlead webhook enable; ",
        ),
        (configuration(), ""),
    ],
    ids=[
        "unknown",
        "absent",
        "absent of Helm",
        "too late",
        "namespace",
        "labels",
        "disabled",
        "down",
    ],
)
def test_the_most_likely_reason_is_reported_and_what_comes_before_a_new_pod(
    seen: Any, first: str, wording: Wording
) -> None:
    """Without that, a new one would have no stamp either."""
    found = why(POD, {}, seen)
    assert found.cure.startswith(first)
    mentions(found.cure.removeprefix(first), "delete it", "create it again")
    wording(f"{found.reason}\n{found.cure}")


def test_a_pod_that_nothing_made_is_created_again_by_hand(wording: Wording) -> None:
    """Who deletes it and waits for a controller has lost it."""
    metadata = {**POD.metadata, "ownerReferences": []}
    found = why(Object("cluster", {**POD.value, "metadata": metadata}), {}, configuration())
    assert "controller" not in found.cure
    wording(found.cure)


def changed(**fields: Any) -> dict[str, Any]:
    """A configuration whose entry is changed."""
    return configuration(entry={**ENTRY, **fields})


def ruled(**fields: Any) -> dict[str, Any]:
    """A configuration whose entry has a changed rule."""
    return changed(rules=[{**rules()[0], **fields}])


@pytest.mark.parametrize(
    "seen",
    [
        NoConfiguration("flux reconcile helmrelease ml", installed=True),
        changed(rules=[]),
        ruled(operations=["UPDATE"]),
        ruled(resources=["pods/binding"]),
        ruled(scope="Cluster"),
        {**changed(), "webhooks": None},
    ],
)
def test_a_pod_that_no_rule_is_for_is_not_sent(seen: Any, wording: Wording) -> None:
    """Nor is one if there is no configuration at all."""
    found = unsent({names.RUN: "r"}, "research", {}, seen)
    assert found
    wording(f"{found.reason}\n{found.cure}")


def test_a_rule_may_be_for_more_than_the_creation_of_pods() -> None:
    """An asterisk stands for all."""
    every = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    for seen in (configuration(), ruled(**every), ruled(scope="*"), ruled(resources=["*"])):
        assert unsent({names.RUN: "r"}, "research", {}, seen) is None


@pytest.mark.parametrize(
    "seen",
    [
        None,
        changed(matchConditions=[{"name": "mine", "expression": "false"}]),
        changed(failurePolicy="Ignore", clientConfig={"url": "https://example.com"}),
    ],
)
def test_what_a_configuration_leaves_open_is_noted(seen: Any, wording: Wording) -> None:
    """No CEL is evaluated here, and no webhook is called."""
    (note,) = sending_notes(seen)
    wording(note)
    assert unsent({names.RUN: "r"}, "research", {}, seen) is None
    assert sending_notes(configuration()) == sending_notes(NoConfiguration()) == []
