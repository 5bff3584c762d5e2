"""The pods in which the webhook runs, and what each tells at /metrics, by the API server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.kube.client import Client

SELECTOR: Final = "app.kubernetes.io/name=fairlead,app.kubernetes.io/component=webhook"
# The name of the container's port for health and metrics, as the manifests have it.
_PORT: Final = "health"
# Seconds that one replica has to tell its metrics.
_PATIENCE: Final = 10.0


class Replica(NamedTuple):
    """A pod of the webhook that runs.

    key:     what no other replica will ever have: the pod's uid
    host:    its address
    port:    the number of its plain port, for health and metrics
    leaving: it is about to end
    """

    key: str
    name: str
    host: str
    port: int
    leaving: bool


def pods(namespace: str) -> str:
    """The path of a namespace's pods."""
    return f"/api/v1/namespaces/{namespace}/pods"


async def running(client: Client, namespace: str) -> Sequence[Replica]:
    """The replicas in a namespace, by name. Raises ClusterError."""
    found = await client.list(pods(namespace), _replica, query={"labelSelector": SELECTOR})
    return sorted((each for each in found.items if each), key=lambda replica: replica.name)


class NoReplica(ClusterError):
    """No replica runs that could be asked."""


async def read_by_replica(client: Client) -> Mapping[str, str]:
    """The text of each replica that runs, by the name of its pod, in Prometheus' format.

    It takes the right to get pods/proxy in Fairlead's namespace. Raises ClusterError, also if no
    replica runs: numbers that leave one out would be wrong.
    """
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


def _replica(pod: dict[str, Any]) -> Replica | None:
    metadata, status = pod["metadata"], pod.get("status") or {}
    ports = [
        port["containerPort"]
        for container in pod["spec"]["containers"]
        for port in container.get("ports") or ()
        if port.get("name") == _PORT
    ]
    host = status.get("podIP")
    if status.get("phase") != "Running" or not ports or not host:
        return None
    leaving = "deletionTimestamp" in metadata
    return Replica(metadata["uid"], metadata["name"], host, ports[0], leaving)
