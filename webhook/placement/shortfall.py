"""Explain in one line why no node admits a pod, by the closest nodes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.placement import node_affinity
from webhook.placement.nodes import excluding, is_cordon
from webhook.placement.pod_requests import lacking
from webhook.placement.quantity import format_quantity
from webhook.shortening import fit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from webhook.placement.node_groups import Alike
    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Taint, Term

# Warnings of more than 256 characters may be cut by the API server.
WARNING_MAX_CHARACTERS: Final = 200
# The length of a condition's text; an author may write very long ones.
_CONDITION_MAX_CHARACTERS: Final = 70
_TOLD: Final = 2


class Condition(NamedTuple):
    """A pod's condition on a node's labels: one of the terms.

    text:   for messages: pool=ml, class spot
    policy: the name of the policy that added it; empty if it is the pod's own
    """

    text: str
    policy: str
    terms: Sequence[Term]

    def __str__(self) -> str:
        return (
            f"{fit(self.text, _CONDITION_MAX_CHARACTERS)} (policy {self.policy})"
            if self.policy
            else fit(self.text, _CONDITION_MAX_CHARACTERS)
        )

    def holds(self, node: Node) -> bool:
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
    """Return why none of the groups admits the pod; `conditions` are all its conditions on labels.

    `whole` excludes nodes that meet all of these, but not `whole`.

    The closest nodes meet all conditions. If there are none, the text names the condition that no
    node meets, or those that no node meets together.
    """
    met = [_meeting(condition, groups) for condition in conditions]
    counts = [group.count for group in groups]
    together = set(range(len(counts))).intersection(*met)
    numbers = [sum(counts[at] for at in positions) for positions in met]
    if not counts:
        return Shortfall("the cluster has no nodes")
    if whole and any(at in together and not whole.holds(a.node) for at, a in enumerate(groups)):
        conditions = [*conditions, whole]
        met.append(_meeting(whole, groups))
        numbers.append(sum(counts[at] for at in met[-1]))
        together &= met[-1]
    if not together:
        return _apart(conditions, met, numbers)
    closest = [group for at, group in enumerate(groups) if at in together]
    total = sum(group.count for group in closest)
    why = _closed(closest, total, pod, requests)
    if not conditions:
        return Shortfall(why)
    named = _rarest(conditions, numbers)
    verb = "matches" if len(conditions) == 1 else "match"
    return Shortfall(f"{_join_conditions(named, len(conditions))} {verb} {total}, but {why}", named)


def _meeting(condition: Condition, groups: Iterable[Alike]) -> set[int]:
    """Return the positions of the groups that meet the condition; one test for each value of a
    label.
    """
    keys = node_affinity.keys(condition.terms)
    if len(keys) != 1 or any(term.get("matchFields") for term in condition.terms):
        return {at for at, group in enumerate(groups) if condition.holds(group.node)}
    (key,) = keys
    by_value: dict[str | None, bool] = {}
    positions = set()
    for at, group in enumerate(groups):
        value = group.node.labels.get(key)
        holds = by_value.get(value)
        if holds is None:
            holds = by_value[value] = condition.holds(group.node)
        if holds:
            positions.add(at)
    return positions


def _rarest(conditions: Sequence[Condition], numbers: Sequence[int]) -> tuple[Condition, ...]:
    """Return the conditions that the fewest nodes meet; policies' conditions first among equals."""
    ranked = sorted(
        range(len(conditions)), key=lambda at: (numbers[at], not conditions[at].policy, at)
    )
    return tuple(conditions[at] for at in sorted(ranked[:_TOLD]))


def _join_conditions(named: Sequence[Condition], total: int) -> str:
    more = total - len(named)
    if more:
        return f"{', '.join(map(str, named))} and {more} more"
    return " and ".join(map(str, named))


def _apart(
    conditions: Sequence[Condition], met: Sequence[set[int]], numbers: Sequence[int]
) -> Shortfall:
    unmet = [c for c, number in zip(conditions, numbers, strict=True) if not number]
    if unmet:
        named = _rarest(unmet, [0] * len(unmet))
        verb = "matches" if len(unmet) == 1 else "match"
        return Shortfall(f"{_join_conditions(named, len(unmet))} {verb} none", named)
    for at in range(len(conditions)):
        for other in range(at):
            if not met[at] & met[other]:
                first, second = conditions[other], conditions[at]
                what = (
                    f"{first} matches {numbers[other]} and {second} {numbers[at]}, but none has "
                    "both"
                )
                return Shortfall(what, (first, second))
    named = _rarest(conditions, numbers)
    of_each = {id(c): number for c, number in zip(conditions, numbers, strict=True)}
    single = ", ".join(f"{condition} matches {of_each[id(condition)]}" for condition in named)
    return Shortfall(f"none meets all {len(conditions)} conditions: {single}", named)


class _Reason(NamedTuple):
    """Why a node with the right labels excludes the pod: a taint, the cordon, or a resource."""

    kind: str
    what: str


def _closed(
    groups: Iterable[Alike], total: int, pod: PodPlacement, requests: Mapping[str, int]
) -> str:
    """Return why nodes with the right labels exclude the pod, most nodes first."""
    counts: Counter[_Reason] = Counter()
    most: Counter[str] = Counter()
    asked: dict[str, int] = {}
    for group in groups:
        taint = excluding(pod, group.node)
        if taint is not None:
            counts[_taint_reason(taint)] += group.count
            continue
        for room, count in group.rooms.values():
            lack = lacking(requests, room)
            if lack is not None:
                counts[_Reason("lack", lack.resource)] += count
                asked[lack.resource] = lack.asked
                most[lack.resource] = max(most[lack.resource], lack.available)
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    if len(ranked) == 1:
        return _of_all(ranked[0][0], asked, most, plural=total != 1)
    named = [_of_some(reason, count, asked, most) for reason, count in ranked[:_TOLD]]
    more = sum(count for _, count in ranked[_TOLD:])
    return ", ".join(named) + (f", and {more} more for other reasons" if more else "")


def _taint_reason(taint: Taint) -> _Reason:
    if is_cordon(taint):
        return _Reason("cordon", "")
    value = f"={taint['value']}" if taint.get("value") else ""
    return _Reason("taint", fit(f"{taint.get('key')}{value}", _CONDITION_MAX_CHARACTERS))


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
    limit = f"{format_quantity(reason.what, most[reason.what])}{' at most' if plural else ''}"
    asked = format_quantity(reason.what, requests[reason.what])
    return f"{has} {reason.what} {limit}, and the pod requests {asked}"


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
    limit = format_quantity(reason.what, most[reason.what])
    asked = format_quantity(reason.what, requests[reason.what])
    return f"{count} {have} {reason.what} {limit} at most, of {asked} requested"
