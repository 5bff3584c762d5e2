"""A network namespace for the whole harness, with an address for each webhook replica.

The API server calls a Service's endpoints at their addresses, and takes none on loopback. In an
anonymous namespace any address can be had, no packet leaves it, and it ends with its last process,
killed or not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from webhook.errors import SandboxError

# Of 198.18.0.0/15, which is set aside for tests of network devices (RFC 2544).
ADDRESSES: Final = tuple(f"198.18.0.{number}" for number in range(1, 251))
OUTSIDE: Final = "--outside"

_NAMESPACE: Final = Path("/proc/self/ns/net")
_FOLDERS: Final = f"{os.environ.get('PATH', os.defpath)}{os.pathsep}/usr/sbin{os.pathsep}/sbin"


def command(arguments: Sequence[str]) -> list[str]:
    """The command that runs `python -m tests.chaos` with these arguments in its own namespace.

    Raises SandboxError, with the cure, if this machine cannot make one.
    """
    _tool("ip", "iproute2")
    unshare = _unshare()
    try:
        done = subprocess.run([*unshare, "true"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise SandboxError(f"cannot run {unshare[0]}: {error}") from error
    if done.returncode:
        raise SandboxError(
            f"a network namespace cannot be made here: {done.stderr.strip()}; run as root, in a "
            "container with the capability SYS_ADMIN, or allow unprivileged user namespaces "
            "(sysctl kernel.unprivileged_userns_clone=1 or user.max_user_namespaces above 0)"
        )
    inside = [OUTSIDE, str(_NAMESPACE.readlink()), *arguments]
    return [*unshare, sys.executable, "-m", "tests.chaos", *inside]


def furnish(outside: str) -> None:
    """Bring up loopback and the addresses, in a namespace that is not `outside`.

    Raises SandboxError if it is, for that one belongs to others, or if it cannot be done.
    """
    if str(_NAMESPACE.readlink()) == outside:
        raise SandboxError(f"{OUTSIDE} names this very network namespace: leave it to the command")
    lines = ["link set lo up", *(f"address add {each}/32 dev lo" for each in ADDRESSES)]
    done = subprocess.run(
        [_tool("ip", "iproute2"), "-batch", "-"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SandboxError(f"the namespace cannot be given addresses: {done.stderr.strip()}")


def _unshare() -> list[str]:
    found = [_tool("unshare", "util-linux"), "--net"]
    return found if os.geteuid() == 0 else [*found, "--user", "--map-root-user"]


def _tool(name: str, package: str) -> str:
    found = shutil.which(name, path=_FOLDERS)
    if not found:
        raise SandboxError(
            f"{name} is not there, which the chaos tests make a network namespace with: "
            f"install {package} (Debian: apt-get install {package}; they need Linux)"
        )
    return found
