"""Where the sandbox keeps what outlives a command."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def cache_directory(environ: Mapping[str, str]) -> Path:
    """FAIRLEAD_CACHE, else XDG_CACHE_HOME/fairlead, else ~/.cache/fairlead; not made here.

    An empty variable counts as unset, as the XDG Base Directory Specification wants it.
    """
    if own := environ.get("FAIRLEAD_CACHE"):
        return Path(own).absolute()
    if xdg := environ.get("XDG_CACHE_HOME"):
        return Path(xdg).absolute() / "fairlead"
    return Path.home() / ".cache" / "fairlead"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on the file, waiting for whoever holds it.

    The kernel gives the lock back when its holder dies, so that none is ever stale.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
