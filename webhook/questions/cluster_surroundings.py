"""Read a cluster once: its policies, and what else evaluations depend on."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook.api_paths import NAMESPACES, CollectionPath
from webhook.cluster_objects.namespaces import read_namespace
from webhook.cluster_objects.watched_objects import CLASS_PATHS, FLAVORS
from webhook.decision.arrival import Cluster
from webhook.errors import PassOver
from webhook.evaluation.plugins import UNREAD, PluginInputs, Used, inputs_of, merge_inputs
from webhook.evaluation.selecting_objects import KINDS, selector_only
from webhook.evaluation.world import World
from webhook.identity import identify
from webhook.judgement.set_judgement import load_objects
from webhook.placement.nodes import Node, by_name
from webhook.placement.pod_requests import add_requests, requests
from webhook.questions.dry_run import read_running_plugins
from webhook.questions.objects import default_priority_class, namespaces_among
from webhook.run.controller_reference import controller_of
from webhook.workloads.object import from_answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.kube.client import Client
    from webhook.placement.shapes import JsonObject
    from webhook.policy.load import Loaded
    from webhook.policy.policy_set import PolicySet
    from webhook.sources.table import SourceTable
    from webhook.workloads.object import Object

_PODS: Final = CollectionPath("v1", "pods")
_ON_NODES: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
# Pods of a cluster, beyond which what they request is not counted: some 10 KB each are read.
_MOST_PODS: Final = 20_000
# The namespace of a dry run, if all namespaces are read.
_USUAL: Final = "default"
_SCHEDULING: Final = "scheduling.k8s.io/v1"


async def read_labels(client: Client, namespace: str = "") -> Mapping[str, Mapping[str, str]]:
    """Labels by namespace, of this one or of all. Raises ClusterError."""
    if namespace:
        spaces = [await read_namespace(client, namespace)]
    else:
        spaces = (await client.list(NAMESPACES, _labels_only)).items
    return namespaces_among(
        [from_answer("v1", "Namespace", listed_namespace) for listed_namespace in spaces]
    )


async def read_world(
    client: Client,
    policies: PolicySet,
    namespaces: Sequence[str],
    nodes: Sequence[Node] | None,
    notes: list[str],
) -> World:
    """Return what evaluations depend on, as it is in the cluster now; of these namespaces, or of
    all.

    What may not be read is unknown, and added to `notes`, and so is what the webhook is not sent.
    Raises ClusterError.
    """
    from webhook.questions.live.missing_stamp import read_configuration, sending_notes

    wanted = list(dict.fromkeys(namespaces)) or [""]
    labels: dict[str, Mapping[str, str]] = {}
    for name in wanted:
        with PassOver(HTTPStatus.FORBIDDEN) as passed:
            labels |= await read_labels(client, name)
        if passed.status:
            notes.append(_unread("namespaces"))
    classes = await read_classes(client)
    if "PriorityClass" not in classes:
        notes.append(_unread("priorityclasses"))
    priorities = classes.get("PriorityClass", {}).values()
    default = default_priority_class(
        [from_answer(_SCHEDULING, "PriorityClass", priority_class) for priority_class in priorities]
    )
    plugins = await read_plugin_inputs(client, classes, wanted)
    if nodes is not None:
        # Only which nodes admit a pod depends on them.
        running = await read_running_plugins(client, wanted[0] or _USUAL)
        plugins = plugins._replace(running=running)
    configuration = await read_configuration(client)
    notes += sending_notes(configuration)
    cluster = Cluster(default or "", node=by_name(nodes))
    now = datetime.now(UTC)
    return World(policies, cluster, labels, now, configuration, classes, plugins, nodes, None, None)


def _unread(what: str) -> str:
    return f"you may not read {what}: conditions that depend on them are unknown"


async def read_daemon_sets(client: Client, notes: list[str]) -> list[Object]:
    """Return the cluster's DaemonSets; a note is added if they may not be listed.

    Raises ClusterError.
    """
    made = await _listed(client, CollectionPath("apps/v1", "daemonsets"))
    if made is None:
        notes.append("you may not list daemonsets: room for pods counts the nodes without theirs")
    return [from_answer("apps/v1", "DaemonSet", manifest) for manifest in made or ()]


async def read_beside(client: Client, notes: list[str], sources: SourceTable) -> PluginInputs:
    """Return what runs on the nodes beside a pod: DaemonSets, and what pods request of each node.

    What may not be read is unknown, and added to `notes`. Raises ClusterError.
    """
    daemon_sets = await read_daemon_sets(client, notes)
    by_node: dict[str, dict[str, int]] = {}
    by_run: dict[tuple[str, str], dict[str, dict[str, int]]] = {}
    count = 0
    with PassOver(HTTPStatus.FORBIDDEN) as passed:
        async for page, _ in client.pages(_PODS, query={"fieldSelector": _ON_NODES}):
            count += len(page)
            if count > _MOST_PODS:
                break
            for pod in page:
                asked = {"pods": 1, **requests(pod["spec"])}
                metadata, node = pod["metadata"], pod["spec"]["nodeName"]
                add_requests(by_node.setdefault(node, {}), asked)
                if run := _run_of(metadata, sources):
                    of_run = by_run.setdefault((metadata["namespace"], run), {})
                    add_requests(of_run.setdefault(node, {}), asked)
    if passed.status:
        notes.append("you may not list pods of all namespaces: room now is unknown")
    if count > _MOST_PODS:
        notes.append(f"the cluster has more than {_MOST_PODS:,} pods: room now is not counted")
    is_read = not passed.status and count <= _MOST_PODS
    used = Used(by_node, by_run) if is_read else None
    return UNREAD._replace(daemon_sets=daemon_sets, used=used)


def _run_of(metadata: JsonObject, sources: SourceTable) -> str:
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    identity = identify(labels, annotations, {}, sources)
    owner = controller_of({"metadata": metadata})
    owner_title = f"{owner['kind']}/{owner['name']}" if owner else ""
    return (identity and identity.run) or owner_title


async def read_classes(client: Client) -> dict[str, dict[str, JsonObject]]:
    """Objects by kind and name that pods may name (CLASS_PATHS), if they may be listed.

    A kind that the cluster does not define has none. Raises ClusterError.
    """
    listed = {kind: await _listed(client, path, absent=[]) for kind, path in CLASS_PATHS.items()}
    return {
        kind: {manifest["metadata"]["name"]: manifest for manifest in manifests}
        for kind, manifests in listed.items()
        if manifests is not None
    }


async def read_plugin_inputs(
    client: Client, classes: Mapping[str, Mapping[str, JsonObject]], namespaces: Iterable[str]
) -> PluginInputs:
    """Return what plugins read: the RuntimeClasses among `classes`, and LimitRanges of these
    namespaces.

    The namespace "" is all of them. Raises ClusterError.
    """
    ranges: dict[str, list[JsonObject]] | None = {}
    for name in dict.fromkeys(namespaces):
        listed_ranges = await _listed(client, CollectionPath("v1", "limitranges", name or None))
        if listed_ranges is None or ranges is None:
            ranges = None
            continue
        for limit_range in listed_ranges:
            ranges.setdefault(limit_range["metadata"]["namespace"], []).append(limit_range)
    flavors = await _listed(client, FLAVORS, absent=[])
    return inputs_of(classes)._replace(limit_ranges=ranges, flavors=flavors)


async def with_selecting(
    client: Client, world: World, namespaces: Iterable[str], notes: list[str]
) -> World:
    """Return the world with what selects pods by labels in these namespaces, if policies set any.

    Objects that the world has already stay. Kinds that may not be listed are added to `notes`.
    Raises ClusterError.
    """
    if not world.policies.sets_labels:
        return world
    selecting: dict[str, list[tuple[str, JsonObject]]] = {}
    for kind, row in KINDS.items():
        for name in dict.fromkeys(namespaces):
            path = CollectionPath(row.api_version, row.resource, name)
            with PassOver(HTTPStatus.FORBIDDEN) as passed:
                for manifest in (await client.list(path, selector_only)).items:
                    selecting.setdefault(manifest["metadata"]["namespace"], []).append(
                        (kind, manifest)
                    )
            if passed.status:
                unknown = "whether labels of policies concern them is unknown"
                notes.append(f"you may not list {row.resource}: {unknown}")
                break
    return replace(world, plugins=merge_inputs(world.plugins, UNREAD._replace(selecting=selecting)))


async def _listed(
    client: Client, path: CollectionPath, absent: list[JsonObject] | None = None
) -> list[JsonObject] | None:
    """Return all objects of a list; None if they may not be listed, `absent` if their kind is not
    served."""
    with PassOver(HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND) as passed:
        return (await client.list(path, lambda manifest: manifest)).items
    return absent if passed.status == HTTPStatus.NOT_FOUND else None


def _labels_only(namespace: dict[str, Any]) -> dict[str, Any]:
    metadata = namespace["metadata"]
    kept = {key: metadata.get(key) or {} for key in ("labels", "annotations")}
    return {"metadata": {"name": metadata["name"], **kept}}


async def read_policies(client: Client) -> Loaded:
    """Return the set of the policies, classes and exceptions in the cluster, as they are now.

    Raises ClusterError, with the cure if the cluster has no such kinds, and InvalidDocuments with
    every finding: a finding's place is an object, `placementpolicies/spot`.
    """
    # The Kubernetes client takes its time to be imported, and who compares folders does without.
    from webhook.cluster_objects.policy_objects import read_whole_objects

    return load_objects(await read_whole_objects(client))
