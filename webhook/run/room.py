"""How many replicas of a Run the nodes that there are can run at one time, by their requests.

Nothing else counts: policies may change on which nodes the pods may run, and the controller does
not know them. So no scheduler runs more, and it may run fewer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.placement.pod_requests import devices_among, requests, with_devices
from webhook.placement.room import PODS, NodeKind, PodGroup, Room, find_room

if TYPE_CHECKING:
    from webhook.placement.node_groups import NodeGroups
    from webhook.run.plan import Plan

# Every message about too little room has it, and none has a semicolon below it.
BY_REQUESTS: Final = "by requests alone at most"
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
            groups.append(_group(plan, nodes, role, usual, count - len(special)))
        groups += [_group(plan, nodes, role, index, 1) for index in special]
    kinds = []
    for room, count in nodes.counted_rooms():
        if room is None:
            return None
        amounts = {name: room.get(name, 0) for group in groups for name in group.requests}
        admits = frozenset(
            at
            for at, group in enumerate(groups)
            if all(amounts[name] >= asked for name, asked in group.requests.items())
        )
        kinds.append(NodeKind(count, amounts, admits))
    return find_room(groups, kinds)


def no_room_of(message: str) -> str:
    """Return the part of a Run's message about too little room; empty without one."""
    return next((part for part in message.split("; ") if BY_REQUESTS in part), "")


def _group(plan: Plan, nodes: NodeGroups, role: str, index: int, count: int) -> PodGroup:
    asked = requests(plan.pod(role, index, 0)["spec"])
    by_devices = devices_among(with_devices(asked, None, nodes.rooms()))
    on_nodes = {name: amount for name, amount in asked.items() if name not in by_devices}
    return PodGroup(role, count, {PODS: 1, **on_nodes})
