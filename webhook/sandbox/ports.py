"""Free ports on 127.0.0.1 that nothing else takes before a process listens on them."""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.errors import SandboxError
from webhook.sandbox.cache import cache_directory, writing_cache

if TYPE_CHECKING:
    from collections.abc import Sequence

# Below the ports that the kernel gives to connections and to whoever binds port 0. One of those
# could be taken between the moment it was found free and the moment a component listens on it.
# Where an admin has the kernel give nearly all ports, there are none below, and that may happen.
_LOWEST: Final = 20_000
_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DEFAULT_END: Final = 32_768


def free_ports(names: Sequence[str], within: range | None = None) -> dict[str, int]:
    """Return a port of 127.0.0.1 for each name, all different, on which nobody listens.

    While this process lives, no other one with the same cache gets them by this function. Raises
    SandboxError if none is left, or the cache cannot be written.
    """
    return {name: _take(within or range(_LOWEST, _end())) for name in names}


def _take(ports: range) -> int:
    folder = cache_directory(os.environ) / "ports"
    with writing_cache():
        folder.mkdir(parents=True, exist_ok=True)
    start = secrets.randbelow(len(ports))
    for number in range(len(ports)):
        port = ports[(start + number) % len(ports)]
        # Once it is locked the file stays open: the kernel unlocks it when this process ends.
        with writing_cache():
            file = os.open(folder / str(port), os.O_CREAT | os.O_WRONLY, 0o600)
        if _lock(file) and _is_free(port):
            return port
        os.close(file)
    raise SandboxError(f"no port from {ports[0]} to {ports[-1]} is free on 127.0.0.1")


def _lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _end() -> int:
    try:
        end = int(_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _DEFAULT_END
    return end if end > _LOWEST + 1000 else _DEFAULT_END
