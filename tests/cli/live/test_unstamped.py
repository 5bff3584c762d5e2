"""Why a pod has no stamp, by what is known of the webhook's configuration."""

from __future__ import annotations

from typing import Any

import pytest

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
    ("seen", "said", "first"),
    [
        (None, "fairlead doctor tells", ""),
        ({}, "Fairlead is not installed", "fairlead install; then "),
        (configuration("2026-11-22T09:00:00Z"), "created before Fairlead was installed", ""),
        (
            configuration(entry={"namespaceSelector": {"matchLabels": {"place": "all"}}}),
            "no pod of the namespace research is sent",
            "label it as the namespaceSelector of fairlead",
        ),
        (
            configuration(entry={"objectSelector": {"matchLabels": {"x": "y"}}}),
            "pods with its labels are not sent",
            "fairlead install --source NAME",
        ),
        (
            configuration(**{names.DISABLED_UNTIL: "soon"}),
            "is disabled until soon",
            "fairlead enable; then ",
        ),
        (configuration(), "did not answer when it was created", ""),
    ],
)
def test_the_most_likely_reason_is_told_and_what_comes_before_a_new_pod(
    seen: Any, said: str, first: str
) -> None:
    """Without that, a new one would have no stamp either."""
    found = why(POD, {}, seen)
    assert said in found.reason
    assert found.cure.startswith(first)
    assert found.cure.endswith(
        "delete it, for its controller to create it again: a placement cannot be added"
    )
