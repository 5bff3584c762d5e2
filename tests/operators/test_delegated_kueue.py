"""A delegated Run in a queue of Kueue: both operators are real, and Kueue suspends the object."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest

from tests.cluster.live_runs import TEMPLATE, LiveRun, run_manifest
from tests.cluster.spaces import LOOK, Json, NewNamespace, Space
from tests.eventually import eventually
from tests.operators import queues
from tests.operators.conftest import with_runs
from tests.operators.queues import POOL
from tests.wording import mentions
from webhook import names
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.operators.install import Installation, start_operator

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures(
    "training_operator", "queues_of_admins", "webhook_for_jobs", "delegating_controller"
)

POLICIES: Final = f"""
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: on-demand}}
spec: {{overrides: {{nodeSelector: {{{POOL}: on-demand}}, labels: {{team: research}}}}}}
"""
SIZE: Final = {"master": 1, "worker": 2}
# Seconds in which Kueue would have resumed a job.
AFTERWARDS: Final = 4.0
KEEPS: Final = {names.KUEUE: names.KUEUE_KEEP}


@pytest.fixture
def space(new_namespace: NewNamespace) -> Space:
    """A namespace with its queues, in which flavors win."""
    made = new_namespace(KEEPS)
    made.kubectl.create(*queues.of_namespaces())
    return made


def play(space: Space, queue: str, **spec: Any) -> LiveRun:
    """A PyTorch run for a queue, each of whose replicas asks for one CPU."""
    container = {**TEMPLATE["spec"]["containers"][0], "resources": {"requests": {"cpu": "1"}}}
    manifest = run_manifest(
        "train",
        backend="kubeflow",
        framework="pytorch",
        replicas={role: {"count": count} for role, count in SIZE.items()},
        **{"template": {"spec": {"containers": [container]}}, **spec},
    )
    manifest["metadata"]["labels"] = {names.KUEUE_QUEUE: queue}
    space.create(manifest)
    return LiveRun(space, "train")


def job(space: Space) -> Json:
    """The operator's object."""
    return space.get("pytorchjobs", "train")


def pods(space: Space) -> list[Json]:
    """The pods of it that are not going."""
    listed = space.items("pods", "training.kubeflow.org/job-name=train")
    return [each for each in listed if "deletionTimestamp" not in each["metadata"]]


def until_all_run(run: LiveRun) -> None:
    """Wait until the run is Running with all replicas."""
    whole = f"{sum(SIZE.values())}/{sum(SIZE.values())}"
    run.until(
        "all replicas run",
        lambda: (run.status.get("phase"), run.status.get("replicasReady")) == ("Running", whole),
    )


def test_an_admitted_run_runs_on_its_flavor(space: Space) -> None:
    """The queue's label is on the object; what Kueue adds to it is left."""
    run = play(space, "gpu")
    until_all_run(run)
    assert job(space)["metadata"]["labels"][names.KUEUE_QUEUE] == "gpu"
    seen = pods(space)
    assert len(seen) == sum(SIZE.values())
    for pod in seen:
        assert pod["spec"]["nodeSelector"][POOL] == "gpu"
        assert pod["metadata"]["labels"]["team"] == "research"
    assert job(space)["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["nodeSelector"]
    # What others add is no edit.
    assert not run.condition("Edited")


def test_a_run_without_quota_says_which_queue_holds_it_and_starts_with_quota(
    space: Space, control_plane: ControlPlane
) -> None:
    """No failure is counted and no pod made, for as long as it waits."""
    run = play(space, "one")
    run.until("its queue is named", lambda: "queue one" in str(run.status.get("message")))
    mentions(str(run.status["message"]), "PyTorchJob train", "suspended", "queue one")
    assert pods(space) == []
    assert run.status["phase"] != "Failed"
    with more_quota(control_plane):
        until_all_run(run)
    assert run.role("worker").get("failed", 0) == 0


def test_a_run_that_kueue_evicts_waits_and_comes_back_without_a_failure(
    space: Space, control_plane: ControlPlane
) -> None:
    """An admin stops the queue: the pods go, and the run says why; then they come back."""
    run = play(space, "either")
    until_all_run(run)
    api = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/either"
    control_plane.api.patch(api, {"spec": {"stopPolicy": "HoldAndDrain"}})
    try:
        eventually("its pods are gone", lambda: not pods(space), period=LOOK)
        run.until("its queue is named", lambda: "queue either" in str(run.status.get("message")))
        assert run.status["phase"] not in ("Failed", "Succeeded")
    finally:
        control_plane.api.patch(api, {"spec": {"stopPolicy": "None"}})
    until_all_run(run)
    assert {role: run.role(role).get("failed", 0) for role in SIZE} == dict.fromkeys(SIZE, 0)
    assert "lastFailure" not in run.status


def test_the_runs_own_suspension_outlasts_kueues_admission(space: Space) -> None:
    """`suspend` of the Run is kept, and lifting it hands the object back to the queue."""
    run = play(space, "gpu", suspend=True)
    run.until_phase("Suspended")
    assert pods(space) == []
    space.kubectl("patch", "run", "train", "--type=merge", "-p", '{"spec": {"suspend": false}}')
    until_all_run(run)


def test_a_suspended_run_stays_suspended_and_holds_no_quota(space: Space) -> None:
    """By its Workload: Kueue would resume the job alone within a second."""
    run = play(space, "gpu")
    until_all_run(run)
    run.set(suspend=True)
    run.until_phase("Suspended")
    eventually("its pods are gone", lambda: not pods(space), period=LOOK)
    eventually("it holds no quota", lambda: not reserved(space), period=LOOK)
    time.sleep(AFTERWARDS)
    assert (run.status["phase"], pods(space)) == ("Suspended", [])
    assert workload(space)["spec"]["active"] is False
    run.set(suspend=False)
    until_all_run(run)
    assert (run.status["disruptions"], run.status["restarts"]) == (0, 0)


def test_a_run_that_is_suspended_while_it_waits_does_not_start_with_quota(
    space: Space, control_plane: ControlPlane
) -> None:
    """Its object was suspended by the queue before, which would resume it."""
    run = play(space, "one")
    run.until("its queue is named", lambda: "queue one" in str(run.status.get("message")))
    eventually("Kueue knows it", lambda: workload(space), period=LOOK)
    run.set(suspend=True)
    run.until_phase("Suspended")
    with more_quota(control_plane):
        time.sleep(AFTERWARDS)
        assert (run.status["phase"], pods(space)) == ("Suspended", [])
        run.set(suspend=False)
        until_all_run(run)


def test_beside_external_frameworks_a_delegated_run_passes_its_queue(
    space: Space,
    control_plane: ControlPlane,
    cluster_kubectl: Kubectl,
    kueue_installation: Installation,
) -> None:
    """Kueue takes the Run for the job in the queue, and the Run has no Workload."""
    control_plane.stop_component("kueue")
    start_operator(control_plane, cluster_kubectl, with_runs(kueue_installation))
    try:
        run = play(space, "one")
        until_all_run(run)
        assert workload(space) == {}
    finally:
        control_plane.stop_component("kueue")
        start_operator(control_plane, cluster_kubectl, kueue_installation)


def workload(space: Space) -> Json:
    """The Workload of the object; empty without one."""
    uid = job(space)["metadata"]["uid"]
    found = space.items("workloads", f"{names.KUEUE_JOB_UID}={uid}")
    return found[0] if found else {}


def reserved(space: Space) -> bool:
    """Whether it has quota."""
    conditions = workload(space).get("status", {}).get("conditions", ())
    return ("QuotaReserved", "True") in [(each["type"], each["status"]) for each in conditions]


@contextlib.contextmanager
def more_quota(plane: ControlPlane) -> Iterator[None]:
    """The queue `one` has space for ten pods on each flavor."""
    api = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/one"
    groups = plane.api.get(api)["spec"]["resourceGroups"]
    more = [
        {**group, "flavors": [_with_quota(flavor, "10") for flavor in group["flavors"]]}
        for group in groups
    ]
    plane.api.patch(api, {"spec": {"resourceGroups": more}})
    try:
        yield
    finally:
        plane.api.patch(api, {"spec": {"resourceGroups": groups}})


def _with_quota(flavor: Json, quota: str) -> Json:
    return {**flavor, "resources": [{**flavor["resources"][0], "nominalQuota": quota}]}


@pytest.fixture
def kueue_without_the_kind(
    control_plane: ControlPlane, cluster_kubectl: Kubectl, kueue_installation: Installation
) -> Iterator[None]:
    """Kueue has no integration for PyTorchJobs."""
    usual = kueue_installation.operator
    integrations = {"frameworks": ["batch/job"]}
    fewer = usual.model_copy(update={"config": {**usual.config, "integrations": integrations}})
    for each in (fewer, usual):
        control_plane.stop_component("kueue")
        start_operator(control_plane, cluster_kubectl, replace(kueue_installation, operator=each))
        if each is fewer:
            yield


@pytest.mark.usefixtures("kueue_without_the_kind")
def test_a_run_whose_kind_kueue_does_not_know_says_that_it_runs_without_quota(
    space: Space,
) -> None:
    """And which integration lacks; one that Kueue has admitted says so."""
    run = play(space, "one")
    until_all_run(run)
    run.until("it says so", lambda: run.condition("Admitted").get("reason") == "NotQueued")
    mentions(
        str(run.status["message"]), "without the quota of queue one", "kubeflow.org/pytorchjob"
    )


def test_an_admitted_run_has_the_condition(space: Space) -> None:
    """As a Run on Fairlead's own controller."""
    run = play(space, "gpu")
    until_all_run(run)
    assert run.condition("Admitted")["status"] == "True"
