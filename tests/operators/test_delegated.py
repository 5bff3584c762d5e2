"""Delegated Runs beside the real training operator: from their creation until nothing is left."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from tests.cluster.rooms import LOOK, Json, NewNamespace, Room, Running, stamp
from tests.cluster.scenes import ALONE, SOON, TEMPLATE, Scene, run_manifest
from tests.eventually import eventually
from tests.wording import mentions
from webhook import names
from webhook.cli import fairlead
from webhook.run.crd import custom_resource_definition
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.fairlead import (
    CONTROLLER_NAME,
    launch_controller,
    start_controller,
    start_webhook,
    stop_webhook,
)
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.operators.build import BuiltOperator
from webhook.sandbox.operators.install import install_operator, start_operator
from webhook.sandbox.operators.plan import plan_installation
from webhook.sandbox.operators.table import operators
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, read_pools

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("training_operator", "running", "delegating_controller")

POOL: Final = "cloud.google.com/gke-nodepool"
POLICIES: Final = f"""
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: to-a-pool}}
spec:
  overrides:
    nodeSelector: {{{POOL}: on-demand}}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: workers-elsewhere}}
spec:
  match: {{roles: [worker], podSelector: {{matchLabels: {{rejected: "yes"}}}}}}
  requirements:
    nodeSelector: {{zone: b}}
"""
KILLS: Final = 20
JOB: Final = "training.kubeflow.org/job-name"


@dataclass(frozen=True)
class Shape:
    """A run of one framework. resource: of its object; deciding: the replica whose end ends it."""

    framework: str
    resource: str
    container: str
    replicas: Mapping[str, int]
    deciding: str
    failing: str

    def __str__(self) -> str:
        return self.framework

    @property
    def pods(self) -> list[str]:
        """All of its pods."""
        label = {"server": "master"} if self.framework == "paddle" else {}
        return [
            f"{label.get(role, role)}-{index}"
            for role, count in self.replicas.items()
            for index in range(count)
        ]


SHAPES: Final = (
    Shape(
        "tensorflow",
        "tfjobs",
        "tensorflow",
        {"chief": 1, "worker": 7, "ps": 3},
        "chief-0",
        "worker-6",
    ),
    Shape("pytorch", "pytorchjobs", "pytorch", {"master": 1, "worker": 2}, "master-0", "worker-1"),
    Shape("paddle", "paddlejobs", "paddle", {"server": 2, "worker": 2}, "", "worker-1"),
    Shape("xgboost", "xgboostjobs", "xgboost", {"master": 1, "worker": 2}, "master-0", "worker-0"),
    Shape("jax", "jaxjobs", "jax", {"worker": 3}, "", "worker-2"),
)
PYTORCH: Final = SHAPES[1]


@dataclass(frozen=True)
class Delegated(Scene):
    """A run whose pods the operator makes."""

    shape: Shape

    def pods(self) -> dict[str, Json]:
        """Its pods by what comes after the run's name."""
        listed = self.room.items("pods", f"{JOB}={self.name}")
        return {each["metadata"]["name"].removeprefix(f"{self.name}-"): each for each in listed}

    def object(self) -> Json | None:
        """The operator's object."""
        return self.room.find(self.path, self.name)

    @property
    def path(self) -> str:
        """Its resource, as Room takes it."""
        return self.shape.resource

    def ends(
        self, replica: str, code: int, reason: str = "", message: str = "", **status: Any
    ) -> None:
        """The replica's program ends with this code."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        word = reason or ("Error" if code else "Completed")
        ended = {"exitCode": code, "reason": word, "message": message, "finishedAt": now}
        container = {
            "name": self.shape.container,
            "image": "example.invalid/none",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": ended},
        }
        phase = "Failed" if code else "Succeeded"
        self.patch_status(replica, {"phase": phase, "containerStatuses": [container], **status})

    def until_all_run(self) -> dict[str, Json]:
        """Wait until all replicas run, and the status says so."""
        self.until_running(*self.shape.pods)
        self.until_whole(len(self.shape.pods))
        return self.live()

    def until_whole(self, count: int) -> None:
        """Wait until the run is Running with so many replicas."""
        self.until(
            f"{count} replicas run",
            lambda: (
                self.status.get("phase") == "Running"
                and self.status.get("replicasReady") == f"{count}/{count}"
            ),
        )

    def succeeds(self) -> None:
        """All replicas that decide end with 0."""
        deciding = self.shape.deciding
        for replica in [deciding] if deciding else self.shape.pods:
            self.ends(replica, 0)


def play(room: Room, shape: Shape, name: str = "train", **spec: Any) -> Delegated:
    """Create a delegated run in the room."""
    replicas = {
        role: {"count": count, "restartPolicy": "ExitCode"}
        for role, count in shape.replicas.items()
    }
    whole = {
        "backend": "kubeflow",
        "framework": shape.framework,
        "replicas": replicas,
        "template": TEMPLATE,
        **spec,
    }
    room.create(run_manifest(name, **whole))
    return Delegated(room, name, shape)


@pytest.fixture(scope="module")
def control_plane(
    binaries: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """Not the one that all tests share: the operator's webhooks judge its kinds."""
    directory = tmp_path_factory.mktemp("delegated") / "state"
    settings = Settings(pools=read_pools(SHIPPED_NODES), definitions=[custom_resource_definition()])
    with ControlPlane(directory, binaries, settings) as plane:
        yield plane


@pytest.fixture(scope="module")
def cluster_kubectl(
    control_plane: ControlPlane, kubectl_for: Callable[[ControlPlane], Kubectl]
) -> Kubectl:
    """The real kubectl for it."""
    return kubectl_for(control_plane)


@pytest.fixture(scope="module")
def training_operator(
    control_plane: ControlPlane, cluster_kubectl: Kubectl, training_operator_built: BuiltOperator
) -> Iterator[None]:
    """The training operator runs."""
    installation = plan_installation(operators()["training-operator"], training_operator_built)
    install_operator(control_plane, cluster_kubectl, installation)
    start_operator(control_plane, cluster_kubectl, installation)
    yield
    control_plane.stop_component("training-operator")


@pytest.fixture(scope="module")
def running(control_plane: ControlPlane, policy_folder: Path) -> Iterator[Running]:
    """The webhook, for the pods of the operator too."""
    webhook = start_webhook(control_plane, policy_folder, sources=["kubeflow-training"])
    try:
        yield Running(webhook, policy_folder)
    finally:
        stop_webhook(control_plane, webhook)


@pytest.fixture(scope="module")
def delegating_controller(control_plane: ControlPlane) -> Iterator[None]:
    """The controller runs."""
    controller = start_controller(control_plane, options=(*ALONE, *SOON))
    yield
    control_plane.stop_component(controller.name)


@pytest.fixture
def room(new_namespace: NewNamespace) -> Room:
    """A namespace of the test's own."""
    return new_namespace({})


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_delegated_run_lives_and_ends(room: Room, shape: Shape) -> None:
    """Created, placed, Running; a pod fails and comes back; suspended, resumed; succeeded; gone."""
    run = play(room, shape, backoffLimit=3, ttlSecondsAfterFinished=4)
    before = run.until_all_run()
    found = run.object()
    assert found is not None
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Run", run.run()["metadata"]["uid"])
    assert not {"ttlSecondsAfterFinished", "backoffLimit"} & {*found["spec"]["runPolicy"]}
    for pod in before.values():
        assert [*stamp(pod)["policies"]] == ["to-a-pool"]
        assert pod["spec"]["nodeSelector"] == {POOL: "on-demand"}

    run.ends(shape.failing, 137, message="out of luck")
    run.until_replaced(shape.failing, before[shape.failing])
    run.until_all_run()
    role = shape.failing.partition("-")[0]
    assert run.role(role)["failed"] == run.role(role)["restarts"] == 1
    failure = run.status["lastFailure"]
    assert failure["replica"] == f"{run.name}-{shape.failing}"
    assert (failure["exitCode"], failure["message"]) == (137, "out of luck")

    run.set(suspend=True)
    run.until_phase("Suspended")
    run.until("no pod is left", lambda: not run.pods())
    run.set(suspend=False)
    run.until_all_run()
    assert run.status["restarts"] == 1
    assert run.status["disruptions"] == 0

    run.succeeds()
    status = run.until_phase("Succeeded")
    assert status["restarts"] == 1
    assert status["completionTime"]
    run.until("no pod runs", lambda: not run.live())
    gone(run)


def gone(run: Delegated) -> None:
    """Wait until the Run is gone, and all that was made for it."""
    eventually("the Run is gone", lambda: not room_has(run, names.RUNS), period=LOOK)
    eventually("its object is gone", lambda: not run.object(), period=LOOK)
    eventually("its pods are gone", lambda: not run.pods(), period=LOOK)


def room_has(run: Delegated, resource: str) -> bool:
    """Whether the room has an object of the run's name."""
    return run.room.find(resource, run.name) is not None


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_fairlead_counts_failures_and_enforces_the_limit(room: Room, shape: Shape) -> None:
    """The operator ignores backoffLimit for restarts by exit code; the object is deleted."""
    run = play(room, shape, backoffLimit=1)
    for count in (1, 2):
        before = run.until_all_run()
        run.ends(shape.failing, 130)
        if count == 1:
            run.until_replaced(shape.failing, before[shape.failing])
    status = run.until_phase("Failed")
    assert run.condition("Failed")["reason"] == "BackoffLimitExceeded"
    mentions(status["message"], shape.failing, "failure 2", "backoffLimit is 1")
    eventually("its object is gone", lambda: not run.object(), period=LOOK)
    eventually("its pods are gone", lambda: not run.pods(), period=LOOK)
    assert run.status["phase"] == "Failed"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_deadline_ends_the_run(room: Room, shape: Shape) -> None:
    """The operator would look at it only when something else happens."""
    run = play(room, shape, activeDeadlineSeconds=6)
    run.until_all_run()
    run.until_phase("Failed")
    assert run.condition("Failed")["reason"] == "DeadlineExceeded"
    eventually("its object is gone", lambda: not run.object(), period=LOOK)
    eventually("its pods are gone", lambda: not run.pods(), period=LOOK)


def test_a_failure_that_the_operator_finds_permanent_ends_the_run(room: Room) -> None:
    """With restartPolicy ExitCode, an exit below 128 does; the reason is that of a native run."""
    run = play(room, PYTORCH)
    run.until_all_run()
    run.ends("worker-1", 2, message="bad flag")
    status = run.until_phase("Failed")
    assert run.condition("Failed")["reason"] == "PermanentFailure"
    assert status["lastFailure"]["message"] == "bad flag"
    assert run.role("worker")["failed"] == 1
    run.until("no pod runs", lambda: not run.live())
    assert run.object() is not None


def test_the_commands_show_the_pods_of_a_delegated_run(room: Room, policy_folder: Path) -> None:
    """With the Run's roles: a server is the operator's master."""
    run = play(room, SHAPES[2])
    run.until_all_run()
    where = ("-n", room.name, "--kubeconfig", str(room.plane.kubeconfig))

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


def created_reason(run: Delegated, reason: str) -> str:
    """Wait until the condition Created has this reason; its message."""
    run.until(f"Created is {reason}", lambda: run.condition("Created").get("reason") == reason)
    message: str = run.condition("Created")["message"]
    return message


def test_pods_that_a_policy_rejects_are_reported(room: Room) -> None:
    """The operator's object shows no condition; its Events name the policy."""
    asked = {"labels": {"rejected": "yes"}, "nodeSelector": {"zone": "a"}}
    run = play(room, PYTORCH, environment=asked)
    mentions(
        created_reason(run, "Rejected"),
        "PyTorchJob train",
        "2 pods",
        "workers-elsewhere",
        "nodeSelector[zone]",
        "the training operator",
    )
    assert run.status["phase"] != "Running"
    run.until("an Event says so", lambda: "Rejected" in [one["reason"] for one in run.events()])


@pytest.mark.timeout(300)  # the operator backs off before it tries again
def test_pods_beyond_a_quota_are_reported_until_they_are_there(room: Room) -> None:
    """With the API server's words."""
    few = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}}
    room.create({**few, "spec": {"hard": {"pods": "1"}}})
    room.kubectl("wait", "--for=jsonpath={.status.hard.pods}=1", "resourcequota/few")
    run = play(room, PYTORCH)
    mentions(created_reason(run, "QuotaExceeded"), "2 pods", "exceeded quota: few", "raise")
    room.patch("resourcequotas", "few", {"spec": {"hard": {"pods": "9"}}})
    created = "all pods are there"
    run.until(created, lambda: run.condition("Created").get("reason") == "AllCreated", budget=180)
    run.until_all_run()


def test_a_changed_object_is_left_and_reported(room: Room) -> None:
    """Whoever changes it: the operator goes on with the object, and the Run says how it differs."""
    run = play(room, PYTORCH)
    run.until_all_run()
    replicas = {"pytorchReplicaSpecs": {"Worker": {"replicas": 1}}}
    room.patch(run.path, run.name, {"spec": replicas})
    run.until("the edit is reported", lambda: run.condition("Edited").get("status") == "True")
    mentions(
        run.condition("Edited")["message"],
        "spec.pytorchReplicaSpecs.Worker.replicas: 1, the Run wants 2",
        "kubectl delete pytorchjob train",
    )
    found = run.object()
    assert found is not None
    assert found["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 1
    room.delete(run.path, run.name)
    run.until("it is undone", lambda: run.condition("Edited").get("status") == "False")
    run.until_all_run()


def test_a_deleted_run_leaves_nothing(room: Room) -> None:
    """Its object is deleted with it, and the pods with that."""
    run = play(room, PYTORCH)
    run.until_all_run()
    room.delete(names.RUNS, run.name)
    gone(run)


def test_a_deleted_object_is_made_again(room: Room) -> None:
    """Another client deletes it: the run goes on with a new one."""
    run = play(room, PYTORCH)
    run.until_all_run()
    before = run.object()
    assert before is not None
    room.delete(run.path, run.name)

    def replaced() -> bool:
        found = run.object()
        return found is not None and found["metadata"]["uid"] != before["metadata"]["uid"]

    run.until("another object is there", replaced)
    run.until_all_run()


def test_a_deleted_pod_is_a_disruption(room: Room) -> None:
    """It counts like that of a native run, and is not charged to backoffLimit."""
    run = play(room, PYTORCH, backoffLimit=0)
    before = run.until_all_run()
    room.delete("pods", f"{run.name}-worker-0", now=True)
    run.until_replaced("worker-0", before["worker-0"])
    run.until_all_run()
    assert (run.status["disruptions"], run.role("worker")["failed"]) == (1, 0)


def test_a_controller_that_is_killed_twenty_times_loses_and_doubles_nothing(
    room: Room, control_plane: ControlPlane
) -> None:
    """Killed at random moments while the run begins, loses pods, is suspended and resumed.

    A failure whose pod the operator deletes while no controller runs is not counted; none counts
    twice.
    """
    seed = random.randrange(10**6)
    moments = random.Random(seed)
    control_plane.stop_component(CONTROLLER_NAME)
    run = play(room, PYTORCH, backoffLimit=50)
    failures = 0
    uids: set[str] = set()
    for number in range(KILLS):
        controller = launch_controller(control_plane, options=(*ALONE, *SOON))
        time.sleep(moments.uniform(0.8, 3.5))
        live = run.live()
        if number % 4 == 1 and live.get("worker-1", {}).get("status", {}).get("phase") == "Running":
            run.ends("worker-1", 137)
            failures += 1
            time.sleep(moments.uniform(0, 0.5))
        if number in (10, 14):
            run.set(suspend=number == 10)
        os.kill(controller.pid, signal.SIGKILL)
        control_plane.stop_component(CONTROLLER_NAME)
        if found := run.object():
            uids.add(found["metadata"]["uid"])
    start_controller(control_plane, options=(*ALONE, *SOON))
    run.until_all_run()
    found = run.object()
    assert found is not None
    assert uids <= {found["metadata"]["uid"]}, f"seed {seed}"
    assert failures, f"seed {seed}"
    assert run.role("worker")["failed"] <= failures, f"seed {seed}"
    assert len(run.pods()) == len(PYTORCH.pods)
    run.succeeds()
    run.until_phase("Succeeded")
