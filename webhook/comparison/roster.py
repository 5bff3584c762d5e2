"""How many nodes admit a pod, what shuts it out of the others, and who could make one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from webhook.comparison.difference import Nodes
from webhook.placement import on_demand
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import obstacle

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement

# Of what shuts a pod out of all nodes, so many conditions are told.
_TOLD: Final = 3


class Roster:
    """Tells how many nodes admit a pod. Of nodes that are alike to it one is looked at."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._groups = NodeGroups(nodes)

    def of(self, placement: PodPlacement, classes: Iterable[CapacityClass] = ()) -> Nodes:
        """How many admit it; if none does, the conditions that shut most of them out.

        And which of the classes could make one on demand.
        """
        admitted = 0
        shut: Counter[str] = Counter()
        for alike in self._groups.of(placement):
            found = obstacle(placement, alike.node)
            if found is None:
                admitted += alike.count
            else:
                shut[found.condition] += alike.count
        if admitted:
            return Nodes(admitted, len(self._groups))
        most = sorted(shut.items(), key=lambda each: (-each[1], each[0]))[:_TOLD]
        made = on_demand.makers(placement, classes, self._groups)
        return Nodes(0, len(self._groups), tuple(most), tuple(made))
