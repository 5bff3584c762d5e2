"""The pods in which the webhook runs, and where each tells its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.kube.client import Client

SELECTOR: Final = "app.kubernetes.io/name=fairlead,app.kubernetes.io/component=webhook"
# The name of the container's port for health and metrics, as the manifests have it.
_PORT: Final = "health"


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
