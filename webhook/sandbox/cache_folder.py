"""The folder of cached binaries."""

from __future__ import annotations

import fcntl
import time
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from webhook.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Longer than the control plane and every operator take to build on a busy machine.
_LOCK_TIMEOUT_SECONDS: Final = 7200


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Return FAIRLEAD_CACHE, else XDG_CACHE_HOME/fairlead, else ~/.cache/fairlead.

    Does not create it. An empty variable counts as unset (XDG Base Directory Specification).
    """
    if folder := environ.get("FAIRLEAD_CACHE"):
        return Path(folder).absolute()
    if xdg := environ.get("XDG_CACHE_HOME"):
        return Path(xdg).absolute() / "fairlead"
    return Path.home() / ".cache" / "fairlead"


@contextmanager
def writing_cache() -> Iterator[None]:
    """Raise SandboxError with the cure if the cache cannot be created or written."""
    try:
        yield
    except OSError as error:
        raise SandboxError(
            f"cannot write the cache: {error.filename}: {error.strerror}; set FAIRLEAD_CACHE to a "
            "writable folder"
        ) from error


@contextmanager
def locked(path: Path, patience: float = _LOCK_TIMEOUT_SECONDS) -> Iterator[None]:
    """Hold an exclusive lock on the file; wait while another process holds it.

    The kernel releases the lock when its holder ends. Raises SandboxError if the file cannot be
    written, or if another process holds it for `patience` seconds.
    """
    with writing_cache():
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    with file:
        deadline = time.monotonic() + patience
        while not lock_now(file):
            if time.monotonic() > deadline:
                raise SandboxError(
                    f"another process holds {path} for more than {patience:.0f} s; wait until it"
                    f" has ended, or end it: `fuser {path}` names it"
                )
            time.sleep(0.05)
        yield


def lock_now(file: IO[str] | int) -> bool:
    """Lock the file; return False if another process has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
