"""Delegated Runs beside the real training operator: from their creation until nothing is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from tests.cluster.live_runs import TEMPLATE
from tests.cluster.spaces import LOOK, NewNamespace, Space
from tests.eventually import eventually
from tests.objects import an_object
from tests.operators import delegated_lives
from tests.operators.comparison import GUIDE, compare
from tests.operators.delegated import ON_MPI_V1, PYTORCH, SHAPES, Shape, play
from tests.operators.delegated_lives import LIVES, created_reason, kill_the_controller
from tests.wording import mentions
from webhook import names
from webhook.cli import fairlead
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures(
    "training_operator", "webhook_for_jobs", "delegating_controller"
)

POLICIES: Final = delegated_lives.POLICIES


@pytest.mark.parametrize(
    ("life", "shape"),
    [
        *((life, shape) for life in list(LIVES)[:3] for shape in SHAPES),
        *((life, PYTORCH) for life in list(LIVES)[3:]),
    ],
    ids=str,
)
def test_a_delegated_run(space: Space, life: str, shape: Shape) -> None:
    """Each life, of which some are the same for all frameworks."""
    LIVES[life](space, shape)


def test_an_mpijob_is_of_the_version_that_the_cluster_serves(space: Space) -> None:
    """That of the training operator: placed, replaced, suspended, resumed, and over."""
    run = play(space, ON_MPI_V1, ttlSecondsAfterFinished=4)
    before = run.until_all_run()
    path = f"/apis/kubeflow.org/v1/namespaces/{space.name}/mpijobs/{run.name}"
    made = space.plane.api.get(path)
    assert made["metadata"]["ownerReferences"][0]["uid"] == run.run()["metadata"]["uid"]
    space.delete("pods", f"{run.name}-worker-1", now=True)
    run.until_replaced("worker-1", before["worker-1"])
    run.until_all_run()
    assert (run.status["disruptions"], run.role("worker")["failed"]) == (1, 0)
    where = ("-n", space.name, "--kubeconfig", str(space.plane.kubeconfig))
    shown = CliRunner().invoke(fairlead, ["run", "status", run.name, "-o", "json", *where])
    replicas = json.loads(shown.stdout)["replicas"]
    assert [(each["name"], each["state"]) for each in replicas] == [
        (name, "Running") for name in ("launcher-0", "worker-0", "worker-1")
    ]
    run.set(suspend=True)
    run.until_phase("Suspended")
    run.until("no pod is left", lambda: not run.pods())
    run.set(suspend=False)
    run.until_all_run()
    run.ends("launcher-0", 0)
    run.until_phase("Succeeded")
    eventually("the Run is gone", lambda: not space.find(names.RUNS, run.name), period=LOOK)
    eventually("its object is gone", lambda: not space.plane.api.get(path), period=LOOK)


def test_the_account_of_a_launcher_gets_no_rights_by_a_run(space: Space) -> None:
    """The training operator would let it enter pods; who writes a Run need not have that right."""
    account = {"spec": {**TEMPLATE["spec"], "serviceAccountName": "default"}}
    run = play(space, ON_MPI_V1, template=account)
    run.until("it is refused", lambda: run.condition("Failed").get("reason") == "InvalidRun")
    mentions(run.status["message"], "serviceAccountName", "pods/exec", "remove it")


def test_a_failure_that_the_operator_finds_permanent_ends_the_run(space: Space) -> None:
    """With restartPolicy ExitCode, an exit below 128 does; the reason is that of a native run."""
    run = play(space, PYTORCH)
    run.until_all_run()
    run.ends("worker-1", 2, message="bad flag")
    status = run.until_phase("Failed")
    assert run.condition("Failed")["reason"] == "PermanentFailure"
    assert status["lastFailure"]["message"] == "bad flag"
    assert run.role("worker")["failed"] == 1
    run.until("no pod runs", lambda: not run.live())
    assert run.object() is not None


def test_the_commands_show_the_pods_of_a_delegated_run(space: Space, policy_folder: Path) -> None:
    """With the Run's roles: a server is the operator's master."""
    run = play(space, SHAPES[2])
    run.until_all_run()
    where = ("-n", space.name, "--kubeconfig", str(space.plane.kubeconfig))

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(fairlead, [*arguments, *where])

    shown = json.loads(call("run", "status", run.name, "-o", "json").stdout)["replicas"]
    assert [(each["name"], each["pod"], each["state"]) for each in shown] == [
        (f"{role}-{index}", f"{run.name}-{label}-{index}", "Running")
        for role, label in (("server", "master"), ("worker", "worker"))
        for index in (0, 1)
    ]
    # Simulated nodes have no kubelet that would answer: each log that was asked for is named.
    asked = call("run", "logs", run.name, "--role", "server").stderr
    assert [line.partition(":")[0] for line in asked.splitlines()] == ["server-0", "server-1"]
    assert "no pod" not in asked
    said = call("explain", f"run/{run.name}", "-o", "json", "--policies", str(policy_folder))
    assert said.exit_code == 0, said.output
    (found,) = json.loads(said.stdout)["objects"]
    assert len(found["pods"]) == len(run.shape.pods)


@pytest.mark.timeout(300)  # the operator backs off before it tries again
def test_pods_beyond_a_quota_are_reported_until_they_are_there(space: Space) -> None:
    """With the API server's words."""
    few = an_object("v1", "ResourceQuota", "few")
    space.create({**few, "spec": {"hard": {"pods": "1"}}})
    space.kubectl("wait", "--for=jsonpath={.status.hard.pods}=1", "resourcequota/few")
    run = play(space, PYTORCH)
    mentions(created_reason(run, "QuotaExceeded"), "2 pods", "exceeded quota: few", "raise")
    space.patch("resourcequotas", "few", {"spec": {"hard": {"pods": "9"}}})
    created = "all pods are there"
    run.until(created, lambda: run.condition("Created").get("reason") == "AllCreated", budget=180)
    run.until_all_run()


def test_a_changed_object_is_left_and_reported(space: Space) -> None:
    """Whoever changes it: the operator goes on with the object, and the Run says how it differs."""
    run = play(space, PYTORCH)
    run.until_all_run()
    replicas = {"pytorchReplicaSpecs": {"Worker": {"replicas": 1}}}
    space.patch(run.path, run.name, {"spec": replicas})
    run.until("the edit is reported", lambda: run.condition("Edited").get("status") == "True")
    mentions(
        run.condition("Edited")["message"],
        "spec.pytorchReplicaSpecs.Worker.replicas: 1, the Run wants 2",
        "kubectl delete pytorchjob train",
    )
    found = run.object()
    assert found is not None
    assert found["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 1
    space.delete(run.path, run.name)
    run.until("it is undone", lambda: run.condition("Edited").get("status") == "False")
    run.until_all_run()


def test_a_deleted_object_is_made_again(space: Space) -> None:
    """Another client deletes it: the run goes on with a new one."""
    run = play(space, PYTORCH)
    run.until_all_run()
    before = run.object()
    assert before is not None
    space.delete(run.path, run.name)

    def replaced() -> bool:
        found = run.object()
        return found is not None and found["metadata"]["uid"] != before["metadata"]["uid"]

    run.until("another object is there", replaced)
    run.until_all_run()


def test_a_controller_that_is_killed_twenty_times_loses_and_doubles_nothing(
    space: Space, control_plane: ControlPlane
) -> None:
    """With the training operator, which deletes a pod that failed."""
    kill_the_controller(space, control_plane, PYTORCH)


@pytest.mark.timeout(600)  # twelve runs, one after the other
def test_the_table_of_the_guide_is_what_both_do(new_namespace: NewNamespace) -> None:
    """A run of PyTorch with restartPolicy ExitCode: what happens, and what the Run then reports."""
    table = compare(new_namespace, PYTORCH)
    assert table in GUIDE.read_text(), f"write this table into the guide:\n{table}"
