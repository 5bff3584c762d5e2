"""Read a cluster once: its policies, namespace labels and default priority class."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook.cli.objects import default_priority_class
from webhook.cli.offline import namespaces_among
from webhook.errors import ClusterError
from webhook.evaluation.plugins import PluginInputs
from webhook.kube.namespaces import read_namespace
from webhook.policy.cluster_objects import load_objects
from webhook.workloads.object import from_answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.kube.client import Client
    from webhook.placement.shapes import JsonObject
    from webhook.policy.load import Loaded

_SCHEDULING: Final = "scheduling.k8s.io/v1"
_CLASSES: Final = {
    "PriorityClass": f"/apis/{_SCHEDULING}/priorityclasses",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
}


async def read_labels(client: Client, namespace: str) -> dict[str, Mapping[str, str]]:
    """Labels by namespace, of this one or of all. Raises ClusterError."""
    if namespace:
        spaces = [await read_namespace(client, namespace)]
    else:
        spaces = (await client.list("/api/v1/namespaces", _labels_only)).items
    return namespaces_among([from_answer("v1", "Namespace", each) for each in spaces])


async def read_default_class(client: Client) -> str:
    """The name of the default PriorityClass; empty if there is none. Raises ClusterError."""
    listed = await client.list(
        _CLASSES["PriorityClass"],
        lambda each: from_answer(_SCHEDULING, "PriorityClass", each),
    )
    return default_priority_class(listed.items) or ""


async def read_classes(client: Client) -> dict[str, dict[str, JsonObject]]:
    """Objects by kind and name that policies may name (refused_pods.KINDS), if they may be listed.

    Raises ClusterError.
    """
    listed = {kind: await _listed(client, path) for kind, path in _CLASSES.items()}
    return {
        kind: {each["metadata"]["name"]: each for each in found}
        for kind, found in listed.items()
        if found is not None
    }


async def read_plugin_inputs(
    client: Client, classes: Mapping[str, Mapping[str, JsonObject]], namespaces: Iterable[str]
) -> PluginInputs:
    """What plugins read: the RuntimeClasses among `classes`, and LimitRanges of these namespaces.

    The namespace "" is all of them. Raises ClusterError.
    """
    ranges: dict[str, list[JsonObject]] | None = {}
    for name in dict.fromkeys(namespaces):
        within = f"/namespaces/{name}" if name else ""
        found = await _listed(client, f"/api/v1{within}/limitranges")
        if found is None or ranges is None:
            ranges = None
            continue
        for each in found:
            ranges.setdefault(each["metadata"]["namespace"], []).append(each)
    return PluginInputs(classes.get("RuntimeClass", {}), ranges)


async def _listed(client: Client, path: str) -> list[JsonObject] | None:
    """All objects of a list; None if they may not be listed, or their kind is not served."""
    try:
        return (await client.list(path, lambda each: each)).items
    except ClusterError as error:
        if error.status not in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
            raise
        return None


def _labels_only(namespace: dict[str, Any]) -> dict[str, Any]:
    metadata = namespace["metadata"]
    return {"metadata": {"name": metadata["name"], "labels": metadata.get("labels") or {}}}


async def read_policies(client: Client) -> Loaded:
    """The set of the policies, classes and exceptions in the cluster, as they are now.

    Raises ClusterError, with the cure if the cluster has no such kinds, and InvalidDocuments with
    every finding: a finding's place is an object, `placementpolicies/spot`.
    """
    # The Kubernetes client takes its time to be imported, and who compares folders does without.
    from webhook.kube.policy_objects import read_objects

    return load_objects(await read_objects(client))
