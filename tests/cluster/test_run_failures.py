"""Replicas that go down are started again as their owner asked, and counted for what it was."""

from __future__ import annotations

import json

import pytest

from tests.cluster.rooms import Room
from tests.cluster.scenes import Scene, play

pytest_plugins = ["tests.cluster.run_fixtures"]

PAIR = {"master": {}, "worker": {"count": 2}}
ALL = ("master-0", "worker-0", "worker-1")


@pytest.fixture
def scene(run_room: Room) -> Scene:
    """A master and two workers of PyTorch, all of them running."""
    scene = play(run_room, "pair", framework="pytorch", replicas=PAIR)
    scene.until_running(*ALL)
    return scene


def test_a_worker_that_exits_with_1_is_started_again(scene: Scene) -> None:
    """It is a failure of the program: counted by role, kept as the last, and replaced."""
    before = scene.pods()["worker-1"]
    scene.ends("worker-1", 1, message="loss is NaN")
    scene.until_phase("Restarting")
    after = scene.until_replaced("worker-1", before)
    assert after["spec"]["hostname"] == "pair-worker-1"
    status = scene.until_phase("Running")
    assert (scene.role("worker")["failed"], scene.role("worker")["disruptions"]) == (1, 0)
    assert status["restarts"] == 1
    last = status["lastFailure"]
    assert (last["replica"], last["exitCode"], last["reason"]) == ("pair-worker-1", 1, "Error")
    assert last["message"] == "loss is NaN"
    assert last["node"] == before["spec"]["nodeName"]
    # The others were left alone.
    assert scene.role("worker")["active"] == 2
    wanted = {"Begun", "Running", "ReplicaDown"}
    scene.until("Events say so", lambda: wanted <= {each["reason"] for each in scene.events()})


def test_137_and_out_of_memory_are_distinguished(run_room: Room) -> None:
    """Under ExitCode a SIGKILL from outside is retried; out of memory it would be killed again."""
    roles = {"worker": {"count": 2, "restartPolicy": "ExitCode"}}
    scene = play(run_room, "codes", framework="jax", replicas=roles)
    before = scene.until_running("worker-0", "worker-1")
    scene.ends("worker-0", 137)
    scene.until_replaced("worker-0", before["worker-0"])
    assert scene.status["lastFailure"]["reason"] == "SIGKILL"
    scene.ends("worker-1", 137, "OOMKilled")
    status = scene.until_phase("Failed")
    assert status["lastFailure"]["reason"] == "OOMKilled"
    assert scene.condition("Failed")["reason"] == "OutOfMemory"
    assert "worker-1 exited with 137 (OOMKilled)" in status["message"]


def test_an_exit_of_1_is_permanent_under_exit_code(run_room: Room) -> None:
    """The run fails at once, and those that still run are cleaned away."""
    roles = {"worker": {"count": 2, "restartPolicy": "ExitCode"}}
    scene = play(run_room, "permanent", framework="jax", replicas=roles)
    scene.until_running("worker-0", "worker-1")
    scene.ends("worker-0", 1)
    scene.until_phase("Failed")
    assert scene.condition("Failed")["reason"] == "PermanentFailure"
    scene.until("the other worker is gone", lambda: set(scene.pods()) == {"worker-0"})


def test_an_exit_code_of_the_runs_choice_is_a_disruption(run_room: Room) -> None:
    """Its program was told to go, and has saved its state: no budget of failures is touched."""
    scene = play(run_room, "saves", backoffLimit=0, disruptionExitCodes=[85])
    before = scene.until_running("master-0")["master-0"]
    scene.ends("master-0", 85)
    scene.until_replaced("master-0", before)
    status = scene.until_phase("Running")
    assert (scene.role("master")["failed"], status["disruptions"]) == (0, 1)
    assert status["lastFailure"]["reason"] == "DisruptionExitCode"


def test_a_pod_that_is_evicted_through_the_api_is_a_disruption(scene: Scene) -> None:
    """It counts against no backoffLimit, and its replica starts again."""
    before = scene.pods()["worker-0"]
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "pair-worker-0", "namespace": scene.room.name},
    }
    path = f"/api/v1/namespaces/{scene.room.name}/pods/pair-worker-0/eviction"
    scene.room.plane.api.create(path, eviction)
    scene.until_replaced("worker-0", before)
    status = scene.until_phase("Running")
    assert (scene.role("worker")["failed"], scene.role("worker")["disruptions"]) == (0, 1)
    assert status["disruptions"] == 1
    assert status["lastFailure"]["disruption"] is True


def test_a_disruption_limit_ends_the_run(run_room: Room) -> None:
    """With a limit of 0 the first disruption is the last, whatever the restart policy says."""
    scene = play(run_room, "fragile", disruptionLimit=0)
    scene.until_running("master-0")
    scene.room.delete("pods", "fragile-master-0")
    scene.until_phase("Failed")
    assert scene.condition("Failed")["reason"] == "DisruptionLimitExceeded"


def test_the_failure_after_the_last_that_is_allowed_fails_the_run(run_room: Room) -> None:
    """backoffLimit counts the program's failures over all roles."""
    scene = play(run_room, "limited", framework="pytorch", replicas=PAIR, backoffLimit=1)
    before = scene.until_running(*ALL)
    scene.ends("worker-0", 2)
    scene.until_replaced("worker-0", before["worker-0"])
    scene.ends("master-0", 3)
    status = scene.until_phase("Failed")
    assert scene.condition("Failed")["reason"] == "BackoffLimitExceeded"
    assert "master-0 exited with 3" in status["message"]
    assert (status["replicas"]["worker"]["failed"], status["replicas"]["master"]["failed"]) == (
        1,
        1,
    )


def test_one_failure_restarts_all_under_scope_run(run_room: Room) -> None:
    """Every replica begins again, once, and the others' ends are nobody's failure."""
    scene = play(
        run_room, "gang", framework="pytorch", replicas=PAIR, restartScope="Run", backoffLimit=1
    )
    before = scene.until_running(*ALL)
    scene.ends("worker-1", 1)
    for name in ALL:
        scene.until_replaced(name, before[name])
    status = scene.until_phase("Running")
    assert status["restarts"] == 1
    assert {role: counts["failed"] for role, counts in status["replicas"].items()} == {
        "master": 0,
        "worker": 1,
    }
    assert {role: counts["attempt"] for role, counts in status["replicas"].items()} == {
        "master": 1,
        "worker": 1,
    }


def test_a_finished_worker_never_runs_again(run_room: Room) -> None:
    """Not even when its pod is gone with its node."""
    scene = play(run_room, "done", framework="jax", replicas={"worker": {"count": 2}})
    scene.until_running("worker-0", "worker-1")
    scene.ends("worker-0", 0)
    scene.until("worker 0 counts", lambda: scene.role("worker").get("succeededIndexes") == "0")
    scene.room.delete("pods", "done-worker-0", now=True)
    scene.until("it is gone", lambda: set(scene.pods()) == {"worker-1"})
    before = scene.pods()["worker-1"]
    # Something else has to happen before one may say that it does not come back.
    scene.ends("worker-1", 1)
    scene.until_replaced("worker-1", before)
    assert set(scene.pods()) == {"worker-1"}
    scene.ends("worker-1", 0)
    scene.until_phase("Succeeded")
    assert json.dumps(scene.status).count("Vanished") == 0


def test_ssh_keys_that_were_deleted_are_made_again(run_room: Room) -> None:
    """Without their Secret no replacement pod could start; with its name, for pods mount that."""
    roles = {"launcher": {}, "worker": {"count": 2}}
    scene = play(run_room, "mpi", framework="mpi", replicas=roles)
    before = scene.until_running("launcher-0", "worker-0", "worker-1")["worker-1"]
    [volume] = [each["secret"] for each in before["spec"]["volumes"] if "secret" in each]
    deleted = run_room.get("secrets", volume["secretName"])
    run_room.kubectl.run("delete", "secret", volume["secretName"])
    scene.ends("worker-1", 1)
    after = scene.until_replaced("worker-1", before)
    made = run_room.get("secrets", volume["secretName"])
    assert made["metadata"]["uid"] != deleted["metadata"]["uid"]
    assert set(made["data"]) == set(deleted["data"])
    assert made["metadata"]["creationTimestamp"] <= after["metadata"]["creationTimestamp"]
