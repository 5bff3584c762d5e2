"""Why no node admits a pod, in one line: what shuts out the nodes that come closest."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.placement import node_affinity
from webhook.placement.nodes import excluding, is_cordon
from webhook.placement.quantity import shown
from webhook.placement.room import lacking

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from webhook.placement.node_groups import Alike
    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Taint, Term

# Warnings of more than 256 characters may be cut by the API server.
LIMIT: Final = 200
# A condition's text; an author may write very long ones.
_LONGEST: Final = 70
_TOLD: Final = 2


class Condition(NamedTuple):
    """What a pod demands of a node's labels: one of the terms.

    text:   as one reads it: pool=ml, class spot
    policy: the name of the policy that brought it in; empty if the pod came with it
    """

    text: str
    policy: str
    terms: Sequence[Term]

    def __str__(self) -> str:
        return (
            f"{cut(self.text, _LONGEST)} (policy {self.policy})"
            if self.policy
            else cut(self.text, _LONGEST)
        )

    def holds(self, node: Node) -> bool:
        """Whether the node meets it."""
        return node_affinity.holds(self.terms, node.labels, node.name)


class Shortfall(NamedTuple):
    """Why no node admits the pod. `conditions` are those that the text names."""

    text: str
    conditions: tuple[Condition, ...] = ()


def shortfall(
    pod: PodPlacement,
    requests: Mapping[str, int],
    conditions: Sequence[Condition],
    groups: Collection[Alike],
    whole: Condition | None = None,
) -> Shortfall:
    """Why none of the groups admits the pod, of which `conditions` is all that it asks of labels.

    Nodes that meet all of them and yet not `whole` are left out by that one.

    Closest are the nodes that meet all conditions; where there are none, the condition that no node
    meets is named, or those that no node meets together.
    """
    met = [_meeting(condition, groups) for condition in conditions]
    counts = [each.count for each in groups]
    together = set(range(len(counts))).intersection(*met)
    numbers = [sum(counts[at] for at in each) for each in met]
    if not counts:
        return Shortfall("the cluster has no nodes")
    if whole and any(at in together and not whole.holds(a.node) for at, a in enumerate(groups)):
        conditions = [*conditions, whole]
        met.append(_meeting(whole, groups))
        numbers.append(sum(counts[at] for at in met[-1]))
        together &= met[-1]
    if not together:
        return _apart(conditions, met, numbers)
    closest = [each for at, each in enumerate(groups) if at in together]
    total = sum(each.count for each in closest)
    why = _closed(closest, total, pod, requests)
    if not conditions:
        return Shortfall(why)
    told = _rarest(conditions, numbers)
    verb = "matches" if len(conditions) == 1 else "match"
    return Shortfall(f"{_named(told, len(conditions))} {verb} {total}, but {why}", told)


def _meeting(condition: Condition, groups: Iterable[Alike]) -> set[int]:
    """The positions of the groups that meet the condition; one look for each value of a label."""
    keys = node_affinity.keys(condition.terms)
    if len(keys) != 1 or any(term.get("matchFields") for term in condition.terms):
        return {at for at, each in enumerate(groups) if condition.holds(each.node)}
    (key,) = keys
    by_value: dict[str | None, bool] = {}
    found = set()
    for at, each in enumerate(groups):
        value = each.node.labels.get(key)
        holds = by_value.get(value)
        if holds is None:
            holds = by_value[value] = condition.holds(each.node)
        if holds:
            found.add(at)
    return found


def _rarest(
    conditions: Sequence[Condition], numbers: Sequence[int], most: int = _TOLD
) -> tuple[Condition, ...]:
    """The conditions that the fewest nodes meet; of equals, those of policies first."""
    ranked = sorted(
        range(len(conditions)), key=lambda at: (numbers[at], not conditions[at].policy, at)
    )
    return tuple(conditions[at] for at in sorted(ranked[:most]))


def _named(told: Sequence[Condition], total: int) -> str:
    more = total - len(told)
    if more:
        return f"{', '.join(map(str, told))} and {more} more"
    return " and ".join(map(str, told))


def _apart(
    conditions: Sequence[Condition], met: Sequence[set[int]], numbers: Sequence[int]
) -> Shortfall:
    """No node meets all conditions."""
    unmet = [c for c, number in zip(conditions, numbers, strict=True) if not number]
    if unmet:
        told = _rarest(unmet, [0] * len(unmet))
        verb = "matches" if len(unmet) == 1 else "match"
        return Shortfall(f"{_named(told, len(unmet))} {verb} none", told)
    for at in range(len(conditions)):
        for other in range(at):
            if not met[at] & met[other]:
                one, two = conditions[other], conditions[at]
                what = f"{one} matches {numbers[other]} and {two} {numbers[at]}, but none has both"
                return Shortfall(what, (one, two))
    told = _rarest(conditions, numbers)
    of_each = {id(c): number for c, number in zip(conditions, numbers, strict=True)}
    single = ", ".join(f"{each} matches {of_each[id(each)]}" for each in told)
    return Shortfall(f"none meets all {len(conditions)} conditions: {single}", told)


class _Reason(NamedTuple):
    """What keeps the pod off a node whose labels are right: a taint, the cordon, or a resource."""

    kind: str
    what: str


def _closed(
    groups: Iterable[Alike], total: int, pod: PodPlacement, requests: Mapping[str, int]
) -> str:
    """What is in the way on nodes whose labels are right, most nodes first."""
    counts: Counter[_Reason] = Counter()
    most: Counter[str] = Counter()
    for each in groups:
        taint = excluding(pod, each.node)
        if taint is not None:
            counts[_of(taint)] += each.count
            continue
        for room, count in each.rooms.values():
            lack = lacking(requests, room)
            if lack is not None:
                counts[_Reason("lack", lack.resource)] += count
                most[lack.resource] = max(most[lack.resource], lack.there)
    ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    if len(ranked) == 1:
        return _of_all(ranked[0][0], requests, most, plural=total != 1)
    told = [_of_some(reason, count, requests, most) for reason, count in ranked[:_TOLD]]
    more = sum(count for _, count in ranked[_TOLD:])
    return ", ".join(told) + (f", and {more} more for other reasons" if more else "")


def _of(taint: Taint) -> _Reason:
    if is_cordon(taint):
        return _Reason("cordon", "")
    value = f"={taint['value']}" if taint.get("value") else ""
    return _Reason("taint", cut(f"{taint.get('key')}{value}", _LONGEST))


def _of_all(
    reason: _Reason, requests: Mapping[str, int], most: Mapping[str, int], *, plural: bool
) -> str:
    if reason.kind == "taint":
        return f"{'their' if plural else 'its'} taint {reason.what} is not tolerated"
    if reason.kind == "cordon":
        return "they are cordoned" if plural else "it is cordoned"
    has = "they have" if plural else "it has"
    if not most[reason.what]:
        return f"{has} no {reason.what}"
    limit = f"{shown(reason.what, most[reason.what])}{' at most' if plural else ''}"
    return f"{has} {reason.what} {limit}, and the pod asks for {_asked(reason.what, requests)}"


def _of_some(
    reason: _Reason, count: int, requests: Mapping[str, int], most: Mapping[str, int]
) -> str:
    have = "have" if count > 1 else "has"
    if reason.kind == "taint":
        return f"{count} {have} taint {reason.what}, not tolerated"
    if reason.kind == "cordon":
        return f"{count} {'are' if count > 1 else 'is'} cordoned"
    if not most[reason.what]:
        return f"{count} {have} no {reason.what}"
    limit = shown(reason.what, most[reason.what])
    asked = _asked(reason.what, requests)
    return f"{count} {have} {reason.what} {limit} at most, of {asked} asked"


def _asked(resource: str, requests: Mapping[str, int]) -> str:
    return shown(resource, requests.get(resource, 1))


def cut(text: str, limit: int) -> str:
    """The text, or its beginning where it is longer."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
