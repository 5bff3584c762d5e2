"""Incidents: replicas that go down together are charged once, by their cause.

A node failure is detected 40 s or more after it happens, while the peers of its replica fail of
broken connections within seconds. So a failure is charged only if no disruption is detected within
the incident window. If no node of the run is interruptible, a failure is charged at once, and the
charge is reversed if a disruption is detected within the window and the run continues. A
disruption, or a node that is or was unavailable, explains all failures of the window before and
of the window after it. An incident belongs to the run, whatever its restart scope, because peers
may have any role.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.run.model.status import Incident
from webhook.times import elapsed, to_microsecond

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from webhook.run.facts import DownReplica, PodOnLostNode, RoleFacts
    from webhook.run.observed import NodeHealth, Observed

# Seconds. Failures within this time share one entry, because peers fail one after the other.
SHARED_INCIDENT_SECONDS: Final = 5.0
# The number of past incidents to keep for users.
KEPT_INCIDENTS: Final = 5
# The number of ongoing disruptions to keep, if a node stays unavailable for days.
MAX_ONGOING: Final = 20
# The number of further nodes to name in an incident.
OTHER_NODES: Final = 10
_TROUBLES: Final = {
    "NodeNotReady": "is not ready",
    "NodeShutdown": "is shut down",
    "NodeGone": "is gone",
}


class IncidentDecision(NamedTuple):
    """The incidents, and the charges of this reconcile.

    decided: incidents whose cause was decided now.
    failed, disruptions: charges by role; negative if an earlier charge is reversed.
    excused: failures of now are charged to a disruption that was detected with them.
    waiting: failures of now are not charged yet.
    """

    incidents: tuple[Incident, ...]
    decided: tuple[Incident, ...] = ()
    failed: Mapping[str, int] = {}
    disruptions: Mapping[str, int] = {}
    excused: bool = False
    waiting: bool = False


class _Sign(NamedTuple):
    """A detected disruption. joins: it may belong to an ongoing one.

    charged: it is charged already, by a controller version that did not record incidents.
    """

    role: str
    reason: str
    message: str
    replica: str
    node: str
    capacity_class: str
    joins: bool
    charged: bool = False


def decide_incidents(
    before: Sequence[Incident],
    facts: Mapping[str, RoleFacts],
    down: Sequence[DownReplica],
    permanent: Collection[tuple[str, int]],
    observed: Observed,
    now: datetime,
    window: float,
    evicted: tuple[str, str] | None = None,
) -> IncidentDecision:
    """Decide the charges for new and for earlier failures.

    down: the replicas counted now, per restart unit, the cause first. permanent: role and index
    of those that may not restart. evicted: reason and message, if a queue ends all pods now.
    """
    log = _IncidentLog(before, now, window)
    lost = [lost_pod for role_facts in facts.values() for lost_pod in role_facts.lost.values()]
    failures = [down_replica for down_replica in down if not down_replica.failure.disruption]
    returned = {
        returned_pod.pod.uid: returned_pod
        for role_facts in facts.values()
        for returned_pod in role_facts.returned
        if elapsed(returned_pod.ready_again, now) <= window
    }
    near = {lost_pod.pod.uid for lost_pod in lost} | returned.keys()
    signs = [
        _sign_of_down(down_replica, observed, near)
        for down_replica in down
        if down_replica.failure.disruption
    ]
    if evicted:
        signs.insert(0, _Sign(next(iter(facts)), *evicted, "", "", "", joins=False))
    if failures or log.unsettled:
        signs += [_sign_of_lost(lost_pod) for lost_pod in lost]
        signs += [_sign_of_lost(returned_pod) for returned_pod in returned.values()]
        signs += log.signs_of_nodes(observed.nodes or {})
        earlier = (
            down_replica for role_facts in facts.values() for down_replica in role_facts.interrupted
        )
        signs += [_sign_of_down(down_replica, observed, near) for down_replica in earlier]
    if signs and not before:
        charged = _nodes_charged(facts)
        signs = [sign._replace(charged=sign.node in charged) for sign in signs]
    waiting = False
    if signs:
        log.record_disruption(signs, len(failures))
    elif failures and log.recent:
        log.add_collateral(len(failures))
    elif failures:
        waiting = window > 0 and _may_be_interrupted(observed)
        log.record_failures(failures, permanent, wait=waiting)
    log.charge_expired()
    log.update_ongoing(lasting=bool(lost), again=bool(signs))
    return IncidentDecision(
        log.kept(),
        tuple(log.decided),
        log.charged_failed,
        log.charged_disruptions,
        excused=bool(signs),
        waiting=waiting,
    )


def count_undecided(incidents: Iterable[Incident]) -> int:
    """Return the number of failures that are not charged yet."""
    return sum(
        sum(incident.failures.values()) for incident in incidents if incident.cause == "Unknown"
    )


def seconds_until_decided(
    incidents: Iterable[Incident], now: datetime, window: float
) -> float | None:
    """Return the seconds until the first undecided incident is decided; None without one."""
    left = [
        window - elapsed(incident.began, now)
        for incident in incidents
        if incident.cause == "Unknown"
    ]
    return max(0.0, min(left)) if left else None


def record_recovery(incidents: Iterable[Incident], now: datetime) -> tuple[Incident, ...]:
    """Record the time lost, when all replicas run again or the run has ended."""
    return tuple(
        incident
        if incident.seconds_lost is not None
        else incident.model_copy(
            update={"seconds_lost": max(0, round(elapsed(incident.began, now)))}
        )
        for incident in incidents
    )


class _IncidentLog:
    """The incidents of one run during an update."""

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
        return [at for at, incident in enumerate(self._all) if incident.cause == "Unknown"]

    @property
    def unsettled(self) -> list[int]:
        """Positions of failures, charged or not, that a disruption may still explain."""
        return [
            at
            for at, incident in enumerate(self._all)
            if incident.cause == "Unknown"
            or (incident.cause == "Failure" and elapsed(incident.began, self._now) < self._window)
        ]

    @property
    def recent(self) -> list[int]:
        """Positions of disruptions that are ongoing or ended within the window."""
        return [at for at, incident in enumerate(self._all) if self._reaches(incident)]

    def signs_of_nodes(self, nodes: Mapping[str, NodeHealth]) -> Iterator[_Sign]:
        """Yield nodes that were unavailable until just after a failure on them.

        Their pods may be replaced by now. Deleted nodes are excluded, because an autoscaler deletes
        nodes that a failure has emptied.
        """
        for incident in (self._all[at] for at in self.unsettled):
            node = nodes.get(incident.node)
            again = "" if node is None or node.trouble else node.ready_again_after(incident.began)
            if node and again:
                role, text = (
                    next(iter(incident.failures)),
                    f"node {node.name} was away until {again}",
                )
                capacity_class = node.capacity_class
                yield _Sign(
                    role,
                    "NodeNotReady",
                    text,
                    incident.replica,
                    node.name,
                    capacity_class,
                    joins=True,
                )

    def record_disruption(self, signs: Sequence[_Sign], failures: int) -> None:
        """Record a disruption, which explains all failures of the window before it."""
        explained = [self._all[at] for at in self.unsettled]
        collateral = failures + sum(sum(incident.failures.values()) for incident in explained)
        new = [sign for sign in signs if not self._joined(sign)]
        first = new[0] if new else None
        for incident in explained:
            self._all.remove(incident)
            if incident.cause == "Failure":
                self.charged_failed.subtract(incident.failures)
        if first is None:
            self.add_collateral(collateral)
            at = self.recent[-1]
            self._all[at] = _with_nodes(self._all[at], signs)
            return
        began = explained[0].began if explained else self._at
        disruption = Incident(
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
        disruption = _with_nodes(disruption, new)
        self._all.append(disruption)
        self.decided.append(disruption)
        if not first.charged:
            self.charged_disruptions[first.role] += 1

    def add_collateral(self, failures: int) -> None:
        """Charge failures to the latest disruption."""
        if failures:
            at = self.recent[-1]
            count = self._all[at].collateral + failures
            self._all[at] = self._all[at].model_copy(update={"collateral": count})

    def record_failures(
        self, failures: Sequence[DownReplica], permanent: Collection[tuple[str, int]], *, wait: bool
    ) -> None:
        """Record unexplained failures: one entry for all, and one per role for permanent ones."""
        groups: dict[str, list[DownReplica]] = {}
        for failure in failures:
            last = (failure.role, failure.index) in permanent
            groups.setdefault(failure.role if last else "", []).append(failure)
        for role, group in groups.items():
            new = Incident(
                cause="Unknown",
                reason=group[0].failure.reason,
                message=group[0].description,
                replica=group[0].name,
                node=group[0].node,
                began=self._at,
                failures=dict(Counter(failure.role for failure in group)),
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

    def charge_expired(self) -> None:
        """Charge the failures for which no disruption was detected in time."""
        for at in self.undecided:
            if elapsed(self._all[at].began, self._now) >= self._window:
                self._charge(at)

    def update_ongoing(self, *, lasting: bool, again: bool) -> None:
        """Record which disruptions are ongoing: pods of the run are on unavailable nodes."""
        for at in self.recent:
            incident = self._all[at]
            if incident.ended is None and not lasting:
                self._all[at] = incident.model_copy(update={"ended": self._at})
            elif incident.ended is not None and lasting and again:
                self._all[at] = incident.model_copy(update={"ended": None})

    def kept(self) -> tuple[Incident, ...]:
        """Return all entries that still matter, and the last of the others."""
        matter = {*self.undecided, *self.unsettled[-MAX_ONGOING:], *self.recent[-MAX_ONGOING:]}
        others = [at for at in range(len(self._all)) if at not in matter]
        matter.update(others[-KEPT_INCIDENTS:])
        return tuple(self._all[at] for at in sorted(matter))

    def _charge(self, at: int) -> None:
        incident = self._all[at].model_copy(update={"cause": "Failure", "decided": self._at})
        self._all[at] = incident
        self.decided.append(incident)
        self.charged_failed.update(incident.failures)

    def _reaches(self, incident: Incident) -> bool:
        if incident.cause != "Disruption":
            return False
        return incident.ended is None or elapsed(incident.ended, self._now) <= self._window

    def _joined(self, sign: _Sign) -> bool:
        """Return True if the sign belongs to a known disruption.

        Only signs with `joins` can belong to a disruption that lasts longer than the window.
        """
        return any(
            sign.joins
            or self._all[at].ended is not None
            or elapsed(self._all[at].began, self._now) <= self._window
            for at in self.recent
        )

    def _together(self, new: Incident) -> int | None:
        """Return the position of the entry to which new failures belong."""
        for at in self.undecided:
            incident = self._all[at]
            alike = incident.permanent == new.permanent
            if new.permanent:
                alike = alike and incident.failures.keys() == new.failures.keys()
            if alike and elapsed(incident.began, self._now) <= SHARED_INCIDENT_SECONDS:
                return at
        return None


def _with_nodes(incident: Incident, signs: Iterable[_Sign]) -> Incident:
    """Return the incident with the nodes of these signs."""
    nodes = dict.fromkeys((*incident.other_nodes, *(sign.node for sign in signs)))
    others = tuple(node for node in nodes if node not in ("", incident.node))[:OTHER_NODES]
    if others == incident.other_nodes:
        return incident
    return incident.model_copy(update={"other_nodes": others})


def _nodes_charged(facts: Mapping[str, RoleFacts]) -> frozenset[str]:
    """Return the unavailable nodes whose loss an older controller counted without incidents.

    The counted pods still exist, because a silent node's kubelet does not confirm their end.
    """
    if not any(role_facts.before.disruptions for role_facts in facts.values()):
        return frozenset()
    return frozenset(
        lost_pod.pod.node
        for role_facts in facts.values()
        for index, lost_pod in role_facts.lost.items()
        if index in role_facts.ended or index in role_facts.stale
    )


def _may_be_interrupted(observed: Observed) -> bool:
    """Return True if a disruption is possible: a node is interruptible or not known."""
    return any(
        (node := observed.node_health(pod)) is None or node.interruptible
        for pod in observed.pods.values()
        if pod.node
    )


def _sign_of_down(down: DownReplica, observed: Observed, near: Collection[str]) -> _Sign:
    """Return the sign of a disrupted pod; near: uids of pods on nodes that are or were away."""
    node = observed.node_health(down.pod)
    return _Sign(
        down.role,
        down.failure.reason,
        down.description,
        down.name,
        down.node,
        node.capacity_class if node else down.last_class,
        joins=not down.pod.uid or down.pod.uid in near or bool(node and node.trouble),
    )


def _sign_of_lost(lost: PodOnLostNode) -> _Sign:
    pod, node, again = lost
    words = f"was away until {again}" if again else describe_trouble(node)
    text = f"node {node.name} of {pod.name} {words}"
    name, reason, capacity_class = pod.name, node.trouble or "NodeNotReady", node.capacity_class
    return _Sign(pod.role, reason, text, name, node.name, capacity_class, joins=True)


def describe_trouble(node: NodeHealth) -> str:
    """Return what is wrong with a node, and since when: is not ready since 20:15:00Z."""
    since = f" since {node.since}" if node.since else ""
    return f"{_TROUBLES[node.trouble]}{since}"
