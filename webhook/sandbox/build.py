"""Builds one program from its pinned Go module."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.sandbox.modules import Program
    from webhook.sandbox.toolchain import Toolchain

# The caller's flags and workspaces must not reach into a pinned build.
_FIXED: Final = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"}


def build(program: Program, target: Path, toolchain: Toolchain, environ: Mapping[str, str]) -> None:
    """Build the program and put it at `target`, whole or not at all.

    go.mod and go.sum decide every byte that goes in; where modules are fetched from is the
    environment's affair (GOPROXY). Raises SandboxError with the compiler's last words.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        binary = Path(temporary) / program.name
        command = [str(toolchain.go), "build", "-mod=readonly", "-trimpath", "-buildvcs=false"]
        command += ["-ldflags", program.linker_flags(), "-o", str(binary), program.package]
        done = subprocess.run(  # noqa: S603
            command,
            cwd=program.module.directory,
            env={**environ, **_FIXED, **toolchain.environ},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            words = "\n".join(done.stderr.strip().splitlines()[-20:])
            raise SandboxError(
                f"{program.name} {program.module.version} could not be built:\n{words}\n"
                "Or set KUBEBUILDER_ASSETS to a folder that holds ready binaries."
            )
        binary.rename(target)
