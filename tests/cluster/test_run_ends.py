"""How runs end, rest and are cleaned away."""

from __future__ import annotations

import pytest

from tests.cluster.live_runs import create_run
from tests.cluster.spaces import LOOK, Space
from tests.eventually import eventually
from webhook import names

pytest_plugins = ["tests.cluster.run_fixtures"]

PAIR = {"master": {}, "worker": {"count": 2}}
ALL = ("master-0", "worker-0", "worker-1")


@pytest.mark.parametrize(
    ("policy", "left"),
    [("Running", {"master-0"}), ("All", set()), ("None", set(ALL))],
)
def test_a_master_that_succeeds_ends_the_run(run_space: Space, policy: str, left: set[str]) -> None:
    """Its success is the run's though workers run, and cleanPodPolicy says what remains."""
    live = create_run(run_space, "clean", framework="pytorch", replicas=PAIR, cleanPodPolicy=policy)
    live.until_running(*ALL)
    live.ends("master-0", 0)
    status = live.until_phase("Succeeded")
    assert status["message"] == "master finished"
    assert status["completionTime"]
    assert live.condition("Succeeded")["status"] == "True"
    live.until(f"{left} remain", lambda: set(live.pods()) == left)
    # The Service goes with the Run, not before.
    assert live.space.get("services", "clean")


def test_suspension_frees_the_pods_and_keeps_the_counts(run_space: Space) -> None:
    """What had finished stays finished, and no end of a suspended pod counts."""
    live = create_run(run_space, "rest", framework="jax", replicas={"worker": {"count": 3}})
    before = live.until_running("worker-0", "worker-1", "worker-2")
    live.ends("worker-0", 0)
    live.ends("worker-1", 1)
    live.until_replaced("worker-1", before["worker-1"])
    live.set(suspend=True)
    live.until_phase("Suspended")
    live.until("only the finished one is left", lambda: set(live.pods()) <= {"worker-0"})
    assert live.condition("Suspended")["status"] == "True"
    assert "startTime" not in live.status
    counts = live.role("worker")
    assert (counts["failed"], counts["disruptions"], counts["succeeded"]) == (1, 0, 1)
    live.set(suspend=False)
    live.until_running("worker-1", "worker-2")
    live.until_phase("Running")
    counts = live.role("worker")
    assert (counts["failed"], counts["disruptions"], counts["succeeded"]) == (1, 0, 1)
    assert live.condition("Suspended")["status"] == "False"
    live.ends("worker-1", 0)
    live.ends("worker-2", 0)
    live.until_phase("Succeeded")


def test_a_deleted_run_takes_everything_with_it(run_space: Space) -> None:
    """Pods, Service and ConfigMap: the garbage collector finds them by their owner."""
    roles = {"launcher": {}, "worker": {"count": 2}}
    live = create_run(run_space, "gone", framework="mpi", replicas=roles)
    live.until_running("launcher-0", "worker-0", "worker-1")
    run_space.delete(names.RUNS, "gone")
    live.until_gone()

    def left() -> list[str]:
        owned = ("pods", "services", "secrets", "configmaps")
        found = [each["metadata"]["name"] for kind in owned for each in run_space.items(kind)]
        return [name for name in found if name.startswith("gone")]

    eventually("nothing is left", lambda: not left(), explain=left, period=LOOK)
