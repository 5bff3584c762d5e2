"""Finds a Go toolchain that is new enough for the pinned modules."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.sandbox.wheels import installed_from_wheel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.sandbox.progress import Progress

OLDEST: Final = (1, 26)


@dataclass(frozen=True)
class Toolchain:
    """The go command, what its environment needs besides the caller's own, and its scratch folder.

    `scratch` holds caches of gigabytes that are of no use once all is built; None where Go uses
    the caller's own caches.
    """

    go: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    scratch: Path | None = None


def find_toolchain(environ: Mapping[str, str], cache: Path, progress: Progress) -> Toolchain:
    """Go from PATH if it is new enough, else from the pinned wheel.

    The wheel's Go keeps its module and build caches below `cache`: who has no Go of their own
    wants no gigabytes in their home. Raises SandboxError if there is
    no Go and the wheel cannot be installed.
    """
    if (go := shutil.which("go", path=environ.get("PATH"))) and new_enough(_version(go, environ)):
        return Toolchain(go=Path(go))
    if go:
        progress.note(f"{go} is older than {OLDEST[0]}.{OLDEST[1]}: taking Go from its wheel")
    scratch = cache / "go"
    return Toolchain(
        go=installed_from_wheel("go", "go/bin/go", cache, progress),
        environ={
            "GOCACHE": str(scratch / "build"),
            "GOPATH": str(scratch / "path"),
            "GOMODCACHE": str(scratch / "modules"),
            # Modules are read-only otherwise, and the folder could not be removed.
            "GOFLAGS": "-modcacherw",
        },
        scratch=scratch,
    )


def new_enough(version: str) -> bool:
    """Whether the output of `go version` names Go 1.26 or later; False if it names none."""
    found = re.search(r"\bgo(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) >= OLDEST


def _version(go: str, environ: Mapping[str, str]) -> str:
    # GOTOOLCHAIN=local: Go must answer for itself, and not fetch another version to do so.
    local = {**environ, "GOTOOLCHAIN": "local"}
    command = [go, "version"]
    return subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, check=False, env=local
    ).stdout
