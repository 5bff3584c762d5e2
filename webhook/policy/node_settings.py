"""Which nodes a policy's settings match, of the cluster or of autoscaled classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.placement import node_affinity, on_demand, runtime_class, topology
from webhook.placement import pod as pods
from webhook.placement.settings import MemberSetting, ScalarSetting, TolerationSetting
from webhook.placement.tolerations import EXCLUDING_EFFECTS, passing, tolerates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.node_groups import Alike, NodeGroups
    from webhook.placement.nodes import Node
    from webhook.placement.placement_setting import PlacementSetting
    from webhook.placement.shapes import JsonObject, Taint, Term, Toleration

_POD: Final = pods.parse_pod({"metadata": {}, "spec": {}})


def is_of(capacity: CapacityClass, node: Node) -> bool:
    """Return whether a node is of a capacity class."""
    return node_affinity.holds(capacity.inside, node.labels, node.name)


def tolerations_of(settings: Iterable[PlacementSetting]) -> list[Toleration]:
    """Return what the settings tolerate."""
    return [toleration for setting in settings for toleration in setting.tolerated]


def with_runtime_class(
    settings: Iterable[PlacementSetting], runtime_classes: Mapping[str, JsonObject]
) -> Iterator[PlacementSetting]:
    """Yield the settings, with what the API server merges of a RuntimeClass in its place.

    `runtime_classes` are node.k8s.io/v1 RuntimeClasses by name; of another class its name stays.
    """
    for setting in settings:
        runtime_class = runtime_classes.get(runtime_class_of(setting))
        if runtime_class is None:
            yield setting
            continue
        scheduling = runtime_class.get("scheduling") or {}
        policy, part = setting.policy, setting.part
        for key, value in (scheduling.get("nodeSelector") or {}).items():
            yield MemberSetting(policy=policy, part=part, map="nodeSelector", key=key, value=value)
        for toleration in scheduling.get("tolerations") or ():
            yield TolerationSetting(policy=policy, part=part, toleration=toleration)


def runtime_class_of(setting: PlacementSetting) -> str:
    """Return the RuntimeClass that the setting names; empty if it names none."""
    if isinstance(setting, ScalarSetting) and setting.name == runtime_class.FIELD:
        return str(setting.value)
    return ""


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
    return setting.node_terms or topology.condition(setting.topology_keys)


def nodes_meeting(conditions: Sequence[Sequence[Term]], nodes: NodeGroups) -> list[Alike]:
    """Return the nodes whose labels and names meet every one of the conditions, in groups."""
    return [group for group in groups_by(conditions, nodes) if meets(group.node, conditions)]


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
    return sum(group.count for group in groups)


def makers(
    classes: Iterable[CapacityClass],
    nodes: NodeGroups,
    settings: Iterable[PlacementSetting],
    tolerations: Sequence[Toleration],
) -> tuple[str, ...]:
    """Return the names of the autoscaled classes that could create a node for a pod with these
    settings, sorted."""
    autoscaled = [capacity_class for capacity_class in classes if capacity_class.autoscaled]
    if not autoscaled:
        return ()
    try:
        required = node_affinity.conjunction(
            [terms for setting in settings if (terms := limits(setting))]
        )
    except node_affinity.TooManyTerms:
        return ()
    pod = _POD._replace(required=required, tolerations=list(tolerations))
    return tuple(on_demand.makers(pod, autoscaled, nodes))
