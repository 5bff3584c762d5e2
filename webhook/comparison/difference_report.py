"""Differences of many pods, grouped and summed by namespace and policy."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from webhook.comparison.difference import KINDS, Difference, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.comparison.compare import Same


@dataclass(frozen=True, slots=True)
class Maker:
    """Pods of one object that differ only in their index.

    title: the object, as in TFJob/mnist
    place: where it was read
    part:  the part of the object (worker); empty if all pods are of one kind
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
    found: Difference | Same

    @property
    def pods(self) -> int:
        """The number of pods that it represents."""
        return 1 + self.more


@dataclass(frozen=True, slots=True)
class PodGroup:
    """Some of one maker's pods: their indexes, and the number of further pods after the last."""

    maker: Maker
    indexes: tuple[int, ...]
    more: int

    @property
    def count(self) -> int:
        """The number of pods."""
        return len(self.indexes) + self.more


@dataclass(frozen=True, slots=True)
class Change:
    """Pods of one namespace with one difference."""

    namespace: str
    difference: Difference
    pods: tuple[PodGroup, ...]

    @property
    def count(self) -> int:
        """The number of pods."""
        return sum(some.count for some in self.pods)


class Row(NamedTuple):
    """How many pods of a namespace differ, by kind; `policy` is empty for those without one.

    A pod that differs by two policies counts for both.
    """

    namespace: str
    policy: str
    counts: Counter[Kind]


@dataclass(frozen=True, slots=True)
class Report:
    """The whole report. `total` pods belong to runs, `others` do not.

    changes:  the worst first, then the largest
    rejected: how many pods both sets reject
    live:     how many of `total` exist already
    """

    total: int
    others: int
    rejected: int
    live: int
    changes: tuple[Change, ...]
    rows: tuple[Row, ...]

    @property
    def counts(self) -> Counter[Kind]:
        """How many pods differ, by kind."""
        found: Counter[Kind] = Counter()
        for change in self.changes:
            found[change.difference.kind] += change.count
        return found

    @property
    def stranded(self) -> int:
        """How many pods no node admits any more."""
        return sum(change.count for change in self.changes if change.difference.stranded)

    @property
    def differing(self) -> int:
        """How many pods differ."""
        return self.counts.total()


def report(judged: Iterable[JudgedPod]) -> Report:
    """Return the report of all pods, given in any order."""
    sums = _Sums()
    for each in judged:
        sums.add(each)
    changes = [
        Change(namespace, difference, _pods(members))
        for (namespace, difference), members in sums.alike.items()
    ]
    order = {kind: at for at, kind in enumerate(KINDS)}
    changes.sort(key=lambda c: (order[c.difference.kind], -c.count, c.namespace))
    rows = [Row(*where, counts) for where, counts in sorted(sums.rows.items())]
    return Report(sums.total, sums.others, sums.rejected, sums.live, tuple(changes), tuple(rows))


@dataclass(slots=True)
class _Sums:
    """The sums so far. Local to one call of `report`."""

    total: int = 0
    others: int = 0
    rejected: int = 0
    live: int = 0
    alike: dict[tuple[str, Difference], list[JudgedPod]] = field(default_factory=dict)
    rows: dict[tuple[str, str], Counter[Kind]] = field(default_factory=dict)

    def add(self, each: JudgedPod) -> None:
        if each.found == "no run":
            self.others += each.pods
            return
        self.total += each.pods
        self.live += each.pods if each.maker.live else 0
        if each.found == "rejected":
            self.rejected += each.pods
        if not isinstance(each.found, Difference):
            return
        namespace = each.maker.namespace
        self.alike.setdefault((namespace, each.found), []).append(each)
        for policy in each.found.policies or ("",):
            self.rows.setdefault((namespace, policy), Counter())[each.found.kind] += each.pods


def _pods(members: Sequence[JudgedPod]) -> tuple[PodGroup, ...]:
    by_maker: dict[Maker, list[JudgedPod]] = {}
    for each in members:
        by_maker.setdefault(each.maker, []).append(each)
    return tuple(
        PodGroup(maker, tuple(sorted(one.index for one in own)), sum(one.more for one in own))
        for maker, own in sorted(by_maker.items(), key=lambda pair: _order(pair[0]))
    )


def _order(maker: Maker) -> tuple[str, ...]:
    return maker.title, maker.part, maker.place
