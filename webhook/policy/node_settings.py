"""Which nodes a policy's settings match, of the cluster or of autoscaled classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from webhook.placement import node_affinity, on_demand, runtime_class
from webhook.placement import pod as pods
from webhook.placement.bundle import condition_of
from webhook.placement.node_groups import NodeGroups
from webhook.placement.settings import (
    CapacitySetting,
    MemberSetting,
    PlacementSetting,
    RequiredSetting,
    ScalarSetting,
    TolerationSetting,
)
from webhook.placement.tolerations import EXCLUDING_EFFECTS, passing, tolerates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject, Taint, Term, Toleration


def is_of(capacity: CapacityClass, node: Node) -> bool:
    """Return whether a node is of a capacity class."""
    return _meets(capacity.inside, node)


def tolerations_of(settings: Iterable[PlacementSetting]) -> Iterator[Toleration]:
    """Yield the tolerations of the settings, including those of capacity classes.

    A RuntimeClass among them is not known, and may tolerate every taint.
    """
    for setting in settings:
        if isinstance(setting, TolerationSetting):
            yield setting.toleration
        elif isinstance(setting, CapacitySetting) and setting.mode.tolerates:
            yield from setting.capacity.tolerations
        elif isinstance(setting, ScalarSetting) and setting.name == runtime_class.FIELD:
            yield runtime_class.EVERY_TAINT


def with_runtime_class(
    settings: Iterable[PlacementSetting], known: Mapping[str, JsonObject]
) -> Iterator[PlacementSetting]:
    """Yield the settings, with what the API server merges of a RuntimeClass in its place.

    `known` are node.k8s.io/v1 RuntimeClasses by name; of another class its name stays.
    """
    for setting in settings:
        found = None
        if isinstance(setting, ScalarSetting) and setting.name == runtime_class.FIELD:
            found = known.get(str(setting.value))
        if found is None:
            yield setting
            continue
        scheduling = found.get("scheduling") or {}
        policy, part = setting.policy, setting.part
        for key, value in (scheduling.get("nodeSelector") or {}).items():
            yield MemberSetting(policy=policy, part=part, map="nodeSelector", key=key, value=value)
        for each in scheduling.get("tolerations") or ():
            yield TolerationSetting(policy=policy, part=part, toleration=each)


def untolerated(node: Node, tolerations: Sequence[Toleration]) -> list[Taint]:
    """Return the permanent taints of the node that these tolerations do not cover."""
    return [
        taint
        for taint in node.taints
        if taint.get("effect") in EXCLUDING_EFFECTS
        and not passing(taint)
        and not any(tolerates(toleration, taint) for toleration in tolerations)
    ]


def holds(setting: PlacementSetting, node: Node) -> bool:
    """Return whether a node's labels meet a setting; a setting without conditions on labels is
    met."""
    if isinstance(setting, MemberSetting):
        return setting.map != "nodeSelector" or bool(node.labels.get(setting.key) == setting.value)
    condition = condition_of(setting)
    return condition is None or _meets(condition, node)


def _meets(terms: Iterable[Term], node: Node) -> bool:
    return node_affinity.holds(terms, node.labels, node.name)


class NodeMasks:
    """Sets of nodes as bit masks, in the nodes' order; bit 0 is the first. Results are cached."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self.all = (1 << len(nodes)) - 1
        self._values: dict[str, dict[str, int]] = {}
        self._known: dict[object, int] = {}
        self._closed = self._by_taints()

    def mask_for(self, settings: Iterable[PlacementSetting]) -> int:
        """Return the nodes whose labels meet every one of the settings."""
        mask = self.all
        for setting in settings:
            mask &= self._mask(setting)
        return mask

    def of_class(self, capacity: CapacityClass) -> int:
        """Return the nodes of a capacity class."""
        return self._once(("class", capacity.name), lambda node: is_of(capacity, node))

    def tolerated(self, mask: int, tolerations: Sequence[Toleration]) -> int:
        """Return the nodes whose permanent taints are all tolerated."""
        for nodes, node in self._closed:
            if mask & nodes and untolerated(node, tolerations):
                mask &= ~nodes
        return mask

    def taints(
        self, mask: int, tolerations: Sequence[Toleration]
    ) -> Iterable[tuple[Sequence[Taint], int]]:
        """Return the permanent taints that are not tolerated, each with the number of nodes."""
        for nodes, node in self._closed:
            if mask & nodes:
                yield untolerated(node, tolerations), (mask & nodes).bit_count()

    def _mask(self, setting: PlacementSetting) -> int:
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
        """Return the nodes with the same taints, and one of them."""
        masks: dict[tuple[object, ...], int] = {}
        first: dict[tuple[object, ...], Node] = {}
        for at, node in enumerate(self._nodes):
            key = tuple([(t.get("key"), t.get("value"), t.get("effect")) for t in node.taints])
            masks[key] = masks.get(key, 0) | 1 << at
            first.setdefault(key, node)
        return [(mask, first[key]) for key, mask in masks.items()]


class Makers:
    """The autoscaled classes of a policy set, with the existing nodes."""

    def __init__(self, classes: Iterable[CapacityClass], nodes: Sequence[Node]) -> None:
        self._classes = [each for each in classes if each.autoscaled]
        self._groups = NodeGroups(nodes if self._classes else ())

    def makers_for(
        self, limits: Iterable[PlacementSetting], tolerations: Sequence[Toleration]
    ) -> tuple[str, ...]:
        """Return the names of those that could create a node for a pod with these settings,
        sorted."""
        if not self._classes:
            return ()
        selector: dict[str, str] = {}
        conditions: list[Sequence[Term]] = []
        for setting in limits:
            match setting:
                case MemberSetting():
                    # Two settings with different values of one key: there is no such node.
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
        pod = pods.parse_pod({"metadata": {}, "spec": {"nodeSelector": selector}})
        pod = pod._replace(required=required, tolerations=list(tolerations))
        return tuple(on_demand.makers(pod, self._classes, self._groups))
