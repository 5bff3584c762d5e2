"""Lives of runs: how they end, rest, restart and go, and what their framework wants."""

from __future__ import annotations

import base64
import json
import os
import signal
import time
from typing import Any

import pytest

from tests.cluster.live_runs import CONTAINER, LiveRun, create_run
from tests.cluster.spaces import Json, Space
from tests.objects import an_object
from webhook import names
from webhook.run.steps import LARGE

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


def test_a_run_that_a_finalizer_keeps_says_what_is_left_of_it(run_space: Space) -> None:
    """Nothing is created or charged any more, and its status stays true until it is gone."""
    live = create_run(run_space, "kept", framework="jax", replicas={"worker": {"count": 2}})
    live.until_running("worker-0", "worker-1")
    live.until_whole(2)
    run_space.patch(names.RUNS, "kept", {"metadata": {"finalizers": ["example.com/archive"]}})
    # The pods stay: the Run has no owner's cascade before it is gone.
    run_space.delete(names.RUNS, "kept")

    def message() -> str:
        return str(live.status["message"])

    live.until("both are there", lambda: message() == "is being deleted; 2 of 2 pods are there")
    run_space.delete("pods", "kept-worker-1")
    live.until("one is there", lambda: message() == "is being deleted; 1 of 2 pods are there")
    status = live.status
    # The phase is that of before: nothing begins any more.
    assert (status["phase"], status["replicasReady"]) == ("Running", "1/2")
    assert (live.role("worker")["disruptions"], status["restarts"]) == (0, 0)
    assert set(live.pods()) == {"worker-0"}
    run_space.patch(names.RUNS, "kept", {"metadata": {"finalizers": None}})
    live.until_gone()


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
    eviction = an_object(
        "policy/v1", "Eviction", {"name": "pair-worker-0", "namespace": live.space.name}
    )
    path = f"/api/v1/namespaces/{live.space.name}/pods/pair-worker-0/eviction"
    live.space.plane.api.create(path, eviction)
    live.until_replaced("worker-0", before)
    status = live.until_phase("Running")
    assert (live.role("worker")["failed"], live.role("worker")["disruptions"]) == (0, 1)
    assert status["disruptions"] == 1
    assert status["lastFailure"]["disruption"] is True


def test_what_restarts_together_waits_for_the_programs_before_it(run_space: Space) -> None:
    """A peer takes its time to end: there is no new rank 0 beside it."""
    live = create_run(
        run_space, "slow", framework="jax", replicas={"worker": {"count": 2}}, restartScope="Run"
    )
    before = live.until_running("worker-0", "worker-1")
    live.until_whole(2)

    def waits() -> bool:
        created = live.condition("Created")
        return created["reason"] == "Terminating" and "slow-worker-1" in created["message"]

    # It plays the kubelets, which end programs.
    kwok = run_space.plane.pids["kwok"]
    os.kill(kwok, signal.SIGSTOP)
    try:
        live.ends("worker-0", 1)
        live.until("it waits for the pod", waits)
        # Longer than the backoff.
        time.sleep(3)
        assert waits()
        assert set(live.pods()) == {"worker-1"}
        assert live.pods()["worker-1"]["status"]["phase"] == "Running"
    finally:
        os.kill(kwok, signal.SIGCONT)
    live.until_whole(2)
    uids = {pod["metadata"]["uid"] for each in (before, live.pods()) for pod in each.values()}
    assert len(uids) == 4


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


def test_mpi(run_space: Space) -> None:
    """The launcher comes after the workers, with a hostfile of them and keys to enter them."""
    roles: Json = {"launcher": {}, "worker": {"count": 2}}
    live = create_run(run_space, "gang", framework="mpi", replicas=roles)
    pods = live.until_running("launcher-0", "worker-0", "worker-1")
    created = {name: pod["metadata"]["creationTimestamp"] for name, pod in pods.items()}
    assert created["launcher-0"] >= max(created["worker-0"], created["worker-1"])
    maps = run_space.items("configmaps", f"{names.RUN}=gang")
    (hostfile,) = [one["data"]["hostfile"] for one in maps if "hostfile" in one.get("data", {})]
    hosts = [line.split()[0] for line in hostfile.splitlines()]
    assert [host.partition(".")[0] for host in hosts] == ["gang-worker-0", "gang-worker-1"]
    (secret,) = run_space.items("secrets", f"{names.RUN}=gang")
    keys = {key: base64.b64decode(value) for key, value in secret["data"].items()}
    assert any(b"PRIVATE KEY" in value for value in keys.values())
    mounted = {
        volume["secret"]["secretName"]
        for volume in pods["launcher-0"]["spec"]["volumes"]
        if "secret" in volume
    }
    assert secret["metadata"]["name"] in mounted
    # Whoever may read the run may not read its keys in it.
    assert "PRIVATE" not in run_space.kubectl("get", "run", "gang", "-o", "yaml")


@pytest.fixture
def notebook(run_space: Space) -> LiveRun:
    template: dict[str, Any] = {
        "spec": {"containers": [{**CONTAINER, "ports": [{"containerPort": 8888}]}]}
    }
    live = create_run(run_space, "lab", kind="notebook", template=template)
    live.until_phase("Running")
    return live


def test_a_notebook_is_a_deployment_and_a_service(notebook: LiveRun) -> None:
    """One pod, replaced before a second one could want its volume, behind an address."""
    deployment = notebook.space.get("deployments", "lab")
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert deployment["metadata"]["ownerReferences"][0]["kind"] == "Run"
    service = notebook.space.get("services", "lab")
    assert [port["port"] for port in service["spec"]["ports"]] == [8888]
    assert notebook.status["address"] == f"http://lab.{notebook.space.name}.svc:8888"
    (pod,) = notebook.space.pods()
    assert pod["metadata"]["labels"][names.KIND] == "notebook"

    def behind() -> list[str]:
        slices = notebook.space.items("endpointslices")
        return [each["targetRef"]["name"] for one in slices for each in one["endpoints"] or ()]

    # The endpoint slices follow their pods.
    notebook.until("it is reached", lambda: behind() == [pod["metadata"]["name"]])
    (row,) = notebook.space.kubectl("get", "runs", "--no-headers").splitlines()
    assert row.split()[:3] == ["lab", "Running", "1/1"]


def test_a_large_run_has_its_addresses_when_all_its_pods_are_there(run_space: Space) -> None:
    """Only then does the Service select them."""
    live = create_run(
        run_space,
        "large",
        framework="pytorch",
        replicas={"master": {}, "worker": {"count": LARGE}},
    )

    def selector() -> object:
        return run_space.get("services", "large")["spec"].get("selector")

    live.until("every replica has a pod", lambda: len(live.pods()) == LARGE + 1)
    uid = live.run()["metadata"]["uid"]
    live.until("the Service selects them", lambda: selector() == {names.RUN_UID: uid})
