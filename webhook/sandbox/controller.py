"""Puts Fairlead's controller beside a control plane."""

from __future__ import annotations

import http.client
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from webhook.sandbox.ports import free_ports
from webhook.sandbox.readiness import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webhook.sandbox.control_plane import ControlPlane
    from webhook.sandbox.processes import Process

CONTROLLER_NAME: Final = "fairlead-controller"


@dataclass(frozen=True)
class SandboxController:
    """A controller that runs. `name` is its process's."""

    name: str
    health_port: int
    process: Process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    @property
    def ready(self) -> bool:
        """Whether it says so."""
        connection = http.client.HTTPConnection("127.0.0.1", self.health_port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def start_controller(
    plane: ControlPlane,
    *,
    name: str = CONTROLLER_NAME,
    kubeconfig: Path | None = None,
    options: Sequence[str] = (),
    patience: float = 60,
) -> SandboxController:
    """Run `fairlead controller`, as the administrator by default, where Runs are served already.

    `options` are more flags. Returns once its caches are filled. Raises SandboxError, with the end
    of its log, if it exits, or is not ready in time.
    """
    controller = launch_controller(plane, name=name, kubeconfig=kubeconfig, options=options)
    wait_until(
        "the controller's caches",
        lambda: controller.ready,
        controller.process.check,
        time.monotonic() + patience,
        controller.process.last_words,
    )
    return controller


def launch_controller(
    plane: ControlPlane,
    *,
    name: str = CONTROLLER_NAME,
    kubeconfig: Path | None = None,
    options: Sequence[str] = (),
) -> SandboxController:
    """The same without waiting."""
    port = free_ports(["health"])["health"]
    process = plane.start_process(
        name,
        [
            *(sys.executable, "-c", "from webhook.cli import main; main()", "controller"),
            *("--kubeconfig", kubeconfig or plane.kubeconfig),
            *("--host", "127.0.0.1", "--health-port", str(port)),
            *options,
        ],
    )
    return SandboxController(name, port, process)
