"""The nodes by capacity class, and how many of each class are silent or ill."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from webhook.placement import capacity
from webhook.placement.capacity import InvalidClass
from webhook.policy.compile import capacity_class
from webhook.policy.node_settings import is_of
from webhook.run.observed import NodeHealth
from webhook.times import elapsed, parse_time, span_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.placement.nodes import Node
    from webhook.policy.model import CapacityClass

# More than one in so many silent nodes of a class, and more than so few, is no loss of nodes.
MOST_SILENT: Final = 5
FEW_SILENT: Final = 2
# Combinations of labels of which the classes are remembered. Whoever labels nodes chooses them.
_MOST_KINDS: Final = 4096


class WatchedNode(NamedTuple):
    """A node in the cache: its placement view and its conditions.

    since: the last transition of its Ready condition. A heartbeat does not change it.
    """

    node: Node
    uid: str
    created: str
    ready: Literal["True", "False", "Unknown"]
    since: str
    conditions: tuple[tuple[str, str, str], ...] = ()
    """All of them: type, status, last transition; the last is empty or valid."""
    shut_down: bool = False
    leaving: bool = False


class NodeClass(NamedTuple):
    """A capacity class, and how its nodes are lost.

    unhealthy: by a condition's type and status, the seconds after which the node is ill.
    """

    name: str
    interruptible: bool | None
    compiled: capacity.CapacityClass
    lost_after: float | None
    unhealthy: Mapping[tuple[str, str], float]


class _Illness(NamedTuple):
    """A condition by which a node is ill, since when, and the seconds until that counts."""

    condition: str
    since: str
    lasts: float

    def due(self) -> float:
        """Return the time at which it counts, in seconds since 1970."""
        return parse_time(self.since).timestamp() + self.lasts


_WELL: Final = _Illness("", "", 0.0)


class _Bad:
    """How many nodes of a class are bad, and since when each of the others is well."""

    __slots__ = ("count", "well")

    def __init__(self) -> None:
        self.count = 0
        # Pairs of times, in order: since when the node is well, and when it was created.
        self.well: list[tuple[str, str]] = []

    def add(self, created: str, well_since: str | None, by: int) -> None:
        """Count a node that is well since then, or bad; with -1, no longer."""
        if well_since is None:
            self.count += by
        elif by > 0:
            insort(self.well, (well_since, created))
        else:
            del self.well[bisect_left(self.well, (well_since, created))]

    def wait(self, since: str) -> float:
        """Return for how many seconds a node that is bad since then is not judged.

        That is as long as too many are bad: it cannot be the fault of each of them. Its end is
        read from the nodes that came back, so a controller that has just started knows it too.
        A node that was created after `since` was never bad.
        """
        most = max(FEW_SILENT, (self.count + len(self.well)) // MOST_SILENT)
        back = most + 1 - self.count
        if back <= 0:
            return math.inf
        for well_since, created in reversed(self.well):
            if well_since <= since:
                break
            if created < since:
                back -= 1
                if not back:
                    return elapsed(since, parse_time(well_since))
        return 0.0


class _Count:
    """The nodes of a class: how many are silent, and how many silent or ill."""

    __slots__ = ("_conditions", "ill", "of", "silent")

    def __init__(self, node_class: NodeClass) -> None:
        self.of = node_class
        self._conditions = {condition for condition, _ in node_class.unhealthy}
        self.silent, self.ill = _Bad(), _Bad()

    def add(self, judged: _Judged, by: int) -> None:
        """Count a node of the class; with -1, no longer."""
        watched = judged.watched
        silent, ill = watched.ready == "Unknown", self in judged.ill_by
        self.silent.add(watched.created, None if silent else watched.since, by)
        well = [since for kind, _, since in watched.conditions if kind in self._conditions]
        since = None if silent or ill else max(watched.since, *well, "")
        self.ill.add(watched.created, since, by)


class _Judged(NamedTuple):
    """A node, the classes that it is of, those by whose rules it is ill, and its illness."""

    watched: WatchedNode
    classes: tuple[_Count, ...]
    ill_by: tuple[_Count, ...]
    illness: _Illness

    def add_to_counts(self, by: int) -> None:
        """Count the node in its classes; with -1, no longer."""
        for count in self.classes:
            count.add(self, by)


class ClassedNodes:
    """Nodes as these classes judge them; the first class of a node says if it is interruptible.

    A change of a node costs one step for each class of it, and a look at a node as many, however
    many nodes there are.
    """

    def __init__(self, classes: Iterable[NodeClass] = ()) -> None:
        # Interruptible classes first, and last those that do not say.
        self._counts = [
            _Count(node_class)
            for node_class in sorted(
                classes,
                key=lambda node_class: (
                    (True, False, None).index(node_class.interruptible),
                    node_class.name,
                ),
            )
        ]
        self._compiled = {count.of.name: count.of.compiled for count in self._counts}
        self._keys = sorted({key for count in self._counts for key in count.of.compiled.keys})
        self._classes_by_labels: dict[tuple[str | None, ...], tuple[_Count, ...]] = {}
        self._judged: dict[str, _Judged] = {}
        # Names of nodes, in order of their change: those that are ill, by any class.
        self._ill: dict[str, None] = {}
        self._curable: tuple[NodeHealth, ...] | None = None

    def compiled(self, name: str) -> capacity.CapacityClass | None:
        """Return the class of this name; None if there is none."""
        return self._compiled.get(name)

    def names(self) -> list[str]:
        """Return the names of all nodes, as they are now."""
        return list(self._judged)

    def watched(self, name: str) -> WatchedNode | None:
        """Return the node; None if there is none."""
        judged_node = self._judged.get(name)
        return judged_node.watched if judged_node else None

    def put(self, name: str, watched: WatchedNode | None) -> None:
        """Store the node as it is now; None: it was deleted."""
        before = self._judged.pop(name, None)
        after = self._judge(watched) if watched else None
        self._ill.pop(name, None)
        if before:
            before.add_to_counts(-1)
        if after:
            after.add_to_counts(1)
            self._judged[name] = after
            if after.ill_by:
                self._ill[name] = None
        # Any node that comes or goes may change how long those that are ill are waited for.
        if self._ill or self._curable:
            self._curable = None

    def health(self, name: str) -> NodeHealth | None:
        """Return the health of one node; None if there is none of this name."""
        judged_node = self._judged.get(name)
        return _health(judged_node) if judged_node else None

    def health_of(self, watched: WatchedNode) -> NodeHealth:
        """Return the health of a node that may be newer than the stored one."""
        return _health(self._judge(watched))

    def class_of(self, node: Node) -> str:
        """Return the name of the first class of a node; empty if it is of none."""
        classes = self._classes_of(node)
        return classes[0].of.name if classes else ""

    def ill(self) -> tuple[NodeHealth, ...]:
        """Return the ill nodes, except those that are silent or of a class with too many."""
        if self._curable is None:
            ill = (_health(self._judged[name]) for name in self._ill)
            self._curable = tuple(
                health
                for health in ill
                if health.ready != "Unknown" and not math.isinf(health.ill_after)
            )
        return self._curable

    def _judge(self, watched: WatchedNode) -> _Judged:
        classes = self._classes_of(watched.node)
        by_class = [(count, _illnesses(count.of, watched)) for count in classes]
        ill_by = tuple(count for count, illnesses in by_class if illnesses)
        illnesses = [illness for _, some in by_class for illness in some]
        return _Judged(
            watched, classes, ill_by, min(illnesses, key=_Illness.due) if illnesses else _WELL
        )

    def _classes_of(self, node: Node) -> tuple[_Count, ...]:
        labels = tuple([node.labels.get(key) for key in self._keys])
        classes = self._classes_by_labels.get(labels)
        if classes is None:
            if len(self._classes_by_labels) >= _MOST_KINDS:
                self._classes_by_labels.clear()
            classes = tuple(count for count in self._counts if is_of(count.of.compiled, node))
            self._classes_by_labels[labels] = classes
        return classes


def _health(judged: _Judged) -> NodeHealth:
    """Return the health: never lost by silence while too many nodes of a class that says so are
    silent, and never ill while too many are ill or silent: what reports it may be broken. For
    those that are left, the time counts from the end of that."""
    watched, classes, ill_by, illness = judged
    first = classes[0].of if classes else None
    lost_after = min(
        (count.of.lost_after for count in classes if count.of.lost_after), default=None
    )
    many_of = ""
    silent = lost_after is not None and watched.ready == "Unknown"
    lost_wait = ill_wait = 0.0
    for count in classes if silent or ill_by else ():
        if silent and count.of.lost_after:
            lost_wait = max(lost_wait, wait := count.silent.wait(watched.since))
            many_of = count.of.name if math.isinf(wait) else many_of
        if count in ill_by:
            ill_wait = max(ill_wait, wait := count.ill.wait(illness.since))
            many_of = count.of.name if math.isinf(wait) else many_of
    return NodeHealth(
        watched.node.name,
        watched.uid,
        watched.created,
        watched.ready,
        watched.since,
        watched.shut_down,
        # By default every node is interruptible, unless a class sets otherwise.
        first is None or first.interruptible is not False,
        first.name if first else "",
        lost_after if lost_after is None else lost_after + lost_wait,
        watched.leaving,
        illness.condition,
        illness.since,
        illness.lasts + ill_wait,
        many_of,
    )


def _illnesses(node_class: NodeClass, watched: WatchedNode) -> Sequence[_Illness]:
    """Return by which conditions the node is ill."""
    if not node_class.unhealthy:
        return ()
    return [
        _Illness(f"{kind}={status}", since, lasts)
        for kind, status, since in watched.conditions
        if since and (lasts := node_class.unhealthy.get((kind, status))) is not None
    ]


def compile_classes(documents: Mapping[str, CapacityClass]) -> Iterator[NodeClass | None]:
    """Yield each class, complements included; None in place of one that cannot be compiled."""
    for name, document in documents.items():
        spec, base_name = document.spec, document.spec.complement_of
        described = documents.get(base_name) if base_name else document
        if described is None or described.spec.complement_of:
            yield None
            continue
        try:
            compiled = capacity_class(described)
        except InvalidClass:
            yield None
            continue
        unhealthy: dict[tuple[str, str], float] = {}
        for rule in spec.unhealthy or ():
            key, lasts = (rule.condition, rule.status), span_seconds(rule.lasts)
            unhealthy[key] = min(lasts, unhealthy.get(key, lasts))
        yield NodeClass(
            name,
            True if spec.lost_after and spec.interruptible is None else spec.interruptible,
            capacity.complement(name, compiled, autoscaled=bool(spec.autoscaled))
            if base_name
            else compiled,
            span_seconds(spec.lost_after) if spec.lost_after else None,
            unhealthy,
        )
