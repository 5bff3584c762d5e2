"""Free ports on 127.0.0.1 that nothing else takes before a process listens on them."""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.errors import SandboxError
from webhook.sandbox.cache import cache_directory

if TYPE_CHECKING:
    from collections.abc import Sequence

# Below the ports that the kernel gives to connections and to whoever binds port 0. One of those
# could be taken between the moment it was found free and the moment a component listens on it.
_LOWEST: Final = 20_000
_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DEFAULT_END: Final = 32_768


def free_ports(names: Sequence[str]) -> dict[str, int]:
    """Return a port of 127.0.0.1 for each name, all different, on which nobody listens.

    While this process lives, no other one with the same cache gets them by this function. Raises
    SandboxError if none is left.
    """
    return {name: _take() for name in names}


def _take() -> int:
    folder = cache_directory(os.environ) / "ports"
    folder.mkdir(parents=True, exist_ok=True)
    first, end = _LOWEST, _end()
    count = end - first
    start = secrets.randbelow(count)
    for port in (first + (start + number) % count for number in range(count)):
        # Once it is locked the file stays open: the kernel unlocks it when this process ends.
        file = os.open(folder / str(port), os.O_CREAT | os.O_WRONLY, 0o600)
        if _lock(file) and _is_free(port):
            return port
        os.close(file)
    raise SandboxError(f"no port from {first} to {end - 1} is free on 127.0.0.1")


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
