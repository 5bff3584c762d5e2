"""What each replica of the webhook tells at /metrics, asked through the API server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.kube.client import Client

# Seconds that one replica has.
_PATIENCE: Final = 10.0


class NoReplica(ClusterError):
    """No replica runs that could be asked."""


async def read_metrics(client: Client) -> Sequence[str]:
    """The text of each replica that runs, in Prometheus' format: see read_by_replica."""
    try:
        return [*(await read_by_replica(client)).values()]
    except NoReplica as error:
        raise NoReplica(f"{error}; --audit-log reads the API server's audit log instead") from error


async def read_by_replica(client: Client) -> Mapping[str, str]:
    """The text of each replica that runs, by the name of its pod, in Prometheus' format.

    It takes the right to get pods/proxy in Fairlead's namespace. Raises ClusterError, also if no
    replica runs: numbers that leave one out would be wrong.
    """
    # The Kubernetes client takes its time to be imported.
    from webhook.kube.replicas import running

    found = await running(client, names.NAMESPACE)
    if not found:
        raise NoReplica(
            f"no replica of the webhook runs in the namespace {names.NAMESPACE}: `fairlead doctor` "
            "says why"
        )
    texts = await asyncio.gather(*(_text(client, f"{each.name}:{each.port}") for each in found))
    return dict(zip((each.name for each in found), texts, strict=True))


async def _text(client: Client, replica: str) -> str:
    # To proxy to a pod the API server wants the number of its port.
    path = f"/api/v1/namespaces/{names.NAMESPACE}/pods/{replica}/proxy/metrics"
    text = bytearray()
    async with client.stream(path, query={}, silence=_PATIENCE) as read:
        while chunk := await read():
            text += chunk
    return text.decode("utf-8", "replace")
