"""What a stored pod does, in a few words: where, since when, and why it waits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from webhook.run.pod_notes import read_state

Json = dict[str, Any]
NOW = datetime(2026, 3, 1, 12, 5, tzinfo=UTC)
UNSCHEDULED: Json = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/6 nodes are available: 6 Insufficient cpu. preemption: 0/6 nodes are available.",
    "lastTransitionTime": "2026-03-01T12:00:00Z",
}
READY: Json = {"type": "Ready", "status": "True"}
CRASHING: Json = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}


@pytest.mark.parametrize(
    ("node", "status", "text"),
    [
        (
            "",
            {"phase": "Pending", "conditions": [UNSCHEDULED]},
            "Pending for 5m: 0/6 nodes are available: 6 Insufficient cpu",
        ),
        ("", {"phase": "Pending"}, "Pending for 10m: no reason is reported"),
        ("n1", {"phase": "Running", "conditions": [READY]}, "Running on n1"),
        (
            "n1",
            {
                "phase": "Running",
                "containerStatuses": [{"name": "m", "restartCount": 3, "state": CRASHING}],
            },
            "Running on n1, not ready: CrashLoopBackOff: back-off 5m0s",
        ),
        (
            "n1",
            {"phase": "Failed", "reason": "Evicted", "message": "low on memory"},
            "Failed on n1: Evicted: low on memory",
        ),
        ("n1", {}, "phase unknown"),
    ],
)
def test_the_state_has_the_words_of_scheduler_and_kubelet(
    node: str, status: Json, text: str
) -> None:
    """A state that needs somebody has a reason, or that none is reported."""
    metadata = {"name": "p", "uid": "u", "creationTimestamp": "2026-03-01T11:55:00Z"}
    spec = {"nodeName": node, "containers": [{"name": "m"}]}
    assert str(read_state({"metadata": metadata, "spec": spec, "status": status}, NOW)) == text


def test_a_message_of_several_lines_steers_no_terminal() -> None:
    """Anybody may write the status of a pod who may write pods/status."""
    condition = {**UNSCHEDULED, "message": "a\n::error::b\x1b[31m"}
    pod = {
        "metadata": {"name": "p", "uid": "u"},
        "status": {"phase": "Pending", "conditions": [condition]},
    }
    assert str(read_state(pod, None)) == "Pending: a ::error::b\\x1b[31m"
