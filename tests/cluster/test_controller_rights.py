"""The controller as a service account with the rights that it needs, and with fewer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.live_runs import SOON, create_run
from tests.cluster.spaces import Json, Space
from tests.server.serving import readiness
from webhook import names
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import SandboxController, start_controller
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
def space(run_api: ControlPlane, cluster_kubectl: Kubectl, namespace: str) -> Space:
    """A namespace of the test's own, without a controller."""
    return Space(run_api, cluster_kubectl.within(namespace), namespace)


@pytest.fixture
def launch(space: Space, tmp_path: Path) -> Iterator[Callable[[], SandboxController]]:
    """Runs a controller for the space as its service account, which has no rights yet."""
    kubeconfig = tmp_path / "account.kubeconfig"
    # A log of its own.
    name = f"controller-of-{space.name}"

    def begin() -> SandboxController:
        space.kubectl("create", "serviceaccount", ACCOUNT)
        config = space.kubectl.json("config", "view", "--raw", "--minify")
        token = space.kubectl("create", "token", ACCOUNT).strip()
        config["users"][0]["user"] = {"token": token}
        kubeconfig.write_text(json.dumps(config))
        options = ("--namespace", space.name, *SOON)
        return start_controller(
            space.plane, name=name, kubeconfig=kubeconfig, options=options, wait=False
        )

    yield begin
    with suppress(KeyError):
        space.plane.stop_component(name)


def grant(space: Space, name: str, *rules: Json) -> None:
    """Give the account these rights within the space."""
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
    space.create({**kind, "metadata": {"name": name}, "rules": list(rules)})
    account = f"{space.name}:{ACCOUNT}"
    space.kubectl("create", "rolebinding", name, f"--role={name}", f"--serviceaccount={account}")


def test_without_rights_it_is_not_ready_and_says_what_it_may_not(
    space: Space, launch: Callable[[], SandboxController]
) -> None:
    """It asks again, so that rights that are granted later are enough."""
    controller = launch()
    live = create_run(space, "patient", framework="jax", replicas={"worker": {"count": 2}})

    def reasons() -> str:
        with suppress(OSError):
            conditions = readiness(controller.health_port)[1]["conditions"]
            return " ".join(each["reason"] for each in conditions.values() if not each["ready"])
        return ""

    live.until("it says why", lambda: "cannot list resource" in reasons())
    assert not controller.ready
    grant(space, "controller", *RULES, SEE_PODS)
    live.until("it is ready", lambda: controller.ready)

    def forbidden() -> bool:
        created = live.condition("Created")
        return created.get("reason") == "Forbidden" and "create resource" in created["message"]

    live.until("the run says that it may make no pods", forbidden)
    grant(space, "makes-pods", MAKE_PODS)
    live.until_running("worker-0", "worker-1")


def test_these_rights_are_enough(space: Space, launch: Callable[[], SandboxController]) -> None:
    """For every kind of object that a run may need, from its beginning to its deletion."""
    grant(space, "controller", *RULES, SEE_PODS, MAKE_PODS)
    controller = launch()
    # MPI has a ConfigMap and a Secret, too; a notebook a Deployment.
    mpi = {"launcher": {}, "worker": {"count": 2}}
    live = create_run(space, "mpi", framework="mpi", replicas=mpi, ttlSecondsAfterFinished=0)
    live.until_running("launcher-0", "worker-0", "worker-1")
    live.ends("worker-1", 1)
    live.until("it is replaced", lambda: live.role("worker").get("restarts") == 1)
    live.until_running("launcher-0", "worker-0", "worker-1")
    live.ends("launcher-0", 0)
    notebook = create_run(space, "lab", kind="notebook", ports=[{"port": 8888}])
    notebook.until_phase("Running")
    notebook.set(suspend=True)
    notebook.until_phase("Suspended")
    notebook.until("the mpi run is gone", lambda: not space.find(names.RUNS, "mpi"))
    # An Event may come after the phase that it is about.
    wanted = {"Begun", "Running", "Suspended"}
    notebook.until("it has Events", lambda: {e["reason"] for e in notebook.events()} >= wanted)
    assert "Forbidden" not in controller.process.log.read_text()
