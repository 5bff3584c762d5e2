"""Sets of nodes as whole numbers, one bit a node: a thousand policies ask the same of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from webhook.placement.settings import CapacitySetting, MemberSetting, RequiredSetting
from webhook.policy.node_settings import holds, is_of, untolerated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node
    from webhook.placement.settings import PlacementSetting
    from webhook.placement.shapes import Taint, Toleration


class NodeMasks:
    """The nodes, in their order; bit 0 is the first. What was asked once is remembered."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self.all = (1 << len(nodes)) - 1
        self._values: dict[str, dict[str, int]] = {}
        self._known: dict[object, int] = {}
        self._closed = self._by_taints()

    def chosen(self, settings: Iterable[PlacementSetting]) -> int:
        """The nodes whose labels meet every one of the settings."""
        mask = self.all
        for setting in settings:
            mask &= self._of(setting)
        return mask

    def of_class(self, capacity: CapacityClass) -> int:
        """The nodes of a capacity class."""
        return self._once(("class", capacity.name), lambda node: is_of(capacity, node))

    def tolerated(self, mask: int, tolerations: Sequence[Toleration]) -> int:
        """Those of the nodes that have no lasting taint but tolerated ones."""
        for nodes, node in self._closed:
            if mask & nodes and untolerated(node, tolerations):
                mask &= ~nodes
        return mask

    def taints(
        self, mask: int, tolerations: Sequence[Toleration]
    ) -> Iterable[tuple[Sequence[Taint], int]]:
        """The lasting taints that are not tolerated, with on how many of the nodes these are."""
        for nodes, node in self._closed:
            if mask & nodes:
                yield untolerated(node, tolerations), (mask & nodes).bit_count()

    def _of(self, setting: PlacementSetting) -> int:
        match setting:
            case MemberSetting() if setting.map == "nodeSelector":
                return self._labelled(setting.key).get(str(setting.value), 0)
            case CapacitySetting():
                key: object = (setting.capacity.name, setting.mode)
            case RequiredSetting():
                key = orjson.dumps(setting.terms)
            case _:
                return self.all
        return self._once(key, lambda node: holds(setting, node))

    def _labelled(self, key: str) -> dict[str, int]:
        """By the value of a label, the nodes that have it."""
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = {}
            for at, node in enumerate(self._nodes):
                value = node.labels.get(key)
                if value is not None:
                    found[value] = found.get(value, 0) | 1 << at
        return found

    def _once(self, key: object, holds_for: Callable[[Node], bool]) -> int:
        mask = self._known.get(key)
        if mask is None:
            mask = sum(1 << at for at, node in enumerate(self._nodes) if holds_for(node))
            self._known[key] = mask
        return mask

    def _by_taints(self) -> list[tuple[int, Node]]:
        """The nodes with the same taints, and one of them."""
        masks: dict[tuple[object, ...], int] = {}
        first: dict[tuple[object, ...], Node] = {}
        for at, node in enumerate(self._nodes):
            key = tuple([(t.get("key"), t.get("value"), t.get("effect")) for t in node.taints])
            masks[key] = masks.get(key, 0) | 1 << at
            first.setdefault(key, node)
        return [(mask, first[key]) for key, mask in masks.items()]
