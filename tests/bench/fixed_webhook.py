"""Builds and starts the webhook in Go that answers with one fixed patch."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.bench.client import listens
from tests.go_programs import obtain_program
from webhook.sandbox.api import wait_until
from webhook.sandbox.binaries import Module, Program
from webhook.sandbox.processes import free_ports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.sandbox.control_plane import ControlPlane

SOURCE: Final = Path(__file__).parent / "go"
NAME: Final = "fixed"


class _Own(Module):
    """A module without dependencies, whose source is its version."""

    @property
    def version(self) -> str:
        """The same for ever: the name in the cache has a hash of the source."""
        return "v0"


def obtain() -> Path:
    """The program, built into the cache on first use. Raises SandboxError."""
    return obtain_program(Program(NAME, _Own("go", "", SOURCE.parent), ".", 10))


def start(plane: ControlPlane, binary: Path, patch: Sequence[Any]) -> int:
    """Run it beside the control plane with its serving certificate, and return its port."""
    port = free_ports([NAME])[NAME]
    file = plane.layout.directory / "fixed-patch.json"
    file.write_text(json.dumps(patch))
    pki = plane.layout.credentials
    process = plane.start_process(
        NAME,
        [
            binary,
            *("-listen", f"127.0.0.1:{port}"),
            *("-cert", pki / "serving.crt", "-key", pki / "serving.key"),
            *("-patch", file),
        ],
    )
    wait_until(
        "the fixed-patch webhook",
        lambda: listens(port, pki / "ca.crt"),
        process.check,
        time.monotonic() + 10,
        process.log_tail,
    )
    return port
