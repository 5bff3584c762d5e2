"""The replicas of webhook and controller, and their metrics, through the API server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.api_paths import ApiPath, CollectionPath
from webhook.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.kube.client import Client

_SELECTOR: Final = "app.kubernetes.io/name=fairlead,app.kubernetes.io/component="
WEBHOOK: Final = "webhook"
CONTROLLER: Final = "controller"
# The name of the container port for health and metrics, as in the manifests.
_PORT: Final = "health"
# Seconds for one replica to send its metrics.
_METRICS_TIMEOUT_SECONDS: Final = 10.0


class Replica(NamedTuple):
    """A running pod of the webhook or of the controller.

    key:     the pod's uid, which is unique
    host:    its address
    port:    the number of its plain port, for health and metrics
    leaving: True if it is terminating
    """

    key: str
    name: str
    host: str
    port: int
    leaving: bool


def pods(namespace: str) -> CollectionPath:
    """Return the path of a namespace's pods."""
    return CollectionPath("v1", "pods", namespace)


async def running(client: Client, namespace: str, component: str = WEBHOOK) -> Sequence[Replica]:
    """List the replicas in a namespace, sorted by name. Raises ClusterError."""
    query = {"labelSelector": f"{_SELECTOR}{component}"}
    listing = await client.list(pods(namespace), _replica, query=query)
    return sorted(
        (replica for replica in listing.items if replica), key=lambda replica: replica.name
    )


class NoReplica(ClusterError):
    """No replica is running."""


async def read_by_replica(client: Client, component: str = WEBHOOK) -> Mapping[str, str]:
    """Read the metrics of each running replica, in Prometheus' format, by pod name.

    Needs the right to get pods/proxy in Fairlead's namespace. Raises ClusterError, also if no
    replica runs or one does not answer, because incomplete numbers would be wrong.
    """
    replicas = await running(client, names.NAMESPACE, component)
    if not replicas:
        raise NoReplica(
            f"no replica of the {component} runs in the namespace {names.NAMESPACE}: run "
            "`fairlead doctor`"
        )
    texts = await asyncio.gather(
        *(_text(client, f"{replica.name}:{replica.port}") for replica in replicas)
    )
    return dict(zip((replica.name for replica in replicas), texts, strict=True))


async def read_unmet(client: Client, name: str, port: int) -> Mapping[str, str]:
    """Read the conditions that keep a replica from being ready, each with its reason.

    Needs the same right, and raises ClusterError, if the replica does not answer.
    """
    try:
        answer: Mapping[str, Any] = await client.get(
            _path(f"{name}:{port}", "readyz"), timeout=_METRICS_TIMEOUT_SECONDS
        )
    except ClusterError as error:
        # It answers 503 with them; kubectl prints nothing then.
        if error.answer is None:
            raise
        answer = error.answer
    conditions = answer.get("conditions")
    return {
        condition: str(state.get("reason") or "no reason given")
        for condition, state in (conditions if isinstance(conditions, dict) else {}).items()
        if isinstance(state, dict) and not state.get("ready")
    }


def _path(replica: str, page: str) -> ApiPath:
    # The API server's pod proxy needs the port as a number.
    return ApiPath("api", "v1", "namespaces", names.NAMESPACE, "pods", replica, "proxy", page)


async def _text(client: Client, replica: str) -> str:
    path = _path(replica, "metrics")
    text = bytearray()
    async with client.stream(path, query={}, silence=_METRICS_TIMEOUT_SECONDS) as read:
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
