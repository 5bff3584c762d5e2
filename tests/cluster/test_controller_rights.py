"""The controller as a service account with fewer rights than it needs."""

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
# In its namespace, everything but pods.
RULES: Final[list[Json]] = [
    {
        "apiGroups": [names.GROUP, "apps", "coordination.k8s.io"],
        "resources": ["*"],
        "verbs": ["*"],
    },
    {
        "apiGroups": [""],
        "resources": ["services", "configmaps", "secrets", "events"],
        "verbs": ["*"],
    },
]
SEE_PODS: Final[Json] = {
    "apiGroups": [""],
    "resources": ["pods"],
    "verbs": ["get", "list", "watch"],
}
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
