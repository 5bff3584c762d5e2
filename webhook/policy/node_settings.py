"""Which nodes the settings of a policy choose, and which of their taints they do not tolerate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.placement import node_affinity
from webhook.placement.node_settings import condition_of
from webhook.placement.settings import (
    CapacitySetting,
    MemberSetting,
    PlacementSetting,
    TolerationSetting,
)
from webhook.placement.tolerations import EXCLUDING_EFFECTS, passing, tolerates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import Taint, Term, Toleration


def of_class(capacity: CapacityClass, nodes: Iterable[Node]) -> list[Node]:
    """The nodes of a capacity class."""
    return [node for node in nodes if is_of(capacity, node)]


def is_of(capacity: CapacityClass, node: Node) -> bool:
    """Whether a node is of a capacity class."""
    return _meets(capacity.inside, node)


def tolerations_of(settings: Iterable[PlacementSetting]) -> Iterator[Toleration]:
    """What a pod tolerates by the settings, those about capacity classes among them."""
    for setting in settings:
        if isinstance(setting, TolerationSetting):
            yield setting.toleration
        elif isinstance(setting, CapacitySetting) and setting.mode.tolerates:
            yield from setting.capacity.tolerations


def untolerated(node: Node, tolerations: Sequence[Toleration]) -> list[Taint]:
    """The lasting taints that keep a pod with these tolerations off the node."""
    return [
        taint
        for taint in node.taints
        if taint.get("effect") in EXCLUDING_EFFECTS
        and not passing(taint)
        and not any(tolerates(toleration, taint) for toleration in tolerations)
    ]


def holds(setting: PlacementSetting, node: Node) -> bool:
    """Whether a node's labels meet a setting; one that asks nothing of labels is met."""
    if isinstance(setting, MemberSetting):
        return setting.map != "nodeSelector" or bool(node.labels.get(setting.key) == setting.value)
    condition = condition_of(setting)
    return condition is None or _meets(condition, node)


def _meets(terms: Iterable[Term], node: Node) -> bool:
    return node_affinity.holds(terms, node.labels, node.name)
