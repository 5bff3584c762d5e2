"""The controller as a service account with fewer rights than it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.accounts import account, grant
from tests.cluster.live_runs import SOON, create_run
from tests.cluster.spaces import Json, Space
from tests.server.serving import readiness
from webhook import names
from webhook.sandbox.fairlead import SandboxController, start_controller

pytest_plugins = ["tests.cluster.run_fixtures"]

ACCOUNT = "fairlead-controller"
# What the manifests give it is held to what it uses in test_installing.py; here it has more.
RULES: Final[list[Json]] = [
    {"apiGroups": [names.GROUP, "apps", "coordination.k8s.io"], "resources": ["*"], "verbs": ["*"]},
    {
        "apiGroups": [""],
        "resources": ["services", "configmaps", "secrets", "events"],
        "verbs": ["*"],
    },
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
]
MAKE_PODS: Final[Json] = {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "delete"]}


@pytest.fixture
def launch(bare_space: Space, tmp_path: Path) -> Iterator[Callable[[], SandboxController]]:
    """Runs a controller for the space as its service account, which has no rights yet."""
    space, kubeconfig = bare_space, tmp_path / "account.kubeconfig"
    # A log of its own.
    name = f"controller-of-{space.name}"

    def begin() -> SandboxController:
        account(space.kubectl, ACCOUNT, kubeconfig)
        options = ("--namespace", space.name, *SOON)
        return start_controller(
            space.plane, name=name, kubeconfig=kubeconfig, options=options, wait=False
        )

    yield begin
    with suppress(KeyError):
        space.plane.stop_component(name)


def test_without_rights_it_is_not_ready_and_says_what_it_may_not(
    bare_space: Space, launch: Callable[[], SandboxController]
) -> None:
    """It asks again, so that rights that are granted later are enough."""
    space, controller = bare_space, launch()
    live = create_run(space, "patient", framework="jax", replicas={"worker": {"count": 2}})

    def reasons() -> str:
        with suppress(OSError):
            conditions = readiness(controller.health_port)[1]["conditions"]
            return " ".join(each["reason"] for each in conditions.values() if not each["ready"])
        return ""

    live.until("it says why", lambda: "may not list" in reasons())
    assert not controller.ready
    grant(space.kubectl, ACCOUNT, "controller", *RULES)
    live.until("it is ready", lambda: controller.ready)

    def forbidden() -> bool:
        created = live.condition("Created")
        return created.get("reason") == "Forbidden" and "may not create pods" in created["message"]

    live.until("the run says that it may make no pods", forbidden)
    grant(space.kubectl, ACCOUNT, "makes-pods", MAKE_PODS)
    live.until_running("worker-0", "worker-1")
