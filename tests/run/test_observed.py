"""What is known of the node that a pod is bound to."""

from __future__ import annotations

import pytest

from webhook.run.observed import NodeHealth, Observed, OwnedPod

SINCE = "2026-11-21T20:00:00Z"
OFF = NodeHealth("spot-0", uid="uid", ready="Unknown", since=SINCE, shut_down=True)


def pod(node: str = "spot-0", running_since: str = "") -> OwnedPod:
    """A pod that is bound."""
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
    heard = Observed(nodes={"spot-0": OFF}).health(pod())
    read = Observed(nodes={"spot-0": OFF}, nodes_read=frozenset({"spot-0"})).health(pod())
    assert heard is not None
    assert heard.trouble == "NodeNotReady"
    assert read is not None
    assert read.trouble == "NodeShutdown"


def test_nothing_is_known_of_a_node_that_was_not_heard_of_or_without_a_view() -> None:
    """And nothing of a pod that is not bound."""
    assert Observed().health(pod()) is None
    assert Observed(nodes={}).health(pod()) is None
    assert Observed(nodes={"": OFF}).health(pod("")) is None


@pytest.mark.parametrize(
    ("created", "trouble"),
    [
        ("2026-11-21T19:00:00Z", ""),
        ("2026-11-21T20:00:59Z", ""),
        ("2026-11-21T20:02:00Z", "NodeGone"),
    ],
)
def test_a_pod_that_started_before_its_node_was_made_is_of_an_earlier_one(
    created: str, trouble: str
) -> None:
    """Clouds use names again. Clocks may differ by some seconds."""
    node = NodeHealth("spot-0", uid="new", created=created)
    found = Observed(nodes={"spot-0": node}).health(pod(running_since=SINCE))
    assert found is not None
    assert found.trouble == trouble
