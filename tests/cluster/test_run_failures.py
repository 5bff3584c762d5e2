"""Replicas that go down are started again as their owner asked, and counted for what it was."""

from __future__ import annotations

import json

import pytest

from tests.cluster.live_runs import LiveRun, create_run
from tests.cluster.spaces import Space

pytest_plugins = ["tests.cluster.run_fixtures"]

PAIR = {"master": {}, "worker": {"count": 2}}
ALL = ("master-0", "worker-0", "worker-1")


@pytest.fixture
def live(run_space: Space) -> LiveRun:
    """A master and two workers of PyTorch, all of them running."""
    live = create_run(run_space, "pair", framework="pytorch", replicas=PAIR)
    live.until_running(*ALL)
    return live


def test_a_worker_that_exits_with_1_is_started_again(live: LiveRun) -> None:
    """It is a failure of the program: counted by role, kept as the last, and replaced."""
    before = live.pods()["worker-1"]
    live.ends("worker-1", 1, message="loss is NaN")
    live.until_phase("Restarting")
    after = live.until_replaced("worker-1", before)
    assert after["spec"]["hostname"] == "pair-worker-1"
    status = live.until_phase("Running")
    assert (live.role("worker")["failed"], live.role("worker")["disruptions"]) == (1, 0)
    assert status["restarts"] == 1
    last = status["lastFailure"]
    assert (last["replica"], last["exitCode"], last["reason"]) == ("pair-worker-1", 1, "Error")
    assert last["message"] == "loss is NaN"
    assert last["node"] == before["spec"]["nodeName"]
    # The others were left alone.
    assert live.role("worker")["active"] == 2
    wanted = {"Begun", "Running", "ReplicaDown"}
    live.until("Events say so", lambda: wanted <= {each["reason"] for each in live.events()})


def test_a_pod_that_is_evicted_through_the_api_is_a_disruption(live: LiveRun) -> None:
    """It counts against no backoffLimit, and its replica starts again."""
    before = live.pods()["worker-0"]
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "pair-worker-0", "namespace": live.space.name},
    }
    path = f"/api/v1/namespaces/{live.space.name}/pods/pair-worker-0/eviction"
    live.space.plane.api.create(path, eviction)
    live.until_replaced("worker-0", before)
    status = live.until_phase("Running")
    assert (live.role("worker")["failed"], live.role("worker")["disruptions"]) == (0, 1)
    assert status["disruptions"] == 1
    assert status["lastFailure"]["disruption"] is True


def test_a_finished_worker_never_runs_again(run_space: Space) -> None:
    """Not even when its pod is gone with its node."""
    live = create_run(run_space, "done", framework="jax", replicas={"worker": {"count": 2}})
    live.until_running("worker-0", "worker-1")
    live.ends("worker-0", 0)
    live.until("worker 0 counts", lambda: live.role("worker").get("succeededIndexes") == "0")
    live.space.delete("pods", "done-worker-0", now=True)
    live.until("it is gone", lambda: set(live.pods()) == {"worker-1"})
    before = live.pods()["worker-1"]
    # Something else has to happen before one may say that it does not come back.
    live.ends("worker-1", 1)
    live.until_replaced("worker-1", before)
    assert set(live.pods()) == {"worker-1"}
    live.ends("worker-1", 0)
    live.until_phase("Succeeded")
    assert json.dumps(live.status).count("Vanished") == 0


def test_ssh_keys_that_were_deleted_are_made_again(run_space: Space) -> None:
    """Without their Secret no replacement pod could start; with its name, for pods mount that."""
    roles = {"launcher": {}, "worker": {"count": 2}}
    live = create_run(run_space, "mpi", framework="mpi", replicas=roles)
    before = live.until_running("launcher-0", "worker-0", "worker-1")["worker-1"]
    [volume] = [each["secret"] for each in before["spec"]["volumes"] if "secret" in each]
    deleted = run_space.get("secrets", volume["secretName"])
    run_space.kubectl.run("delete", "secret", volume["secretName"])
    live.ends("worker-1", 1)
    after = live.until_replaced("worker-1", before)
    made = run_space.get("secrets", volume["secretName"])
    assert made["metadata"]["uid"] != deleted["metadata"]["uid"]
    assert set(made["data"]) == set(deleted["data"])
    assert made["metadata"]["creationTimestamp"] <= after["metadata"]["creationTimestamp"]
