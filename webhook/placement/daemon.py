"""The nodes of a DaemonSet's pods, and those that requirements exclude."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook.placement.nodes import Obstacle, admits, closed_to, excluding, taint_text
from webhook.placement.pod import REQUIRED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject


class HeldOff(NamedTuple):
    """How many nodes its pods run on, and those that requirements would exclude."""

    total: int
    nodes: Sequence[tuple[Node, Obstacle]]

    def __str__(self) -> str:
        node, why = self.nodes[0]
        return f"on {len(self.nodes)} of its {self.total} nodes, such as {node.name} ({why})"


def held_off(placement: PodPlacement, held: PodPlacement, nodes: Sequence[Node]) -> HeldOff:
    """Return the nodes of pods with placement `placement`, which with requirements would be `held`.

    `placement` has the controller's tolerations, as its pods have them.
    """
    target_nodes = template_nodes(placement, nodes)
    held = held._replace(tolerations=placement.tolerations)
    unmet = [(node, why) for node in target_nodes if (why := closed_to(held, node)) is not None]
    return HeldOff(len(target_nodes), unmet)


def stranded(placement: PodPlacement, held: PodPlacement, nodes: Sequence[Node]) -> HeldOff:
    """Return the nodes for which the controller creates pods that stay Pending.

    It goes by its template, and the pods have lost a toleration by a policy. Those that
    requirements exclude get no pod.
    """
    off = held_off(placement, held, nodes)
    rejected = {node.name for node, _ in off.nodes}
    lost = [
        (node, Obstacle(f"untolerated taint {taint_text(taint)}", "the node has it"))
        for node in template_nodes(placement, nodes)
        if node.name not in rejected and (taint := excluding(held, node)) is not None
    ]
    return HeldOff(off.total, lost)


def template_nodes(placement: PodPlacement, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes for which the controller creates pods with placement `placement`.

    `placement` has the controller's tolerations.
    """
    return [node for node in nodes if admits(placement, node)]


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
