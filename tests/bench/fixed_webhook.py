"""Builds and starts the webhook in Go that answers with one fixed patch."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.bench.client import listens
from webhook.errors import SandboxError
from webhook.sandbox.api import wait_until
from webhook.sandbox.binaries import find_toolchain
from webhook.sandbox.cache_folder import cache_directory, locked
from webhook.sandbox.processes import free_ports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.sandbox.control_plane import ControlPlane
    from webhook.sandbox.progress import Progress

SOURCE: Final = Path(__file__).parent / "go"
NAME: Final = "fixed"


def obtain(progress: Progress) -> Path:
    """The program, from the cache, or built into it: its own source names it there.

    Raises SandboxError with the compiler's last words.
    """
    digest = hashlib.sha256()
    for name in ("go.mod", "main.go"):
        digest.update((SOURCE / name).read_bytes())
    cache = cache_directory(os.environ)
    target = cache / "binaries" / f"bench-{digest.hexdigest()[:12]}" / NAME
    with locked(cache / "build.lock"):
        if not target.exists():
            with progress.step("building the fixed-patch webhook", about=10):
                _build(target, cache, progress)
    return target


def _build(target: Path, cache: Path, progress: Progress) -> None:
    toolchain = find_toolchain(os.environ, cache, progress)
    target.parent.mkdir(parents=True, exist_ok=True)
    environ = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        binary = Path(temporary) / NAME
        done = subprocess.run(
            [toolchain.go, "build", "-trimpath", "-buildvcs=false", "-o", binary, "."],
            cwd=SOURCE,
            env={**environ, **toolchain.environ},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SandboxError(
                f"the fixed-patch webhook could not be built:\n{done.stderr[-2000:]}"
            )
        binary.rename(target)
    if toolchain.scratch:
        shutil.rmtree(toolchain.scratch)


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
