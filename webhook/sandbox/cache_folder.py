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
    """FAIRLEAD_CACHE, else XDG_CACHE_HOME/fairlead, else ~/.cache/fairlead; not made here.

    An empty variable counts as unset, by the XDG Base Directory Specification.
    """
    if own := environ.get("FAIRLEAD_CACHE"):
        return Path(own).absolute()
    if xdg := environ.get("XDG_CACHE_HOME"):
        return Path(xdg).absolute() / "fairlead"
    return Path.home() / ".cache" / "fairlead"


@contextmanager
def writing_cache() -> Iterator[None]:
    """Raise SandboxError with the cure where what is in the cache cannot be made or written."""
    try:
        yield
    except OSError as error:
        raise SandboxError(
            f"cannot write the cache: {error.filename}: {error.strerror}; set FAIRLEAD_CACHE to a "
            "folder that can be written"
        ) from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on the file, and wait for its current holder.

    The kernel gives the lock back when its holder dies, so that none is ever stale. Raises
    SandboxError if the file cannot be written.
    """
    with writing_cache():
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
