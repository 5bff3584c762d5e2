"""Takes one object out of the cluster, if it is ours."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.errors import ClusterError
from webhook.installation.apply import read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.installation.kinds import Key
    from webhook.kube.client import Client

NAME_LABEL: Final = "app.kubernetes.io/name"


async def remove(client: Client, key: Key, *, only_if_applied: bool = False) -> bool:
    """Delete the object if it is there and ours; whether it was. Raises ClusterError.

    Ours is what carries our label, or was applied by `fairlead install`; with `only_if_applied`
    the latter alone. It is deleted only as the one that was read.
    """
    found = await read(client, key.path)
    if found is None or not (applied(found) or (not only_if_applied and labelled(found))):
        return False
    try:
        preconditions = {"uid": found["metadata"]["uid"]}
        options = {"preconditions": preconditions, "propagationPolicy": "Background"}
        await client.delete(key.path, options)
    except ClusterError as error:
        if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            raise
    return True


def applied(found: Mapping[str, Any]) -> bool:
    """Whether `fairlead install` has applied it."""
    managers = found["metadata"].get("managedFields") or ()
    return any(each.get("manager") == names.INSTALL_MANAGER for each in managers)


def labelled(found: Mapping[str, Any]) -> bool:
    """Whether it carries the label of all objects in the manifests."""
    return (found["metadata"].get("labels") or {}).get(NAME_LABEL) == names.MANAGER
