"""Takes one object out of the cluster, if it is ours."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.errors import ClusterError
from webhook.installation.apply import read

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.installation.kinds import Key
    from webhook.kube.client import Client

NAME_LABEL: Final = "app.kubernetes.io/name"


async def remove(
    client: Client, key: Key, ours: Callable[[Mapping[str, Any]], bool] | None = None
) -> bool:
    """Delete the object if it is there and ours; whether it was. Raises ClusterError.

    Ours is what carries our label, or was applied by `fairlead install`, unless `ours` tells
    otherwise. It is deleted only as the one that was read.
    """
    found = await read(client, key.path)
    if found is None or not (ours(found) if ours else applied(found) or labelled(found)):
        return False
    try:
        preconditions = {"uid": found["metadata"]["uid"]}
        options = {"preconditions": preconditions, "propagationPolicy": "Background"}
        await client.delete(key.path, options)
    except ClusterError as error:
        if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            raise
    return True


async def ended(client: Client, key: Key) -> str:
    """What is missing until an object that is being deleted is gone; "" if it is, or is not."""
    found = await read(client, key.path)
    if not found or not found["metadata"].get("deletionTimestamp"):
        return ""
    conditions = (found.get("status") or {}).get("conditions") or ()
    why = [each["message"] for each in conditions if each.get("message")]
    return f"{key} is being deleted: {why[-1]}" if why else f"{key} is being deleted"


def applied(found: Mapping[str, Any]) -> bool:
    """Whether `fairlead install` has applied it."""
    managers = found["metadata"].get("managedFields") or ()
    return any(each.get("manager") == names.INSTALL_MANAGER for each in managers)


def labelled(found: Mapping[str, Any]) -> bool:
    """Whether it carries the label of all objects in the manifests."""
    return (found["metadata"].get("labels") or {}).get(NAME_LABEL) == names.MANAGER
