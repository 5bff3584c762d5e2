"""Which nodes a policy's settings match, of the cluster or of autoscaled classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.placement import label_values, node_affinity, on_demand, runtime_class, topology
from webhook.placement import pod as pods
from webhook.placement.bundle import condition_of
from webhook.placement.settings import (
    CapacitySetting,
    ListSetting,
    MemberSetting,
    PlacementSetting,
    ScalarSetting,
    SpreadSetting,
    TolerationSetting,
)
from webhook.placement.tolerations import EXCLUDING_EFFECTS, passing, tolerates

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.node_groups import Alike, NodeGroups
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject, Taint, Term, Toleration

_POD: Final = pods.parse_pod({"metadata": {}, "spec": {}})


def is_of(capacity: CapacityClass, node: Node) -> bool:
    """Return whether a node is of a capacity class."""
    return node_affinity.holds(capacity.inside, node.labels, node.name)


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


def limits(setting: PlacementSetting) -> Sequence[Term]:
    """Return the terms of which a node must meet one for the setting; none if it allows every
    node."""
    if isinstance(setting, MemberSetting) and setting.map == "nodeSelector":
        return [{"matchExpressions": [label_values.equal(setting.key, str(setting.value))]}]
    return condition_of(setting) or topology.condition(keys_of_setting(setting))


def keys_of_setting(setting: PlacementSetting) -> Collection[str]:
    """Return the keys that a node must have for the setting, as others are counted by them."""
    match setting:
        case SpreadSetting():
            return topology.keys_of(spread=[setting.constraint])
        case ListSetting() if setting.name == topology.AFFINITY:
            return topology.keys_of(affinity=setting.entries)
    return ()


def nodes_meeting(conditions: Sequence[Sequence[Term]], nodes: NodeGroups) -> list[Alike]:
    """Return the nodes whose labels and names meet every one of the conditions, in groups."""
    return [each for each in groups_by(conditions, nodes) if meets(each.node, conditions)]


def groups_by(conditions: Sequence[Sequence[Term]], nodes: NodeGroups) -> Iterable[Alike]:
    """Return all nodes in groups within which the conditions do not differ."""
    return nodes.groups_for(
        _POD._replace(required=[term for terms in conditions for term in terms])
    )


def meets(node: Node, conditions: Sequence[Sequence[Term]]) -> bool:
    """Return whether labels and name of the node meet every one of the conditions."""
    return all(node_affinity.holds(terms, node.labels, node.name) for terms in conditions)


def count(groups: Iterable[Alike]) -> int:
    """Return the number of nodes."""
    return sum(each.count for each in groups)


def makers(
    classes: Iterable[CapacityClass],
    nodes: NodeGroups,
    settings: Iterable[PlacementSetting],
    tolerations: Sequence[Toleration],
) -> tuple[str, ...]:
    """Return the names of the autoscaled classes that could create a node for a pod with these
    settings, sorted."""
    autoscaled = [each for each in classes if each.autoscaled]
    if not autoscaled:
        return ()
    try:
        required = node_affinity.conjunction(
            [terms for each in settings if (terms := limits(each))]
        )
    except node_affinity.TooManyTerms:
        return ()
    pod = _POD._replace(required=required, tolerations=list(tolerations))
    return tuple(on_demand.makers(pod, autoscaled, nodes))
