"""How many replicas of a Run the nodes that there are can run at one time.

By requests alone, or by pods as admission places them, which also decide on which nodes they may
run. No scheduler runs more, and it may run fewer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.placement import node_affinity
from webhook.placement.nodes import obstacle
from webhook.placement.pod import parse_pod
from webhook.placement.pod_requests import devices_among, requests, with_devices
from webhook.placement.room import PODS, NodeKind, PodGroup, Room, find_room
from webhook.placement.topology import topology_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.placement.node_groups import NodeGroups
    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject
    from webhook.run.plan import Plan
    from webhook.run.pod_sets import PodSet

_SHORT: Final = "replicas can have a node"
# Replicas with overrides of their own, beyond which nothing is computed.
_MOST_SPECIAL: Final = 100


def room_of_run(plan: Plan, nodes: NodeGroups) -> Room | None:
    """Return the room of all replicas on these nodes; None if the Run has too many different ones.

    A resource that no node has may be one of a DeviceClass, and does not count.
    """
    if len(plan.special) > _MOST_SPECIAL:
        return None
    groups: list[PodGroup] = []
    for role, count in plan.gang.counts.items():
        special = [index for index in range(count) if (role, index) in plan.special]
        usual = next((index for index in range(count) if (role, index) not in plan.special), None)
        if usual is not None:
            groups.append(_group(role, plan.pod(role, usual, 0), nodes, count - len(special)))
        groups += [_group(role, plan.pod(role, index, 0), nodes, 1) for index in special]
    return _find(groups, (), [(None, nodes.counted_rooms())])


def room_of_pods(sets: Sequence[PodSet], nodes: NodeGroups) -> Room | None:
    """Return the room of replicas on these nodes, as admission has placed them; None if it is not
    known, such as for pods that name their nodes."""
    specs = [pods_alike.asks["template"]["spec"] for pods_alike in sets]
    placements = [parse_pod({"metadata": {}, "spec": spec}) for spec in specs]
    terms = [term for placement in placements for term in placement.required or ()]
    if not sets or any(term.get("matchFields") for term in terms):
        return None
    labels = {*node_affinity.keys(terms)}
    labels.update(*(placement.node_selector for placement in placements))
    labels.update(*map(topology_keys, placements))
    groups = [
        _group(pods_alike.role, {"spec": spec}, nodes, len(pods_alike.indexes))
        for pods_alike, spec in zip(sets, specs, strict=True)
    ]
    alike = nodes.groups_for(placements[0], also=labels)
    return _find(groups, placements, [(some.node, some.rooms.values()) for some in alike])


def _find(
    groups: Sequence[PodGroup],
    placements: Sequence[PodPlacement],
    alike: Iterable[tuple[Node | None, Iterable[tuple[Mapping[str, int] | None, int]]]],
) -> Room | None:
    """Return the room of groups on nodes: equal ones with their allocatables and their numbers."""
    kinds = []
    for node, rooms in alike:
        for room, count in rooms:
            if room is None:
                return None
            amounts = {name: room.get(name, 0) for group in groups for name in group.requests}
            admits = frozenset(
                at
                for at, group in enumerate(groups)
                if all(amounts[name] >= asked for name, asked in group.requests.items())
                and (node is None or obstacle(placements[at], {}, node) is None)
            )
            kinds.append(NodeKind(count, amounts, admits))
    return find_room(groups, kinds)


def describe_short(room: Room, needed: int) -> str:
    """Return that fewer replicas than needed can have a node, and why; it has no semicolon."""
    limit = f": {room.limit.text}" if room.limit else ""
    return f"at most {room.most} of {needed} {_SHORT}{limit}"


def no_room_of(message: str) -> str:
    """Return the part of a Run's message about too little room; empty without one."""
    return next((part for part in message.split("; ") if _SHORT in part), "")


def _group(role: str, pod: JsonObject, nodes: NodeGroups, count: int) -> PodGroup:
    asked = requests(pod["spec"])
    by_devices = devices_among(with_devices(asked, None, nodes.rooms()))
    on_nodes = {name: amount for name, amount in asked.items() if name not in by_devices}
    return PodGroup(role, count, {PODS: 1, **on_nodes})
