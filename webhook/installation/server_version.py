"""What a cluster's version of Kubernetes lacks for Fairlead (docs/reference/versions.md)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webhook.api_paths import VERSION
from webhook.errors import InstallationError

if TYPE_CHECKING:
    from webhook.kube.client import Client
    from webhook.progress import Progress

# ValidatingAdmissionPolicy is v1, and a preStop hook may sleep (Kubernetes' changelogs).
NEEDED: Final = (1, 30)
# Features that need a later version, and what to do without them.
_LATER: Final = (
    (
        (1, 36),
        "`generate map` prints MutatingAdmissionPolicy v1, which the cluster does not serve",
        "use the webhook there, which needs no such policy",
    ),
)


def find_shortage(server: str) -> tuple[str, str] | None:
    """Return why Fairlead does not work with this version, such as v1.29.9, and what it needs."""
    version = _parsed(server)
    if version is None or version >= NEEDED:
        return None
    wanted = ".".join(map(str, NEEDED))
    return f"the cluster has Kubernetes {server}", f"Fairlead needs {wanted} or newer"


def missing_features(server: str) -> list[tuple[str, str]]:
    """Return each feature that this version lacks, with what to do; none for an unknown version."""
    version = _parsed(server)
    return [
        (f"Kubernetes {server}: {what}; it needs {'.'.join(map(str, since))}", cure)
        for since, what, cure in _LATER
        if version is not None and version < since
    ]


async def check_server(client: Client, progress: Progress) -> None:
    """Note what the cluster's version lacks.

    Raises InstallationError if Fairlead does not work with it, and ClusterError.
    """
    server = str((await client.get(VERSION)).get("gitVersion", ""))
    if shortage := find_shortage(server):
        raise InstallationError("; ".join(shortage))
    for what, cure in missing_features(server):
        progress.note(f"{what}; {cure}")


def _parsed(server: str) -> tuple[int, int] | None:
    match = re.match(r"v(\d+)\.(\d+)", server)
    return (int(match[1]), int(match[2])) if match else None
