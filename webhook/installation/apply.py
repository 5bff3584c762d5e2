"""Brings one object into the cluster, by server-side apply."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal

from webhook import names
from webhook.errors import ClusterError, InstallationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.installation.kinds import Key
    from webhook.kube.client import Client

    Json = dict[str, Any]

Result = Literal["created", "changed", "unchanged", "kept", "deleted"]

# Forced: what the manifests say is meant, whoever said something else of the same field. Fields
# that they do not name stay as they are, and so does what others have added to lists by key.
_QUERY: Final = {
    "fieldManager": names.INSTALL_MANAGER,
    "force": "true",
    "fieldValidation": "Strict",
}


async def read(client: Client, path: str) -> Json | None:
    """The object at the path; None if there is none. Raises ClusterError."""
    try:
        return await client.get(path)
    except ClusterError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return None


async def apply(client: Client, key: Key, wanted: Mapping[str, Any]) -> Result:
    """Have the object there as it is wanted. Raises ClusterError, or InstallationError.

    Nothing of it is taken away that others have put there.
    """
    before = await read(client, key.path)
    try:
        after = await client.patch(key.path, wanted, "apply", query=_QUERY)
    except ClusterError as error:
        raise _told(key, error) from error
    if before is None:
        return "created"
    version = "resourceVersion"
    same = before["metadata"][version] == after["metadata"][version]
    return "unchanged" if same else "changed"


def _told(key: Key, error: ClusterError) -> InstallationError:
    """What was refused, and the cure where the status tells it."""
    if "denied the request" in str(error.words or error):
        cure = "change what it refuses; the same command goes on from here"
    elif error.status == HTTPStatus.FORBIDDEN:
        cure = "an installation needs an administrator's rights: `kubectl auth can-i '*' '*'`"
    elif error.status == HTTPStatus.NOT_FOUND and "." in key.kind.api_version.partition("/")[0]:
        cure = (
            f"does the cluster serve {key.kind.api_version}? Overlays for cert-manager and for "
            "monitoring need those installed; the overlay default needs neither"
        )
    elif error.status is None:
        cure = "try again: what is there already is found again"
    else:
        cure = "nothing is undone; the same command goes on from here"
    return InstallationError(f"{key}: {error.words or error}. {cure[0].upper()}{cure[1:]}")
