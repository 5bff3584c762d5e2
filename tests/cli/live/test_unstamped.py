"""Why a pod has no stamp, by what is known of the webhook's configuration."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wording import Wording, mentions
from webhook import names
from webhook.cli.live.unstamped import why
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
    "objectSelector": {"matchExpressions": [{"key": names.RUN, "operator": "Exists"}]}
}


def configuration(
    since: str = "2026-11-01T08:00:00Z", entry: Any = ENTRY, **annotations: str
) -> dict[str, Any]:
    """A webhook configuration of one entry."""
    metadata = {"creationTimestamp": since, "annotations": annotations}
    return {"metadata": metadata, "webhooks": [entry]}


@pytest.mark.parametrize(
    ("seen", "facts", "first"),
    [
        (None, ["fairlead doctor"], ""),
        ({}, ["not installed"], "fairlead install; "),
        (configuration("2026-11-22T09:00:00Z"), ["created before", "installed"], ""),
        (
            configuration(entry={"namespaceSelector": {"matchLabels": {"place": "all"}}}),
            ["no pod", "namespace research", "sent"],
            "label it as the namespaceSelector ",
        ),
        (
            configuration(entry={"objectSelector": {"matchLabels": {"x": "y"}}}),
            ["labels", "not sent"],
            "fairlead install --source NAME",
        ),
        (
            configuration(**{names.DISABLED_UNTIL: "soon"}),
            ["disabled until soon"],
            "fairlead enable; ",
        ),
        (configuration(), ["not answer", "created"], ""),
    ],
    ids=["unknown", "absent", "too late", "namespace", "labels", "disabled", "down"],
)
def test_the_most_likely_reason_is_told_and_what_comes_before_a_new_pod(
    seen: Any, facts: list[str], first: str, wording: Wording
) -> None:
    """Without that, a new one would have no stamp either."""
    found = why(POD, {}, seen)
    mentions(found.reason, *facts)
    assert found.cure.startswith(first)
    mentions(found.cure.removeprefix(first), "delete it", "create it again")
    wording(f"{found.reason}\n{found.cure}")


def test_a_pod_that_nothing_made_is_created_again_by_hand(wording: Wording) -> None:
    """Who deletes it and waits for a controller has lost it."""
    metadata = {**POD.metadata, "ownerReferences": []}
    found = why(Object("cluster", {**POD.value, "metadata": metadata}), {}, configuration())
    mentions(found.cure, "delete it", "create it again")
    assert "controller" not in found.cure
    wording(found.cure)
