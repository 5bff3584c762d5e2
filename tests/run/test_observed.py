"""What is known of the node that a pod is bound to."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.run.observed import NodeHealth, Observed, OwnedPod

SINCE = "2026-11-21T20:00:00Z"
OFF = NodeHealth("spot-0", uid="uid", ready="Unknown", since=SINCE, shut_down=True)


def pod(node: str = "spot-0", running_since: str = "") -> OwnedPod:
    return OwnedPod(
        "mnist-worker-0",
        "uid",
        "run",
        "worker",
        0,
        0,
        "Running",
        node=node,
        running_since=running_since,
    )


def test_that_a_machine_is_off_is_believed_only_of_a_node_that_was_read_live() -> None:
    """More nodes may be said to be off than are read for one look."""
    heard = Observed(nodes={"spot-0": OFF}).node_health(pod())
    read = Observed(nodes={"spot-0": OFF}, nodes_read=frozenset({"spot-0"})).node_health(pod())
    assert heard is not None
    assert heard.trouble == "NodeNotReady"
    assert read is not None
    assert read.trouble == "NodeShutdown"


def test_unknown_nodes_and_a_missing_view_have_no_facts() -> None:
    """And nothing of a pod that is not bound."""
    assert Observed().node_health(pod()) is None
    assert Observed(nodes={}).node_health(pod()) is None
    assert Observed(nodes={"": OFF}).node_health(pod("")) is None


@pytest.mark.parametrize(
    ("ready", "trouble"), [("False", "NodeNotReady"), ("Unknown", "NodeShutdown"), ("True", "")]
)
def test_a_taint_says_nothing_of_a_kubelet_that_speaks(ready: Any, trouble: str) -> None:
    """False is the kubelet's own word: the machine is on, and so is what runs there."""
    node = OFF._replace(ready=ready)
    found = Observed(nodes={"spot-0": node}, nodes_read=frozenset({"spot-0"})).node_health(pod())
    assert found is not None
    assert found.trouble == trouble


@pytest.mark.parametrize(
    ("fields", "again"),
    [
        ({"created": "2026-11-21T19:00:00Z", "since": "2026-11-21T19:00:30Z"}, ""),
        # Clocks may differ by some seconds.
        ({"created": "2026-11-21T20:00:59Z"}, ""),
        ({"created": "2026-11-21T20:02:00Z"}, "2026-11-21T20:02:00Z"),
        ({"since": "2026-11-21T20:00:01Z"}, "2026-11-21T20:00:01Z"),
        ({"since": "2026-11-21T20:00:01Z", "ready": "False"}, "2026-11-21T20:00:01Z"),
        ({"since": "2026-11-21T20:00:01Z", "ready": "Unknown"}, ""),
        ({"since": "2026-11-21T20:00:01Z", "uid": ""}, ""),
    ],
)
def test_a_node_was_away_if_it_was_made_or_ready_after_the_pod_started(
    fields: Any, again: str
) -> None:
    """Its kubelet was restarted, or registered it again."""
    node = NodeHealth("spot-0", **{"uid": "uid", **fields})
    assert node.ready_again_after(SINCE) == again
    assert node.ready_again_after("") == ""


def test_a_node_that_is_registered_again_is_there() -> None:
    """PodGC takes no pod of a node of that name: whether the pod goes on is its kubelet's word."""
    node = NodeHealth("spot-0", uid="new", created="2026-11-21T20:02:00Z")
    found = Observed(nodes={"spot-0": node}).node_health(pod(running_since=SINCE))
    assert found == node
    assert node.trouble == ""
