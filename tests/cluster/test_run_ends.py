"""How runs end, rest and are cleaned away."""

from __future__ import annotations

import json

import pytest

from tests.cluster.rooms import LOOK, Room
from tests.cluster.scenes import play
from tests.eventually import eventually
from webhook import names

pytest_plugins = ["tests.cluster.run_fixtures"]

PAIR = {"master": {}, "worker": {"count": 2}}
ALL = ("master-0", "worker-0", "worker-1")


@pytest.mark.parametrize(
    ("policy", "left"),
    [("Running", {"master-0"}), ("All", set()), ("None", set(ALL))],
)
def test_a_master_that_succeeds_ends_the_run(run_room: Room, policy: str, left: set[str]) -> None:
    """Its success is the run's though workers run, and cleanPodPolicy says what remains."""
    scene = play(run_room, "clean", framework="pytorch", replicas=PAIR, cleanPodPolicy=policy)
    scene.until_running(*ALL)
    scene.ends("master-0", 0)
    status = scene.until_phase("Succeeded")
    assert status["message"] == "master finished"
    assert status["completionTime"]
    assert scene.condition("Succeeded")["status"] == "True"
    scene.until(f"{left} remain", lambda: set(scene.pods()) == left)
    # The Service goes with the Run, not before.
    assert scene.room.get("services", "clean")


def test_a_single_pod_is_a_run(run_room: Room) -> None:
    """Without a framework and without replicas there is one pod, and its end is the run's."""
    scene = play(run_room, "single")
    scene.until_running("master-0")
    labels = scene.pods()["master-0"]["metadata"]["labels"]
    assert labels[names.KIND] == "job"
    scene.ends("master-0", 0)
    scene.until_phase("Succeeded")


def test_a_deadline_fails_the_run(run_room: Room) -> None:
    """activeDeadlineSeconds after its start it is over, and its pods are gone."""
    scene = play(run_room, "late", activeDeadlineSeconds=3)
    scene.until_phase("Failed")
    assert scene.condition("Failed")["reason"] == "DeadlineExceeded"
    scene.until("no pod is left", lambda: not scene.pods())


def test_a_run_is_deleted_when_its_time_to_live_is_over(run_room: Room) -> None:
    """With it goes all that it owns."""
    scene = play(run_room, "brief", ttlSecondsAfterFinished=2, cleanPodPolicy="None")
    scene.until_running("master-0")
    scene.ends("master-0", 0)
    scene.until_gone()


def test_suspension_frees_the_pods_and_keeps_the_counts(run_room: Room) -> None:
    """What had finished stays finished, and no end of a suspended pod counts."""
    scene = play(run_room, "rest", framework="jax", replicas={"worker": {"count": 3}})
    before = scene.until_running("worker-0", "worker-1", "worker-2")
    scene.ends("worker-0", 0)
    scene.ends("worker-1", 1)
    scene.until_replaced("worker-1", before["worker-1"])
    scene.set(suspend=True)
    scene.until_phase("Suspended")
    scene.until("only the finished one is left", lambda: set(scene.pods()) <= {"worker-0"})
    assert scene.condition("Suspended")["status"] == "True"
    assert "startTime" not in scene.status
    counts = scene.role("worker")
    assert (counts["failed"], counts["disruptions"], counts["succeeded"]) == (1, 0, 1)
    scene.set(suspend=False)
    scene.until_running("worker-1", "worker-2")
    scene.until_phase("Running")
    counts = scene.role("worker")
    assert (counts["failed"], counts["disruptions"], counts["succeeded"]) == (1, 0, 1)
    assert scene.condition("Suspended")["status"] == "False"
    scene.ends("worker-1", 0)
    scene.ends("worker-2", 0)
    scene.until_phase("Succeeded")


def test_a_run_that_is_created_suspended_makes_nothing(run_room: Room) -> None:
    """Until it is resumed: as a queue would hold it."""
    scene = play(run_room, "held", suspend=True)
    scene.until_phase("Suspended")
    assert scene.pods() == {}
    scene.set(suspend=False)
    scene.until_running("master-0")


def test_a_deleted_run_takes_everything_with_it(run_room: Room) -> None:
    """Pods, Service and ConfigMap: the garbage collector finds them by their owner."""
    roles = {"launcher": {}, "worker": {"count": 2}}
    scene = play(run_room, "gone", framework="mpi", replicas=roles)
    scene.until_running("launcher-0", "worker-0", "worker-1")
    run_room.delete(names.RUNS, "gone")
    scene.until_gone()

    def left() -> list[str]:
        owned = ("pods", "services", "secrets", "configmaps")
        found = [each["metadata"]["name"] for kind in owned for each in run_room.items(kind)]
        return [name for name in found if name.startswith("gone")]

    eventually("nothing is left", lambda: not left(), explain=left, period=LOOK)


def test_a_run_that_cannot_be_scheduled_says_why(run_room: Room) -> None:
    """In the scheduler's words, summed over its pods."""
    scene = play(
        run_room,
        "nowhere",
        framework="pytorch",
        replicas={
            "master": {},
            "worker": {"count": 2, "environment": {"nodeSelector": {"no": "where"}}},
        },
    )

    def message() -> str:
        return str(scene.condition("Scheduled").get("message", ""))

    scene.until("the status says why", lambda: message().startswith("2 of 3 pods: 0/"))
    assert scene.condition("Scheduled")["reason"] == "Unschedulable"
    assert "node affinity/selector" in message()
    assert scene.status["message"] == message()
    described = run_room.kubectl("describe", "run", "nowhere")
    assert "Unschedulable" in described


def test_kubectl_shows_what_a_person_wants_to_know(run_room: Room) -> None:
    """Phase, framework, replicas, restarts and age; more with -o wide."""
    scene = play(run_room, "seen", framework="pytorch", kind="experiment", replicas=PAIR)
    scene.until_running(*ALL)
    scene.until_phase("Running")
    table = run_room.kubectl("get", "runs").splitlines()
    assert table[0].split() == ["NAME", "PHASE", "FRAMEWORK", "REPLICAS", "RESTARTS", "AGE"]
    assert table[1].split()[:5] == ["seen", "Running", "pytorch", "3/3", "0"]
    wide = run_room.kubectl("get", "runs", "-o", "wide").splitlines()
    assert {"KIND", "DISRUPTIONS", "DURATION", "MESSAGE"} <= set(wide[0].split())
    assert "3 of 3 replicas run" in wide[1]
    assert json.dumps(scene.run()).count("managedFields") <= 1
