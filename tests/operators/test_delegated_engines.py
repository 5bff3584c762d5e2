"""Runs on JobSet, the MPI operator and Dask's, beside the real ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import pytest

from tests.cluster.manifests import pod
from tests.cluster.spaces import LOOK, Json, NewNamespace, Space
from tests.eventually import eventually
from tests.objects import an_object
from tests.operators import delegated_lives
from tests.operators.comparison import GUIDE, compare
from tests.operators.conftest import JOB_OPERATORS, run_operator
from tests.operators.delegated import ON_DASK, ON_JOBSET, ON_MPI, Shape, play
from tests.operators.delegated_lives import LIVES, created_reason, kill_the_controller
from tests.wording import mentions
from webhook.errors import SandboxError
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.operators.build import BuiltOperator
from webhook.sandbox.operators.install import Installation, start_operator

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = [
    pytest.mark.usefixtures("operators_of_jobs", "running", "delegating_controller"),
    # A Job waits 10 s before it replaces a pod that failed, and twice as long the next time.
    pytest.mark.timeout(900),
]

POLICIES: Final = delegated_lives.POLICIES
SHAPES: Final = (ON_JOBSET, ON_MPI, ON_DASK)


@pytest.fixture(scope="module")
def operators_of_jobs(
    control_plane: ControlPlane,
    cluster_kubectl: Kubectl,
    job_operators_built: Mapping[str, BuiltOperator],
) -> Iterator[Mapping[str, Installation]]:
    """They run."""
    yield {
        name: run_operator(control_plane, cluster_kubectl, name, job_operators_built[name])
        for name in JOB_OPERATORS
    }
    for name in JOB_OPERATORS:
        control_plane.stop_component(name)


@pytest.fixture
def jobset(operators_of_jobs: Mapping[str, Installation]) -> Installation:
    """What starts JobSet's controller again."""
    return operators_of_jobs["jobset"]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("life", LIVES)
def test_a_delegated_run(space: Space, life: str, shape: Shape) -> None:
    """Each life on each engine."""
    LIVES[life](space, shape)


def test_a_jobset_that_restarts_as_a_whole_loses_no_replica(space: Space) -> None:
    """The peers of the pod that failed are deleted by JobSet: neither failures nor disruptions."""
    run = play(space, ON_JOBSET, restartScope="Run", backoffLimit=1)
    before = run.until_all_run()
    run.ends("worker-1", 1)
    for replica, old in before.items():
        run.until_replaced(replica, old)
    run.until_all_run()
    assert (run.status["disruptions"], run.role("worker")["failed"]) == (0, 1)
    run.ends("worker-0", 1)
    run.until_phase("Failed")
    assert run.role("worker")["failed"] == 2
    run.until("no pod runs", lambda: not run.live())


def test_a_replica_that_may_not_restart_ends_a_jobset(space: Space) -> None:
    """One role's: the others may restart."""
    replicas = {"master": {"restartPolicy": "Never"}, "worker": {"count": 2}}
    run = play(space, ON_JOBSET, replicas=replicas, backoffLimit=3)
    before = run.until_all_run()
    run.ends("worker-0", 1)
    run.until_replaced("worker-0", before["worker-0"])
    run.until_all_run()
    run.ends("master-0", 1, message="bad flag")
    status = run.until_phase("Failed")
    assert run.condition("Failed")["reason"] == "PermanentFailure"
    assert status["lastFailure"]["message"] == "bad flag"
    run.until("no pod runs", lambda: not run.live())


def test_a_driver_whose_pod_is_lost_runs_again(space: Space) -> None:
    """Dask's operator creates it once, and would wait for ever."""
    run = play(space, ON_DASK)
    before = run.until_all_run()
    space.delete("pods", f"{run.name}-runner", now=True)
    run.until_replaced("job-runner-0", before["job-runner-0"])
    run.until_all_run()
    assert run.status["disruptions"] == 1


def test_replicas_of_a_run_with_the_longest_name_are_told_apart(space: Space) -> None:
    """Kubernetes cuts the names of their pods."""
    run = play(space, ON_DASK, "d" * 37)
    run.until_all_run()
    assert run.role("worker")["active"] == 2


def test_a_cluster_that_another_client_deletes_is_made_again(space: Space) -> None:
    """With its DaskJob: the operator makes it once."""
    run = play(space, ON_DASK)
    before = run.until_all_run()
    space.plane.api.delete(
        f"/apis/kubernetes.dask.org/v1/namespaces/{space.name}/daskclusters/{run.name}"
    )
    run.until_replaced("scheduler-0", before["scheduler-0"])
    run.until_all_run()
    assert "BackendObjectReplaced" in [each["reason"] for each in run.events()]


def test_a_driver_whose_name_another_pod_has_is_reported(space: Space) -> None:
    """Its owner keeps it; the DaskJob is not made again and again."""
    space.create(pod("train-runner"))
    run = play(space, ON_DASK)
    mentions(created_reason(run, "NameTaken"), "role driver", "another pod", "delete daskjob train")
    made = run.object()
    assert made is not None
    space.delete("pods", "train-runner", now=True)
    space.delete(run.path, run.name)
    run.until_all_run()


def test_a_node_that_is_gone_is_reported_at_once(space: Space) -> None:
    """Before its pods are deleted, which takes a minute."""
    run = play(space, ON_JOBSET)
    run.until_all_run()
    bound = run.live()["worker-0"]["spec"]["nodeName"]
    node = space.plane.api.get(f"/api/v1/nodes/{bound}")
    space.plane.api.delete(f"/api/v1/nodes/{bound}")
    try:
        reason = "NodeGone"
        run.until("the node is reported", lambda: reason in json.dumps(run.status["conditions"]))
    finally:
        kept = ("name", "labels", "annotations")
        metadata = {key: node["metadata"][key] for key in kept if key in node["metadata"]}
        space.plane.api.create("/api/v1/nodes", {**node, "metadata": metadata})


def test_a_driver_that_fails_ends_a_run_on_dask(space: Space) -> None:
    """With the reason of a native run."""
    run = play(space, ON_DASK)
    run.until_all_run()
    run.ends("job-runner-0", 2, message="bad flag")
    status = run.until_phase("Failed")
    assert run.condition("Failed")["reason"] == "PermanentFailure"
    assert status["lastFailure"]["message"] == "bad flag"
    run.until("no pod runs", lambda: not run.live())


def test_the_name_of_another_s_object_is_taken(space: Space) -> None:
    """Its owner keeps it, and the Run goes on once it is away."""
    foreign: Mapping[str, object] = an_object(
        "jobset.x-k8s.io/v1alpha2", "JobSet", "train", {"suspend": True, "replicatedJobs": []}
    )
    space.create(dict(foreign))
    run = play(space, ON_JOBSET)
    mentions(created_reason(run, "NameTaken"), "JobSet train", "does not belong to this run")
    space.delete(run.path, run.name)
    run.until_all_run()


def test_what_jobset_cannot_make_before_its_jobs_is_reported(space: Space) -> None:
    """It says so in an Event of its own; nothing else tells why there are no pods."""
    spec: Json = {"hard": {"count/services": "0"}}
    space.create(an_object("v1", "ResourceQuota", "none", spec))
    run = play(space, ON_JOBSET)
    message = created_reason(run, "BackendWarning")
    mentions(message, "JobSet train", "HeadlessServiceCreationFailed", "exceeded quota: none")
    space.delete("resourcequotas", "none")
    run.until_all_run()


def test_a_name_that_is_too_long_for_the_leader_s_address_is_refused(space: Space) -> None:
    """The longest that is taken runs."""
    with pytest.raises(SandboxError, match="leader's address"):
        play(space, ON_JOBSET, "d" * 26)
    play(space, ON_JOBSET, "d" * 25).until_all_run()


def test_a_suspension_while_the_webhook_of_jobset_is_away_is_tried_until_it_is_done(
    space: Space, control_plane: ControlPlane, cluster_kubectl: Kubectl, jobset: Installation
) -> None:
    """Meanwhile the run says that its pods run, and why."""
    run = play(space, ON_JOBSET)
    run.until_all_run()
    control_plane.stop_component("jobset")
    try:
        run.set(suspend=True)
        run.until("it says why", lambda: "not suspended" in str(run.status.get("message")))
        mentions(str(run.status["message"]), "JobSet train", "failed calling webhook")
        assert run.status["phase"] == "Running"
        assert "BackendWriteFailed" in [each["reason"] for each in run.events()]
    finally:
        start_operator(control_plane, cluster_kubectl, jobset)
    run.until_phase("Suspended")
    run.until("no pod is left", lambda: not run.pods())
    run.set(suspend=False)
    run.until_all_run()


def test_a_controller_that_is_killed_twenty_times_loses_and_doubles_nothing(
    space: Space, control_plane: ControlPlane
) -> None:
    """With JobSet, whose Jobs keep pods that failed."""
    kill_the_controller(space, control_plane, ON_JOBSET)
    eventually("the object stays", lambda: space.find("jobsets", "train"), period=LOOK)


def test_the_table_of_the_guide_is_what_both_do(new_namespace: NewNamespace) -> None:
    """A run of PyTorch with restartPolicy ExitCode on JobSet, beside a native one."""
    table = compare(new_namespace, replace(ON_JOBSET, restarts="ExitCode"))
    assert table in GUIDE.read_text(), f"write this table into the guide:\n{table}"
