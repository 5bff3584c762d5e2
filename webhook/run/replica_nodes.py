"""What a status keeps of the nodes of replicas, for pods that go while no controller runs."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.run.model.intervals import format_intervals, parse_intervals
from webhook.run.model.status import ReplicaNodes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from webhook.run.model import RoleStatus, Run
    from webhook.run.observed import Observed, OwnedPod

# Characters that a role's nodes may take in the status: those of some 600 nodes. A Run has a few
# roles, and its object must stay far below the 1.5 MiB of etcd.
MOST_TEXT: Final = 32 * 1024
# What JSON adds to each name and its indexes.
_QUOTES: Final = 6


class Place(NamedTuple):
    """Where a replica ran, and which classes it required until policies give them up."""

    node: str = ""
    capacity_class: str = ""
    fallback: tuple[str, ...] = ()


def record_nodes(
    before: RoleStatus, pods: Mapping[int, OwnedPod], observed: Observed
) -> tuple[ReplicaNodes, ...]:
    """Return the nodes of a role's pods that run, by index, as far as they fit.

    The class of a node that is not known now stays as it is in the status `before`.
    """
    groups: dict[tuple[str, tuple[str, ...]], dict[str, list[int]]] = defaultdict(dict)
    classes = {node: entry.capacity_class for entry in before.nodes for node in entry.nodes}
    for index, pod in sorted(pods.items()):
        if pod.node and pod.phase == "Running":
            health = observed.node_health(pod)
            capacity_class = health.capacity_class if health else classes.get(pod.node, "")
            group = groups[capacity_class, tuple(class_name for class_name, _ in pod.fallback)]
            group.setdefault(pod.node, []).append(index)
    entries = {(entry.capacity_class, entry.fallback): entry for entry in before.nodes}
    room, records = MOST_TEXT, []
    for (capacity_class, fallback), nodes in sorted(groups.items()):
        kept = {}
        for node, indexes in sorted(nodes.items()):
            text = format_intervals(indexes)
            room -= len(node) + len(text) + _QUOTES
            if room >= 0:
                kept[node] = text
        if kept:
            entry = entries.get((capacity_class, fallback))
            entry = entry or ReplicaNodes(capacity_class=capacity_class, fallback=fallback)
            records.append(entry.model_copy(update={"nodes": kept}))
    return tuple(records)


def recorded_places(status: RoleStatus, indexes: Collection[int]) -> dict[int, Place]:
    """Return where these replicas ran, as far as the status knows."""
    return {
        index: Place(node, entry.capacity_class, entry.fallback)
        for entry in status.nodes
        for node, text in entry.nodes.items()
        for index in parse_intervals(text)
        if index in indexes
    }


def nodes_without_pods(run: Run, pods: Mapping[str, OwnedPod]) -> Iterator[str]:
    """Yield the recorded nodes of replicas that should have a pod and have none in the cache."""
    for role, status in run.status.replicas.items():
        active = parse_intervals(status.active_indexes) if status.nodes else ()
        absent = {index for index in active if run.pod_name(role, index) not in pods}
        if absent:
            yield from (place.node for place in recorded_places(status, absent).values())
