"""The nodes of a DaemonSet's pods, and those that requirements exclude."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.placement.nodes import admits, closed_to
from webhook.placement.pod import REQUIRED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.placement.nodes import Node, Obstacle
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject, Toleration

# Tolerations that the DaemonSet controller adds (package daemon/util,
# AddOrUpdateDaemonPodTolerations).
TOLERATED: Final[list[Toleration]] = [
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
    """How many nodes its pods run on, and those that requirements would exclude."""

    total: int
    nodes: Sequence[tuple[Node, Obstacle]]

    def __str__(self) -> str:
        node, why = self.nodes[0]
        return f"on {len(self.nodes)} of its {self.total} nodes, such as {node.name} ({why})"


def held_off(own: PodPlacement, held: PodPlacement, nodes: Sequence[Node]) -> HeldOff:
    """Return the nodes of pods with placement `own`, which with requirements would be `held`."""
    there = template_nodes(own, nodes)
    held = held._replace(tolerations=[*own.tolerations, *TOLERATED])
    unmet = [(node, why) for node in there if (why := closed_to(held, node)) is not None]
    return HeldOff(len(there), unmet)


def template_nodes(own: PodPlacement, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes for which the controller creates pods of a template with placement `own`."""
    own = own._replace(tolerations=[*own.tolerations, *TOLERATED])
    return [node for node in nodes if admits(own, node)]


def on_node(pod: JsonObject, node: str) -> JsonObject:
    """Return the pod as the controller creates it for this node; its required terms are already
    met.

    Source: k8s.io/kubernetes/pkg/controller/daemon/util: ReplaceDaemonSetPodNodeNameNodeAffinity.
    """
    affinity = pod["spec"].get("affinity") or {}
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    of_nodes = {
        **(affinity.get("nodeAffinity") or {}),
        REQUIRED: {"nodeSelectorTerms": [{"matchFields": fields}]},
    }
    return {**pod, "spec": {**pod["spec"], "affinity": {**affinity, "nodeAffinity": of_nodes}}}
