"""What each replica of the webhook tells at /metrics, asked through the API server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.kube.client import Client

_PODS: Final = f"/api/v1/namespaces/{names.NAMESPACE}/pods"
_SELECTOR: Final = "app.kubernetes.io/name=fairlead,app.kubernetes.io/component=webhook"
# The name of the container's port for health and metrics, as the manifests have it. To proxy to a
# pod the API server wants its number.
_PORT: Final = "health"
# Seconds that one replica has.
_PATIENCE: Final = 10.0


async def read_metrics(client: Client) -> Sequence[str]:
    """The text of each replica that runs, in Prometheus' format.

    It takes the right to get pods/proxy in Fairlead's namespace. Raises ClusterError, also if no
    replica runs: numbers that leave one out would be wrong.
    """
    found = await client.list(_PODS, _running, query={"labelSelector": _SELECTOR})
    running = [each for each in found.items if each]
    if not running:
        raise ClusterError(
            f"no replica of the webhook runs in the namespace {names.NAMESPACE}: `fairlead doctor` "
            "says why; --audit-log reads the API server's audit log instead"
        )
    return await asyncio.gather(*(_text(client, each) for each in running))


def _running(pod: dict[str, Any]) -> str:
    """Name and port of a pod that runs; empty of any other."""
    ports = [
        port["containerPort"]
        for container in pod["spec"]["containers"]
        for port in container.get("ports") or ()
        if port.get("name") == _PORT
    ]
    running = (pod.get("status") or {}).get("phase") == "Running"
    return f"{pod['metadata']['name']}:{ports[0]}" if running and ports else ""


async def _text(client: Client, replica: str) -> str:
    path = f"{_PODS}/{replica}/proxy/metrics"
    text = bytearray()
    async with client.stream(path, query={}, silence=_PATIENCE) as read:
        while chunk := await read():
            text += chunk
    return text.decode("utf-8", "replace")
