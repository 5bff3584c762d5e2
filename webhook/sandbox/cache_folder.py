"""The folder of cached binaries."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Return FAIRLEAD_CACHE, else XDG_CACHE_HOME/fairlead, else ~/.cache/fairlead.

    Does not create it. An empty variable counts as unset (XDG Base Directory Specification).
    """
    if own := environ.get("FAIRLEAD_CACHE"):
        return Path(own).absolute()
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
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on the file; wait while another process holds it.

    The kernel releases the lock when its holder ends. Raises SandboxError if the file cannot be
    written.
    """
    with writing_cache():
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
