"""Which autoscaled classes could make a node that the settings of a policy choose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.placement import node_affinity, on_demand
from webhook.placement import pod as pods
from webhook.placement.node_groups import NodeGroups
from webhook.placement.settings import CapacitySetting, MemberSetting, RequiredSetting

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node
    from webhook.placement.settings import PlacementSetting
    from webhook.placement.shapes import Term, Toleration


class Makers:
    """The autoscaled classes of a policy set, beside the nodes that there are."""

    def __init__(self, classes: Iterable[CapacityClass], nodes: Sequence[Node]) -> None:
        self._classes = [each for each in classes if each.autoscaled]
        self._groups = NodeGroups(nodes if self._classes else ())

    def of(
        self, limits: Iterable[PlacementSetting], tolerations: Sequence[Toleration]
    ) -> tuple[str, ...]:
        """The names of those that could make a node for a pod of these settings, sorted."""
        if not self._classes:
            return ()
        selector: dict[str, str] = {}
        conditions: list[Sequence[Term]] = []
        for setting in limits:
            match setting:
                case MemberSetting():
                    # Of two that want one key otherwise there is no such node.
                    if selector.setdefault(setting.key, setting.value) != setting.value:
                        return ()
                case RequiredSetting():
                    conditions.append(setting.terms)
                case CapacitySetting() if setting.condition is not None:
                    conditions.append(setting.condition)
        try:
            required = node_affinity.conjunction(conditions)
        except node_affinity.TooManyTerms:
            return ()
        pod = pods.read({"metadata": {}, "spec": {"nodeSelector": selector}})
        pod = pod._replace(required=required, tolerations=list(tolerations))
        return tuple(on_demand.makers(pod, self._classes, self._groups))
