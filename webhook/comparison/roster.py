"""Nodes, counted by what a pod could tell them apart by."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from webhook.comparison.difference import Nodes
from webhook.placement import node_affinity
from webhook.placement.nodes import obstacle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement

# Of what shuts a pod out of all nodes, so many conditions are told.
_TOLD: Final = 3


class Roster:
    """Tells how many nodes admit a pod. Of nodes that are alike to it one is looked at."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._alike: dict[frozenset[str], Sequence[tuple[Node, int]]] = {}

    def of(self, placement: PodPlacement) -> Nodes:
        """How many admit it; if none does, the conditions that shut most of them out."""
        admitted = 0
        shut: Counter[str] = Counter()
        for node, count in self._groups(placement):
            found = obstacle(placement, node)
            if found is None:
                admitted += count
            else:
                shut[found.condition] += count
        if admitted:
            return Nodes(admitted, len(self._nodes))
        most = sorted(shut.items(), key=lambda each: (-each[1], each[0]))[:_TOLD]
        return Nodes(0, len(self._nodes), tuple(most))

    def _groups(self, placement: PodPlacement) -> Sequence[tuple[Node, int]]:
        """Nodes with how many there are of each, so far as this pod can tell."""
        terms = placement.required or ()
        if placement.node_name or any(term.get("matchFields") for term in terms):
            return [(node, 1) for node in self._nodes]
        keys = frozenset(node_affinity.keys(terms)).union(placement.node_selector)
        found = self._alike.get(keys)
        if found is None:
            found = self._alike[keys] = _grouped(self._nodes, keys)
        return found


def _grouped(nodes: Sequence[Node], keys: frozenset[str]) -> Sequence[tuple[Node, int]]:
    ordered = sorted(keys)
    groups: dict[tuple[object, ...], list[Node]] = {}
    for node in nodes:
        labels = tuple(node.labels.get(key) for key in ordered)
        taints = tuple((t.get("key"), t.get("value"), t.get("effect")) for t in node.taints)
        groups.setdefault((labels, taints, node.unschedulable), []).append(node)
    return [(alike[0], len(alike)) for alike in groups.values()]
