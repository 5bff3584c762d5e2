"""Incidents: replicas that go down together are charged once, for what was the cause.

A node that dies shows 40 s or more later, and the peers of its replica die of broken connections
within seconds. So a failure is charged when no disruption has come to light within the incident
window. Where no node of the run may be interrupted it is charged at once, and that is corrected if
a disruption comes to light within the window and the run goes on. A disruption, or a node that is
or was in trouble, explains all failures of the window before, and those of the window after it. An
incident is the run's, whatever its restart scope: peers are of every role.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.run.model.status import Incident
from webhook.run.verdict import told
from webhook.times import elapsed, to_microsecond

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from webhook.run.facts import Down, Lost, RoleFacts
    from webhook.run.observed import NodeHealth, Observed

# Failures within so many seconds are one entry: peers die one after the other.
TOGETHER: Final = 5.0
# Incidents that are over, and are kept for people.
KEPT: Final = 5
# Disruptions that are kept because they last, where a node stays in trouble for days.
MOST: Final = 20
_TROUBLES: Final = {
    "NodeNotReady": "is not ready",
    "NodeShutdown": "is shut down",
    "NodeGone": "is gone",
}


class Judged(NamedTuple):
    """The incidents, and what is charged now.

    decided: those whose cause was decided now.
    failed, disruptions: charges by role; below zero where an earlier one is taken back.
    excused: whether what went down now is charged to a disruption that was seen with it.
    waiting: whether failures of now wait for their charge.
    """

    incidents: tuple[Incident, ...]
    decided: tuple[Incident, ...] = ()
    failed: Mapping[str, int] = {}
    disruptions: Mapping[str, int] = {}
    excused: bool = False
    waiting: bool = False


class _Sign(NamedTuple):
    """A disruption that came to light. joins: whether it may belong to one that lasts.

    charged: whether it is charged already, by a controller that wrote down no incidents.
    """

    role: str
    reason: str
    message: str
    replica: str
    node: str
    capacity_class: str
    joins: bool
    charged: bool = False


def judge(
    before: Sequence[Incident],
    facts: Mapping[str, RoleFacts],
    down: Sequence[Down],
    permanent: Collection[tuple[str, int]],
    observed: Observed,
    now: datetime,
    window: float,
) -> Judged:
    """Decide what is charged of what went down now, and of earlier failures.

    down: what is counted now, of each restart unit, the cause first. permanent: roles and indexes
    of those that may not start again.
    """
    book = _Book(before, now, window)
    lost = [each for one in facts.values() for each in one.lost.values()]
    failures = [each for each in down if not each.failure.disruption]
    returned = {
        each.pod.uid: each
        for one in facts.values()
        for each in one.returned
        if elapsed(each.again, now) <= window
    }
    near = {each.pod.uid for each in lost} | returned.keys()
    signs = [_of_down(each, observed, near) for each in down if each.failure.disruption]
    if failures or book.unsettled:
        signs += [_of_lost(each) for each in lost]
        signs += [_of_lost(each) for each in returned.values()]
        signs += book.signs_of_nodes(observed.nodes or {})
        told_before = (each for one in facts.values() for each in one.interrupted)
        signs += [_of_down(each, observed, near) for each in told_before]
    if signs and not before:
        charged = _nodes_charged(facts)
        signs = [each._replace(charged=each.node in charged) for each in signs]
    waiting = False
    if signs:
        book.disrupted(signs, len(failures))
    elif failures and book.recent:
        book.add_collateral(len(failures))
    elif failures:
        waiting = window > 0 and _may_be_interrupted(observed)
        book.failed(failures, permanent, wait=waiting)
    book.expire()
    book.end(lasting=bool(lost), again=bool(signs))
    return Judged(
        book.kept(),
        tuple(book.decided),
        book.charged_failed,
        book.charged_disruptions,
        excused=bool(signs),
        waiting=waiting,
    )


def undecided(incidents: Iterable[Incident]) -> int:
    """Return how many failures are not charged yet."""
    return sum(sum(each.failures.values()) for each in incidents if each.cause == "Unknown")


def deadline(incidents: Iterable[Incident], now: datetime, window: float) -> float | None:
    """Return the seconds until the first undecided incident is decided; None without one."""
    left = [window - elapsed(each.began, now) for each in incidents if each.cause == "Unknown"]
    return max(0.0, min(left)) if left else None


def whole_again(incidents: Iterable[Incident], now: datetime) -> tuple[Incident, ...]:
    """Note that all replicas run, or that the run is over: what was lost by then."""
    return tuple(
        each
        if each.seconds_lost is not None
        else each.model_copy(update={"seconds_lost": max(0, round(elapsed(each.began, now)))})
        for each in incidents
    )


class _Book:
    """The incidents of one run while they are brought up to now."""

    def __init__(self, before: Sequence[Incident], now: datetime, window: float) -> None:
        self._now = now
        self._at = to_microsecond(now)
        self._window = window
        self._all = list(before)
        self.decided: list[Incident] = []
        self.charged_failed: Counter[str] = Counter()
        self.charged_disruptions: Counter[str] = Counter()

    @property
    def undecided(self) -> list[int]:
        return [at for at, each in enumerate(self._all) if each.cause == "Unknown"]

    @property
    def unsettled(self) -> list[int]:
        """Failures that a disruption may still explain, whether they are charged or not."""
        return [
            at
            for at, each in enumerate(self._all)
            if each.cause == "Unknown"
            or (each.cause == "Failure" and elapsed(each.began, self._now) < self._window)
        ]

    @property
    def recent(self) -> list[int]:
        """Disruptions that last, or reach until now."""
        return [at for at, each in enumerate(self._all) if self._reaches(each)]

    def signs_of_nodes(self, nodes: Mapping[str, NodeHealth]) -> Iterator[_Sign]:
        """Nodes that were away until just after a failure on them, whose pod may be replaced.

        A node that is gone by then is none: an autoscaler takes the nodes that a failure empties.
        """
        for each in (self._all[at] for at in self.unsettled):
            node = nodes.get(each.node)
            again = "" if node is None or node.trouble else node.heard_again(each.began)
            if node and again:
                role, text = next(iter(each.failures)), f"node {node.name} was away until {again}"
                of = node.capacity_class
                yield _Sign(role, "NodeNotReady", text, each.replica, node.name, of, joins=True)

    def disrupted(self, signs: Sequence[_Sign], failures: int) -> None:
        """A disruption came to light: it explains all failures of the window before."""
        explained = [self._all[at] for at in self.unsettled]
        collateral = failures + sum(sum(each.failures.values()) for each in explained)
        first = next((sign for sign in signs if not self._joined(sign)), None)
        for each in explained:
            self._all.remove(each)
            if each.cause == "Failure":
                self.charged_failed.subtract(each.failures)
        if first is None:
            self.add_collateral(collateral)
            return
        began = explained[0].began if explained else self._at
        found = Incident(
            cause="Disruption",
            reason=first.reason,
            message=first.message,
            replica=first.replica,
            node=first.node,
            capacity_class=first.capacity_class,
            began=began,
            decided=self._at,
            ended=self._at,
            collateral=collateral,
        )
        self._all.append(found)
        self.decided.append(found)
        if not first.charged:
            self.charged_disruptions[first.role] += 1

    def add_collateral(self, failures: int) -> None:
        """Charge failures to the latest disruption."""
        if failures:
            at = self.recent[-1]
            count = self._all[at].collateral + failures
            self._all[at] = self._all[at].model_copy(update={"collateral": count})

    def failed(
        self, failures: Sequence[Down], permanent: Collection[tuple[str, int]], *, wait: bool
    ) -> None:
        """Take note of failures that nothing explains: one entry, and one of a role's permanent."""
        groups: dict[str, list[Down]] = {}
        for each in failures:
            last = (each.role, each.index) in permanent
            groups.setdefault(each.role if last else "", []).append(each)
        for role, group in groups.items():
            new = Incident(
                cause="Unknown",
                reason=group[0].failure.reason,
                message=told(group[0]),
                replica=group[0].name,
                node=group[0].pod.node if group[0].pod else "",
                began=self._at,
                failures=dict(Counter(each.role for each in group)),
                permanent=bool(role),
            )
            at = self._together(new) if wait else None
            if at is None:
                at = len(self._all)
                self._all.append(new)
            else:
                counts = Counter(self._all[at].failures) + Counter(new.failures)
                self._all[at] = self._all[at].model_copy(update={"failures": dict(counts)})
            if not wait:
                self._charge(at)

    def expire(self) -> None:
        """Charge the failures for which no disruption came to light in time."""
        for at in self.undecided:
            if elapsed(self._all[at].began, self._now) >= self._window:
                self._charge(at)

    def end(self, *, lasting: bool, again: bool) -> None:
        """Note which disruptions last: pods of the run are on nodes in trouble."""
        for at in self.recent:
            each = self._all[at]
            if each.ended is None and not lasting:
                self._all[at] = each.model_copy(update={"ended": self._at})
            elif each.ended is not None and lasting and again:
                self._all[at] = each.model_copy(update={"ended": None})

    def kept(self) -> tuple[Incident, ...]:
        """All that still matter, and the last of the others."""
        matter = {*self.undecided, *self.unsettled[-MOST:], *self.recent[-MOST:]}
        others = [at for at in range(len(self._all)) if at not in matter]
        matter.update(others[-KEPT:])
        return tuple(self._all[at] for at in sorted(matter))

    def _charge(self, at: int) -> None:
        each = self._all[at].model_copy(update={"cause": "Failure", "decided": self._at})
        self._all[at] = each
        self.decided.append(each)
        self.charged_failed.update(each.failures)

    def _reaches(self, each: Incident) -> bool:
        if each.cause != "Disruption":
            return False
        return each.ended is None or elapsed(each.ended, self._now) <= self._window

    def _joined(self, sign: _Sign) -> bool:
        """Whether the sign is of a disruption that is known.

        Of one that lasts long, as that of a node that stays silent: only what is of such a node.
        """
        return any(
            sign.joins
            or self._all[at].ended is not None
            or elapsed(self._all[at].began, self._now) <= self._window
            for at in self.recent
        )

    def _together(self, new: Incident) -> int | None:
        """Where the entry is that new failures belong to."""
        for at in self.undecided:
            each = self._all[at]
            alike = each.permanent == new.permanent
            if new.permanent:
                alike = alike and each.failures.keys() == new.failures.keys()
            if alike and elapsed(each.began, self._now) <= TOGETHER:
                return at
        return None


def _nodes_charged(facts: Mapping[str, RoleFacts]) -> frozenset[str]:
    """The nodes in trouble whose loss an older controller counted, which wrote no incidents.

    Pods that it counted are there still: nobody confirms their end on a node that is silent.
    """
    if not any(one.before.disruptions for one in facts.values()):
        return frozenset()
    return frozenset(
        each.pod.node
        for one in facts.values()
        for index, each in one.lost.items()
        if index in one.ended or index in one.stale
    )


def _may_be_interrupted(observed: Observed) -> bool:
    """Whether a disruption may be on its way: by nodes, or because nodes are not known."""
    return any(
        (node := observed.health(pod)) is None or node.interruptible
        for pod in observed.pods.values()
        if pod.node
    )


def _of_down(down: Down, observed: Observed, near: Collection[str]) -> _Sign:
    """The sign of a pod that was disrupted; near: uids of pods whose nodes are or were away."""
    node = observed.health(down.pod) if down.pod else None
    return _Sign(
        down.role,
        down.failure.reason,
        told(down),
        down.name,
        down.pod.node if down.pod else "",
        node.capacity_class if node else "",
        joins=down.pod is None or down.pod.uid in near or bool(node and node.trouble),
    )


def _of_lost(lost: Lost) -> _Sign:
    pod, node, again = lost
    words = f"was away until {again}" if again else in_words(node)
    text = f"node {node.name} of {pod.name} {words}"
    name, reason, of = pod.name, node.trouble or "NodeNotReady", node.capacity_class
    return _Sign(pod.role, reason, text, name, node.name, of, joins=True)


def in_words(node: NodeHealth) -> str:
    """Return what is wrong with a node, and since when: is not ready since 20:15:00Z."""
    since = f" since {node.since}" if node.since else ""
    return f"{_TROUBLES[node.trouble]}{since}"
