"""Differences of many pods, grouped and summed by namespace and policy.

The fields of Change, Row and Totals are the keys of `fairlead diff -o json`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from webhook.comparison.difference import KINDS, Difference, FieldChange, Kind, Side
from webhook.workloads.template import described

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.comparison.compare import Same


@dataclass(frozen=True, slots=True)
class Maker:
    """Pods of one object that differ only in their index.

    title: the object, as in TFJob/mnist
    part:  the part of the object (worker); empty if all pods are of one kind
    place: where it was read
    count: the number of pods; None if it depends on the cluster
    live:  whether it is an existing pod
    """

    title: str
    namespace: str
    place: str
    part: str = ""
    count: int | None = 1
    live: bool = False


@dataclass(frozen=True, slots=True)
class JudgedPod:
    """The result for one pod, and for `more` others that are assumed to be equal."""

    maker: Maker
    index: int
    more: int
    difference: Difference | Same


@dataclass(frozen=True, slots=True)
class PodGroup:
    """Some of one maker's pods: `count` of them; `indexes` are those that were evaluated."""

    object: str
    pods: str
    indexes: tuple[int, ...]
    count: int
    live: bool
    place: str


@dataclass(frozen=True, slots=True)
class Change:
    """Pods of one namespace with one difference, whose kind is `change`."""

    change: Kind
    without_node: bool
    namespace: str
    count: int
    policies: Sequence[str]
    fields: Sequence[FieldChange]
    old: Side
    new: Side
    objects: Sequence[PodGroup]

    @property
    def takes_room(self) -> bool:
        """Whether not all pods of an object can run at one time any more."""
        return bool(self.new.room) and not self.old.room


class Row(NamedTuple):
    """How many pods of a namespace differ, by kind; `policy` is None for those without one.

    A pod that differs by two policies counts for both.
    """

    namespace: str
    policy: str | None
    rejected: int
    unplaceable: int
    moved: int
    admitted: int
    placeable: int


class Totals(NamedTuple):
    """Numbers of pods: `total` of runs, `live` ones among them, and what differs, by kind.

    `without_node` counts pods that no node admits any more.
    """

    total: int
    live: int
    of_no_run: int
    rejected_before_and_after: int
    differing: int
    without_node: int
    rejected: int
    unplaceable: int
    moved: int
    admitted: int
    placeable: int


class Report(NamedTuple):
    """The whole report. `changes`: the worst first, then the largest."""

    pods: Totals
    summary: Sequence[Row]
    changes: Sequence[Change]


def report(judged: Iterable[JudgedPod]) -> Report:
    """Return the report of all pods, given in any order."""
    totals: Counter[str] = Counter()
    alike: dict[tuple[str, Difference], list[JudgedPod]] = {}
    for judged_pod in judged:
        count, outcome = 1 + judged_pod.more, judged_pod.difference
        if outcome == "no run":
            totals["of_no_run"] += count
            continue
        totals["total"] += count
        totals["live"] += count * judged_pod.maker.live
        if outcome == "rejected":
            totals["rejected_before_and_after"] += count
        elif isinstance(outcome, Difference):
            totals["differing"] += count
            totals["without_node"] += count * outcome.stranded
            totals[outcome.kind] += count
            alike.setdefault((judged_pod.maker.namespace, outcome), []).append(judged_pod)
    changes = [_change(*key, members) for key, members in alike.items()]
    changes.sort(key=lambda change: (KINDS.index(change.change), -change.count, change.namespace))
    return Report(
        Totals(*(totals[name] for name in Totals._fields)),
        summed(changes),
        changes,
    )


def summed(changes: Iterable[Change]) -> list[Row]:
    """Return the sums of changes by namespace and policy."""
    rows: dict[tuple[str, str], Counter[Kind]] = {}
    for change in changes:
        for policy in change.policies or ("",):
            rows.setdefault((change.namespace, policy), Counter())[change.change] += change.count
    return [
        Row(namespace, policy or None, *(counts[kind] for kind in KINDS))
        for (namespace, policy), counts in sorted(rows.items())
    ]


def _change(namespace: str, difference: Difference, members: Sequence[JudgedPod]) -> Change:
    by_maker: dict[Maker, list[JudgedPod]] = {}
    for member in members:
        by_maker.setdefault(member.maker, []).append(member)
    groups = []
    for maker in sorted(
        by_maker, key=lambda template: (template.title, template.part, template.place)
    ):
        indexes = tuple(sorted(member.index for member in by_maker[maker]))
        more = sum(member.more for member in by_maker[maker])
        pods = described(maker.part, maker.count, indexes, more)
        count = len(indexes) + more
        groups.append(PodGroup(maker.title, pods, indexes, count, maker.live, maker.place))
    return Change(
        difference.kind,
        difference.stranded,
        namespace,
        sum(group.count for group in groups),
        difference.policies,
        difference.fields,
        difference.old,
        difference.new,
        groups,
    )
