"""One namespace by its name, as somebody gave it to a command."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from webhook.errors import ClusterError

if TYPE_CHECKING:
    from webhook.kube.client import Client


async def read_namespace(client: Client, name: str) -> dict[str, Any]:
    """The Namespace object. Raises ClusterError; if there is none, one without a status."""
    try:
        return await client.get(f"/api/v1/namespaces/{name}")
    except ClusterError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        text = f"there is no namespace {name}; kubectl get namespaces lists them"
        raise ClusterError(text) from None
