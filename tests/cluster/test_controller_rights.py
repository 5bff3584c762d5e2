"""The controller as a service account with the rights that it needs, and with fewer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.rooms import Json, Room
from tests.cluster.scenes import SOON, play
from tests.server.serving import readiness
from webhook import names
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import SandboxController, launch_controller
from webhook.sandbox.kubectl import Kubectl

pytest_plugins = ["tests.cluster.run_fixtures"]

ACCOUNT = "fairlead-controller"
WATCH: Final = ["get", "list", "watch"]
# All that it needs: for one namespace in a Role, for all of them in a ClusterRole.
RULES: Final[list[Json]] = [
    {"apiGroups": [names.GROUP], "resources": ["runs"], "verbs": ["list", "watch", "delete"]},
    {"apiGroups": [names.GROUP], "resources": ["runs/status"], "verbs": ["update"]},
    {"apiGroups": [""], "resources": ["services"], "verbs": [*WATCH, "create", "patch"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": [*WATCH, "create"]},
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    {
        "apiGroups": ["apps"],
        "resources": ["deployments"],
        "verbs": [*WATCH, "create", "patch", "delete"],
    },
    {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get", "create", "patch"],
    },
]
SEE_PODS: Final[Json] = {"apiGroups": [""], "resources": ["pods"], "verbs": WATCH}
MAKE_PODS: Final[Json] = {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "delete"]}


@pytest.fixture
def room(run_api: ControlPlane, cluster_kubectl: Kubectl, namespace: str) -> Room:
    """A namespace of the test's own, without a controller."""
    return Room(run_api, cluster_kubectl.within(namespace), namespace)


@pytest.fixture
def launch(room: Room, tmp_path: Path) -> Iterator[Callable[[], SandboxController]]:
    """Runs a controller for the room as its service account, which has no rights yet."""
    kubeconfig = tmp_path / "account.kubeconfig"
    # A log of its own.
    name = f"controller-of-{room.name}"

    def begin() -> SandboxController:
        room.kubectl("create", "serviceaccount", ACCOUNT)
        config = room.kubectl.json("config", "view", "--raw", "--minify")
        token = room.kubectl("create", "token", ACCOUNT).strip()
        config["users"][0]["user"] = {"token": token}
        kubeconfig.write_text(json.dumps(config))
        options = ("--namespace", room.name, *SOON)
        return launch_controller(room.plane, name=name, kubeconfig=kubeconfig, options=options)

    yield begin
    with suppress(KeyError):
        room.plane.stop_component(name)


def grant(room: Room, name: str, *rules: Json) -> None:
    """Give the account these rights within the room."""
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
    room.create({**kind, "metadata": {"name": name}, "rules": list(rules)})
    account = f"{room.name}:{ACCOUNT}"
    room.kubectl("create", "rolebinding", name, f"--role={name}", f"--serviceaccount={account}")


def test_without_rights_it_is_not_ready_and_says_what_it_may_not(
    room: Room, launch: Callable[[], SandboxController]
) -> None:
    """It asks again, so that rights that are granted later are enough."""
    controller = launch()
    scene = play(room, "patient", framework="jax", replicas={"worker": {"count": 2}})

    def reasons() -> str:
        with suppress(OSError):
            conditions = readiness(controller.health_port)[1]["conditions"]
            return " ".join(each["reason"] for each in conditions.values() if not each["ready"])
        return ""

    scene.until("it says why", lambda: "cannot list resource" in reasons())
    assert not controller.ready
    grant(room, "controller", *RULES, SEE_PODS)
    scene.until("it is ready", lambda: controller.ready)

    def forbidden() -> bool:
        created = scene.condition("Created")
        return created.get("reason") == "Forbidden" and "create resource" in created["message"]

    scene.until("the run says that it may make no pods", forbidden)
    grant(room, "makes-pods", MAKE_PODS)
    scene.until_running("worker-0", "worker-1")


def test_these_rights_are_enough(room: Room, launch: Callable[[], SandboxController]) -> None:
    """For every kind of object that a run may need, from its beginning to its deletion."""
    grant(room, "controller", *RULES, SEE_PODS, MAKE_PODS)
    controller = launch()
    # MPI has a ConfigMap and a Secret, too; a notebook a Deployment.
    mpi = {"launcher": {}, "worker": {"count": 2}}
    scene = play(room, "mpi", framework="mpi", replicas=mpi, ttlSecondsAfterFinished=0)
    scene.until_running("launcher-0", "worker-0", "worker-1")
    scene.ends("worker-1", 1)
    scene.until("it is replaced", lambda: scene.role("worker").get("restarts") == 1)
    scene.until_running("launcher-0", "worker-0", "worker-1")
    scene.ends("launcher-0", 0)
    notebook = play(room, "lab", kind="notebook", ports=[{"port": 8888}])
    notebook.until_phase("Running")
    notebook.set(suspend=True)
    notebook.until_phase("Suspended")
    notebook.until("the mpi run is gone", lambda: not room.find(names.RUNS, "mpi"))
    log = controller.process.log.read_text()
    assert "Forbidden" not in log
    assert {event["reason"] for event in notebook.events()} >= {"Begun", "Running", "Suspended"}
