"""The nodes that a DaemonSet's pods run on, and those of them that requirements keep them off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.placement.nodes import admits, obstacle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.placement.nodes import Node, Obstacle
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject, Toleration

# What its controller lets its pods tolerate (package daemon/util, AddOrUpdateDaemonPodTolerations).
_TOLERATED: Final[list[Toleration]] = [
    {"key": f"node.kubernetes.io/{condition}", "operator": "Exists"}
    for condition in (
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
        "network-unavailable",
    )
]


class HeldOff(NamedTuple):
    """How many nodes its pods run on, and those on which they would not if requirements held."""

    total: int
    nodes: Sequence[tuple[Node, Obstacle]]

    def __str__(self) -> str:
        node, why = self.nodes[0]
        return f"on {len(self.nodes)} of its {self.total} nodes, such as {node.name} ({why})"


def held_off(own: PodPlacement, held: PodPlacement, nodes: Sequence[Node]) -> HeldOff:
    """The nodes of pods that are `own`, and with requirements would be `held`."""
    own = own._replace(tolerations=[*own.tolerations, *_TOLERATED])
    held = held._replace(tolerations=own.tolerations)
    there = [node for node in nodes if admits(own, node)]
    unmet = [(node, why) for node in there if (why := obstacle(held, node)) is not None]
    return HeldOff(len(there), unmet)


def on_node(pod: JsonObject, node: str) -> JsonObject:
    """The pod as the controller makes it for this node: its own required terms are met already.

    Source: k8s.io/kubernetes/pkg/controller/daemon/util: ReplaceDaemonSetPodNodeNameNodeAffinity.
    """
    affinity = pod["spec"].get("affinity") or {}
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    of_nodes = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": fields}]
        },
    }
    return {**pod, "spec": {**pod["spec"], "affinity": {**affinity, "nodeAffinity": of_nodes}}}
