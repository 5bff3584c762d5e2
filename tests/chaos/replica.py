"""One real `fairlead serve` on an address of its own."""

from __future__ import annotations

import http.client
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.process import resident_mib
from tests.chaos.wire import PORT
from tests.eventually import eventually
from webhook import names
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.processes import Process
from webhook.sandbox.rights import account

HEALTH_PORT: Final = 8081


@dataclass(frozen=True)
class Replica:
    """A webhook process that was started."""

    plane: ControlPlane
    process: Process
    address: str

    @property
    def name(self) -> str:
        """The process's name in the sandbox."""
        return self.process.name

    @property
    def ready(self) -> bool:
        """Whether it says so itself, as a kubelet asks."""
        connection = http.client.HTTPConnection(self.address, HEALTH_PORT, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def wait_ready(self) -> float:
        """Wait until it is ready; when it was, by the monotonic clock."""
        return self._wait("is ready", lambda: self.ready, lambda: self.process.check())

    def terminate(self) -> None:
        """Ask it to leave, as a kubelet does."""
        os.kill(self.process.pid, signal.SIGTERM)

    def stand_still(self) -> None:
        """Stop it in its tracks; its connections stay open."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Kill it."""
        self.plane.stop_component(self.name)

    def wait_exit(self) -> int:
        """Wait until it has left; its exit code."""
        self._wait("exits", lambda: self.process.exit_code is not None, lambda: None)
        code = self.process.exit_code
        self.plane.stop_component(self.name)
        return code if code is not None else -1

    def memory(self) -> float:
        """MiB that are resident now."""
        return resident_mib(self.process.pid)

    def _wait(self, what: str, holds: Callable[[], bool], check: Callable[[], None]) -> float:
        def so() -> bool:
            if holds():
                return True
            check()
            return False

        eventually(f"{self.name} {what}", so, explain=self.process.log_tail)
        return time.monotonic()


def start(
    plane: ControlPlane,
    name: str,
    address: str,
    options: Sequence[str | Path],
    python: str | Path = sys.executable,
) -> Replica:
    """Start a replica of the version that is installed for `python`; does not wait for it."""
    process = plane.start_process(
        name,
        [
            *(python, "-c", "from webhook.cli import main; main()", "serve"),
            *("--kubeconfig", account(plane, names.WEBHOOK, tuple(map(str, options)))),
            *("--host", address),
            *("--port", str(PORT), "--health-port", str(HEALTH_PORT)),
            *options,
        ],
    )
    return Replica(plane, process, address)
