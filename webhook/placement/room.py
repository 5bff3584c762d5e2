"""How many pods can run at one time on empty nodes: a proved limit, and a packing.

The limit holds whatever a scheduler does, because it leaves conditions out: it is that of each
group alone, and that of all groups of one resource together. The packing is one that was found.
Work: groups × (kinds of nodes + 2 × groups) × resources, some times.
"""

from __future__ import annotations

from collections import Counter
from math import gcd
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.placement.quantity import format_quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.placement.nodes import Node

PODS: Final = "pods"
# Before what only one pod of a node can have, such as a host port, in requests.
ONLY_ONE: Final = "only one: "
ANTI_AFFINITY: Final = "podAntiAffinity"
# Of a node that does not report its allocatable.
UNLIMITED: Final = 2**63


class PodGroup(NamedTuple):
    """Equal pods: their name for messages, such as worker, their number, and requests by resource.

    `requests` has also what only one pod of a node can have, as 1.
    """

    name: str
    pods: int
    requests: Mapping[str, int]


class NodeKind(NamedTuple):
    """Equal nodes. `amounts`: what each has of the resources that are requested; `admits`: the
    positions of the groups of which each admits a pod."""

    nodes: int
    amounts: Mapping[str, int]
    admits: frozenset[int]


class Limit(NamedTuple):
    """Why no more pods can run at one time.

    resource: of which there is too little; empty if no node admits the pods
    nodes:    how many admit one of the pods
    least:    the amount on each of these nodes, up to `most`
    requests: what a pod of each group requests, by the group's name
    """

    resource: str
    nodes: int
    least: int
    most: int
    requests: Mapping[str, int]

    @property
    def text(self) -> str:
        """As in `2 nodes admit them, with 8 nvidia.com/gpu each, and each worker requests 8`."""
        if not self.nodes:
            return f"no node admits {', '.join(filter(None, self.requests)) or 'them'}"
        many = self.nodes > 1
        admit = f"{self.nodes:,} nodes admit them" if many else "1 node admits them"
        if self.resource.startswith(ONLY_ONE):
            what = self.resource.removeprefix(ONLY_ONE)
            how = f"by {ANTI_AFFINITY}" if what.startswith(ANTI_AFFINITY) else f"with {what}"
            return f"{admit}, and a node takes one of them {how}"
        amounts = dict.fromkeys(
            format_quantity(self.resource, amount) for amount in (self.least, self.most)
        )
        has = f"{' to '.join(amounts)} {self.resource}{' each' if many else ''}"
        if self.resource == PODS:
            return f"{admit}, with room for {has}"
        asked = ", ".join(
            f"each {name or 'pod'} requests {format_quantity(self.resource, amount)}"
            for name, amount in self.requests.items()
        )
        return f"{admit}, with {has}, and {asked}"


class Room(NamedTuple):
    """How many pods can run at one time.

    asked:  how many are asked for
    most:   no scheduler runs more
    placed: as many have a place in a packing
    limit:  the reason, if `most` is less than `asked`
    """

    asked: int
    most: int
    placed: int
    limit: Limit | None


def less_used(nodes: Iterable[Node], used: Mapping[str, Mapping[str, int]]) -> list[Node]:
    """Return the nodes with what is left of each, less amounts by the node's name."""
    return [
        node
        if node.allocatable is None or not (taken := used.get(node.name))
        else node._replace(
            allocatable={
                name: max(amount - taken.get(name, 0), 0)
                for name, amount in node.allocatable.items()
            }
        )
        for node in nodes
    ]


def node_kinds(
    nodes: Iterable[Node], groups: Sequence[PodGroup], admitted: Sequence[tuple[str, ...]]
) -> list[NodeKind]:
    """Return the nodes that admit a pod, equal ones grouped; `admitted` has names, by group."""
    bits: dict[tuple[str, ...], int] = {}
    for position, names in enumerate(admitted):
        bits[names] = bits.get(names, 0) | 1 << position
    positions: dict[str, int] = {}
    for names, bit in bits.items():
        for name in names:
            positions[name] = positions.get(name, 0) | bit
    resources = tuple(dict.fromkeys(name for group in groups for name in group.requests))
    reported = [name for name in resources if not name.startswith(ONLY_ONE)]
    alone = [name for name in resources if name.startswith(ONLY_ONE)]
    # Pods twice: of a single name it would make no tuple.
    pick = itemgetter(*reported, PODS, PODS)
    keys: list[tuple[int, tuple[int | None, ...] | None]] = []
    for node in nodes:
        bit = positions.get(node.name, 0)
        if bit:
            room = node.allocatable
            try:
                amounts = None if room is None else pick(room)
            except KeyError:
                amounts = tuple(map(room.get, reported)) if room else None
            keys.append((bit, amounts))
    counts = Counter(keys)
    return [
        NodeKind(
            count,
            dict.fromkeys(reported, UNLIMITED)
            | dict.fromkeys(alone, 1)
            | {name: amount or 0 for name, amount in zip(reported, amounts or (), strict=False)},
            frozenset(at for at in range(len(groups)) if bit >> at & 1),
        )
        for (bit, amounts), count in counts.items()
    ]


def find_room(
    groups: Sequence[PodGroup], kinds: Sequence[NodeKind], asked: int | None = None
) -> Room:
    """Return how many of the pods can run at one time; `asked`: if fewer than all need to."""
    total = sum(group.pods for group in groups)
    wanted = total if asked is None else min(asked, total)
    most, limit = _limit(groups, kinds)
    if most >= wanted:
        most, limit = wanted, None
    return Room(wanted, most, min(most, _placed(groups, kinds, wanted)), limit)


def _fits(group: PodGroup, amounts: Mapping[str, int]) -> int:
    """Return how many pods of the group a node with these amounts takes."""
    return min(amounts[name] // asked for name, asked in group.requests.items())


def _limit(groups: Sequence[PodGroup], kinds: Sequence[NodeKind]) -> tuple[int, Limit | None]:
    """Return the least of all limits, and its reason."""
    places = [
        sum(kind.nodes * _fits(group, kind.amounts) for kind in kinds if at in kind.admits)
        for at, group in enumerate(groups)
    ]
    caps = [min(group.pods, place) for group, place in zip(groups, places, strict=True)]
    most, limit = sum(caps), None
    missing = [group.pods - cap for group, cap in zip(groups, caps, strict=True)]
    if any(missing):
        at = missing.index(max(missing))
        limit = _limit_of(_scarcest(groups[at], at, kinds), [at], groups, kinds)
    for resource in dict.fromkeys(name for group in groups for name in group.requests):
        asking = [at for at, group in enumerate(groups) if resource in group.requests]
        others = sum(cap for at, cap in enumerate(caps) if at not in asking)
        together = others + _together(resource, asking, groups, caps, kinds)
        if together < most:
            most, limit = together, _limit_of(resource, asking, groups, kinds)
    return most, limit


def _together(
    resource: str,
    asking: Sequence[int],
    groups: Sequence[PodGroup],
    caps: Sequence[int],
    kinds: Iterable[NodeKind],
) -> int:
    """Return how many pods of these groups the resource is enough for, the smallest first.

    What no number of the pods can use of a node does not count.
    """
    requested = {at: groups[at].requests[resource] for at in asking}
    left = 0
    for kind in kinds:
        step = gcd(*(requested[at] for at in asking if at in kind.admits))
        if step:
            left += kind.nodes * (kind.amounts[resource] // step * step)
    count = 0
    for at in sorted(asking, key=requested.__getitem__):
        taken = min(caps[at], left // requested[at])
        count += taken
        left -= taken * requested[at]
    return count


def _scarcest(group: PodGroup, position: int, kinds: Iterable[NodeKind]) -> str:
    """Return the resource by which the fewest pods of the group fit; an extended one first."""
    admitting = [kind for kind in kinds if position in kind.admits]
    if not admitting:
        return ""

    def places(resource: str) -> tuple[int, bool]:
        asked = group.requests[resource]
        count = sum(kind.nodes * (kind.amounts[resource] // asked) for kind in admitting)
        return count, "/" not in resource

    return min(group.requests, key=places)


def _limit_of(
    resource: str, asking: Sequence[int], groups: Sequence[PodGroup], kinds: Iterable[NodeKind]
) -> Limit:
    admitting = [kind for kind in kinds if not kind.admits.isdisjoint(asking)]
    amounts = [kind.amounts[resource] for kind in admitting]
    return Limit(
        resource,
        sum(kind.nodes for kind in admitting),
        min(amounts, default=0),
        max(amounts, default=0),
        {groups[at].name: groups[at].requests.get(resource, 0) for at in asking},
    )


def _placed(groups: Sequence[PodGroup], kinds: Sequence[NodeKind], wanted: int) -> int:
    """Return the most pods that one of some packings places, at most `wanted` of them."""
    best = 0
    for order in packing_orders(groups, kinds):
        best = max(best, sum(pack(order, groups, kinds)))
        if best >= wanted:
            return wanted
    return best


def packing_orders(
    groups: Sequence[PodGroup], kinds: Sequence[NodeKind]
) -> Iterator[Sequence[int]]:
    """Yield in which order groups are packed: those with the fewest places first, then the largest
    pods first, then the smallest."""

    resources = {name for group in groups for name in group.requests}
    totals = {name: sum(kind.nodes * kind.amounts[name] for kind in kinds) for name in resources}

    def places(at: int) -> int:
        fits = (k.nodes * _fits(groups[at], k.amounts) for k in kinds if at in k.admits)
        return sum(fits)

    def size(at: int) -> float:
        return max(asked / (totals[name] or 1) for name, asked in groups[at].requests.items())

    by_size = sorted(range(len(groups)), key=size, reverse=True)
    yield sorted(by_size, key=places)
    yield by_size
    yield by_size[::-1]


def pack(
    order: Iterable[int], groups: Sequence[PodGroup], kinds: Iterable[NodeKind]
) -> Iterator[int]:
    """Yield how many pods of each group get a place: on nodes that admit the fewest groups, then
    on those that take the fewest."""
    free = list(kinds)
    for at in order:
        group, left = groups[at], groups[at].pods
        fitting = [(len(k.admits), _fits(group, k.amounts), k) for k in free if at in k.admits]
        free = [kind for kind in free if at not in kind.admits]
        for _, fits, kind in sorted(fitting, key=lambda entry: entry[:2]):
            full, rest = min(kind.nodes, left // fits if fits else 0), 0
            if fits and full < kind.nodes:
                rest = left - full * fits
            for count, pods in ((full, fits), (1 if rest else 0, rest)):
                if count:
                    free.append(kind._replace(nodes=count, amounts=_less(kind, group, pods)))
            if unused := kind.nodes - full - (1 if rest else 0):
                free.append(kind._replace(nodes=unused))
            left -= full * fits + rest
        yield group.pods - left


def _less(kind: NodeKind, group: PodGroup, pods: int) -> Mapping[str, int]:
    taken = {name: kind.amounts[name] - pods * asked for name, asked in group.requests.items()}
    return {**kind.amounts, **taken}
