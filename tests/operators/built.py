"""Builds an operator that runs beside us from its pinned Go module, and reads its manifests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from webhook.errors import SandboxError
from webhook.sandbox.binaries import Toolchain, build, find_toolchain
from webhook.sandbox.cache_folder import cache_directory, locked
from webhook.sandbox.modules import Program, cache_key
from webhook.sandbox.progress import Progress

Json = dict[str, Any]


class Built(NamedTuple):
    """The operator's program, and the manifests of its module as one JSON list."""

    program: Path
    file: Path

    def manifests(self) -> list[Json]:
        """What it wants to find in a cluster."""
        read: list[Json] = json.loads(self.file.read_text())
        return read


def obtain(
    program: Program, manifests: Callable[[Path], Iterable[Json]], progress: Progress
) -> Built:
    """The operator from the cache, or built into it. Raises SandboxError.

    `manifests` reads them in the folder of the module's source.
    """
    cache = cache_directory(os.environ)
    folder = cache / "binaries" / cache_key(program.module)
    built = Built(folder / program.name, folder / "manifests.json")
    with locked(cache / "build.lock"):
        if not built.file.exists():
            toolchain = find_toolchain(os.environ, cache, progress)
            what = f"building {program.name} {program.module.version}"
            with progress.step(what, about=program.seconds):
                build(program, built.program, toolchain, os.environ)
                found = list(manifests(_source(program, toolchain)))
                # Written last: where it is, all is.
                built.file.write_text(json.dumps(found))
            if toolchain.scratch:
                shutil.rmtree(toolchain.scratch)
    return built


def _source(program: Program, toolchain: Toolchain) -> Path:
    done = subprocess.run(
        [toolchain.go, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", program.module.path],
        cwd=program.module.directory,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off", **toolchain.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SandboxError(f"{program.module.path} is not to be found:\n{done.stderr[-2000:]}")
    return Path(done.stdout.strip())
