"""What a cluster tells of where pods go, read once: labels of namespaces, the default priority."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.cli.offline import default_priority_class, namespaces_among
from webhook.kube.one_namespace import read_namespace
from webhook.workloads.object import answered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.kube.client import Client

_SCHEDULING: Final = "scheduling.k8s.io/v1"


async def read_labels(client: Client, namespace: str) -> dict[str, Mapping[str, str]]:
    """Labels by namespace, of this one or of all. Raises ClusterError."""
    if namespace:
        spaces = [await read_namespace(client, namespace)]
    else:
        spaces = (await client.list("/api/v1/namespaces", _labels_only)).items
    return namespaces_among([answered("v1", "Namespace", each) for each in spaces])


async def read_default_class(client: Client) -> str:
    """The name of the default PriorityClass; empty if there is none. Raises ClusterError."""
    listed = await client.list(
        f"/apis/{_SCHEDULING}/priorityclasses",
        lambda each: answered(_SCHEDULING, "PriorityClass", each),
    )
    return default_priority_class(listed.items) or ""


def _labels_only(namespace: dict[str, Any]) -> dict[str, Any]:
    metadata = namespace["metadata"]
    return {"metadata": {"name": metadata["name"], "labels": metadata.get("labels") or {}}}
