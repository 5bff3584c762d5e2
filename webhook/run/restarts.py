"""Count replicas that went down, and decide which restart and when: the next status of each role.

A failure is recorded before anything is done about it. A pod is deleted only when the status that
the API server returned has its uid, or a later attempt than the pod's.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from webhook.backoff import GONE_AFTER, INCIDENT_WINDOW, RESTART_DELAYS
from webhook.run.failure import Failure, may_restart
from webhook.run.history import History
from webhook.run.incidents import decide_incidents
from webhook.run.model.intervals import format_intervals, parse_intervals
from webhook.run.model.status import Recovering
from webhook.run.replica_nodes import record_nodes
from webhook.times import elapsed, to_microsecond

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from webhook.backoff import Delays
    from webhook.run.facts import DownReplica, RoleFacts
    from webhook.run.incidents import IncidentDecision
    from webhook.run.model import Incident, RoleStatus, Run
    from webhook.run.observed import Observed, OwnedPod
    from webhook.run.queue import Gate

# Seconds without a failure after which a replica's backoff is reset.
STABLE: Final = 600.0
# Seconds over which the restarts of runs that lost a node at the same moment are spread.
JITTER: Final = 2.0

# A run fails after this many kubelet refusals of one replica's pods in a row (half an hour).
MOST_REFUSALS: Final = 10
# In the status of a role whose pods are of an earlier attempt.
_NO_PODS: Final = {"active_indexes": "", "creating_indexes": "", "nodes": (), "counted_uids": ()}
# For backoff: a failure that a disruption explains counts as a disruption.
_EXCUSED: Final = Failure(True, "", "")


@dataclass(frozen=True, slots=True)
class RestartTerms:
    """Restart settings of the controller.

    restarts: the backoff delays. incident_window: seconds for which a failure is not charged,
    because a disruption may still explain it. gone_after: seconds after which a deleted Node does
    not come back, as far as its pods are concerned.
    """

    restarts: Delays = RESTART_DELAYS
    incident_window: float = INCIDENT_WINDOW
    gone_after: float = GONE_AFTER


@dataclass(frozen=True, slots=True)
class Counted:
    """The statuses of the roles after counting.

    down: replicas counted now, the cause first.
    incidents: the updated incidents; decided: those of them that were decided now.
    refused: a replica whose pods kubelets rejected too often, or None.
    moved: pods without a node that are created again, because they have waited for long enough.
    """

    roles: Mapping[str, RoleStatus]
    down: tuple[DownReplica, ...] = ()
    incidents: tuple[Incident, ...] = ()
    decided: tuple[Incident, ...] = ()
    refused: DownReplica | None = None
    moved: tuple[OwnedPod, ...] = ()


def count_down(
    run: Run,
    facts: Mapping[str, RoleFacts],
    observed: Observed,
    now: datetime,
    terms: RestartTerms,
    gate: Gate,
) -> Counted:
    """Count all replicas that went down since the last reconcile, and an eviction by a queue.

    Under restartScope Role or Run only the first of a role or of the run counts: the others went
    down with it, or will be deleted because of it.
    """
    scope = run.spec.restart_scope
    together = scope != "Replica"
    units = (
        [list(facts.values())]
        if scope == "Run"
        else [[role_facts] for role_facts in facts.values()]
    )
    chosen: list[tuple[list[RoleFacts], list[DownReplica]]] = []
    for unit in units:
        down_replicas = sorted(
            (down_replica for role_facts in unit for down_replica in role_facts.down),
            key=lambda down_replica: down_replica.order,
        )
        chosen.append((unit, down_replicas[:1] if together else down_replicas))
    down = sorted(
        (down_replica for _, down_replicas in chosen for down_replica in down_replicas),
        key=lambda down_replica: down_replica.order,
    )
    # A program whose peers have no node yet fails for want of them: that is charged to nobody.
    charged = [
        down_replica
        for down_replica in down
        if down_replica.failure.disruption or not run.status.starting
    ]
    permanent = {
        (down_replica.role, down_replica.index)
        for down_replica in charged
        if not may_restart(facts[down_replica.role].spec.restart_policy, down_replica.failure)
    }
    decision = decide_incidents(
        run.status.incidents,
        facts,
        charged,
        permanent,
        observed,
        now,
        terms.incident_window,
        gate.evicted,
    )
    waits = _Waits(run, decision, permanent, now, terms)
    roles = {
        role_facts.role: _add_charges(
            waits.restart_all(role_facts, down_replicas[0])
            if together and down_replicas
            else _begin_again(role_facts)
            if together and _may_have_met(unit)
            else waits.restart_each(
                role_facts,
                [
                    down_replica
                    for down_replica in down_replicas
                    if down_replica.role == role_facts.role
                ],
                observed,
            ),
            restarts=sum(down_replica.role == role_facts.role for down_replica in down_replicas),
            failed=decision.failed.get(role_facts.role, 0),
            disruptions=decision.disruptions.get(role_facts.role, 0),
        )
        for unit, down_replicas in chosen
        for role_facts in unit
    }
    refused = next(
        (
            down_replica
            for down_replica in down
            if _is_refused_too_often(roles[down_replica.role], down_replica)
        ),
        None,
    )
    moved: list[OwnedPod] = []
    resumed = run.status.phase == "Suspended" and gate.open and not run.spec.suspend
    for unit, _ in chosen:
        history = History(unit, together=together, now=now)
        again = history.record(observed, decision.decided, resumed=resumed)
        moved += again
        goes_on = [
            role_facts
            for role_facts in unit
            if roles[role_facts.role].attempt == role_facts.before.attempt
        ]
        again = [*again, *_avoiding_well_nodes(goes_on, observed, again)]
        for role_facts in unit:
            roles[role_facts.role] = _without(
                roles[role_facts.role], [pod for pod in again if pod.role == role_facts.role]
            ).model_copy(update={"history": history.of_role(role_facts)})
    return Counted(roles, tuple(down), decision.incidents, decision.decided, refused, tuple(moved))


def _avoiding_well_nodes(
    unit: Iterable[RoleFacts], observed: Observed, moved: Sequence[OwnedPod]
) -> Iterator[OwnedPod]:
    """Yield pods without a node that avoid one that is no longer ill: it may be all they need."""
    sick = {node.name for node in observed.ill_nodes}
    for role_facts in unit:
        for pod in role_facts.alive.values():
            if pod.avoid - sick and pod.unscheduled and not pod.node and pod not in moved:
                yield pod


def _without(status: RoleStatus, moved: Sequence[OwnedPod]) -> RoleStatus:
    """Return the status with pods that are deleted next, and are no restart.

    A pod may get a node before it is deleted, and its program may start.
    """
    if not moved:
        return status
    active = parse_intervals(status.active_indexes) - {pod.index for pod in moved}
    uids = {*status.counted_uids, *(pod.uid for pod in moved)}
    return status.model_copy(
        update={
            "active": status.active - len(moved),
            "recreations": status.recreations + 1,
            "active_indexes": format_intervals(active),
            "counted_uids": tuple(sorted(uids)),
        }
    )


def _may_have_met(unit: Iterable[RoleFacts]) -> bool:
    """Return True if a program that nobody saw may have worked with others of the unit."""
    roles = list(unit)
    started = (pod.on_node_since for role_facts in roles for pod in role_facts.alive.values())
    return any(role_facts.unsure for role_facts in roles) and (
        any(started) or any(role_facts.succeeded for role_facts in roles)
    )


def _begin_again(facts: RoleFacts) -> RoleStatus:
    """Restart all replicas of the role, finished ones included, and charge nobody."""
    before = facts.before.model_copy(update=_gauges(facts))
    again = suspended_role(before, restart_all=True)
    return again.model_copy(update={"recovering": before.recovering})


def suspended_role(counted: RoleStatus, *, restart_all: bool = False) -> RoleStatus:
    """Return a role's status at suspension. Its pods belong to an earlier attempt from now on.

    restart_all: all replicas run again, finished ones included.
    """
    attempt = counted.attempt + 1
    forgotten = {"succeeded": 0, "succeeded_indexes": "", "counts_from": attempt}
    return counted.model_copy(
        update={
            **(forgotten if restart_all else {}),
            "attempt": attempt,
            "active": 0,
            "ready": 0,
            **_NO_PODS,
            "recovering": (),
        }
    )


def pod_number(status: RoleStatus) -> int:
    """Return FAIRLEAD_ATTEMPT of the pods that are created now.

    One of the three counts is raised, and stored, before a replica gets another pod, so each later
    pod of a replica has a greater number. Those of a retry are above those of the Runs before.
    """
    counted = status.attempt + status.restarts + status.recreations
    return status.first_attempt + counted


def role_at_end(facts: RoleFacts, counted: RoleStatus) -> RoleStatus:
    """Return a role's status at the run's end: counted, and without restarts."""
    return counted.model_copy(
        update={
            **_gauges(facts),
            "restarts": facts.before.restarts,
            "attempt": facts.before.attempt,
            "counts_from": facts.before.counts_from,
            **_NO_PODS,
            "recovering": (),
        }
    )


def _gauges(facts: RoleFacts) -> dict[str, object]:
    return {
        "desired": facts.spec.count,
        "active": len(facts.alive),
        "ready": sum(pod.ready for index, pod in facts.alive.items() if index not in facts.lost),
        "succeeded": len(facts.succeeded),
        "succeeded_indexes": format_intervals(facts.succeeded),
    }


def _add_charges(status: RoleStatus, *, restarts: int, failed: int, disruptions: int) -> RoleStatus:
    if not (restarts or failed or disruptions):
        return status
    return status.model_copy(
        update={
            "failed": status.failed + failed,
            "disruptions": status.disruptions + disruptions,
            "restarts": status.restarts + restarts,
        }
    )


def _is_refused_too_often(status: RoleStatus, down: DownReplica) -> bool:
    entry = entries_by_index(status.recovering).get(down.index)
    return entry is not None and entry.refusals >= MOST_REFUSALS


class _Waits:
    """Which replicas restart, and the backoff of each."""

    def __init__(
        self,
        run: Run,
        decision: IncidentDecision,
        permanent: Collection[tuple[str, int]],
        now: datetime,
        terms: RestartTerms,
    ) -> None:
        self._decision = decision
        self._permanent = permanent
        self._now = now
        self._since = to_microsecond(now)
        self._jitter = jitter(run.metadata.uid, self._since)
        self._terms = terms

    def restart_each(
        self, facts: RoleFacts, down: Iterable[DownReplica], observed: Observed
    ) -> RoleStatus:
        """Restart replicas one by one, and reset the backoff of replicas that became stable."""
        rows = {
            index: self._shortened(backoff_state(entry))
            for index, entry in entries_by_index(facts.before.recovering).items()
            if index not in facts.succeeded and not _is_stable(facts, index, self._now)
        }
        newly_down = list(down)
        for down_replica in newly_down:
            rows[down_replica.index] = self._after(
                rows.get(down_replica.index, BackoffState()), down_replica
            )
        uids = {
            pod.uid for down_replica in newly_down if (pod := facts.pods.get(down_replica.index))
        }
        return facts.before.model_copy(
            update={
                **_gauges(facts),
                "active_indexes": format_intervals(facts.alive),
                "recreations": facts.before.recreations + bool(facts.unsure),
                "nodes": record_nodes(facts.before, facts.alive, observed),
                "counted_uids": tuple(sorted({pod.uid for pod in facts.ended.values()} | uids)),
                "recovering": to_entries(rows),
            }
        )

    def restart_all(self, facts: RoleFacts, down: DownReplica) -> RoleStatus:
        """Restart all replicas of the role, including finished ones.

        A rendezvous needs every member.
        """
        attempt = facts.before.attempt + 1
        row = self._after(worst_state(map(backoff_state, facts.before.recovering)), down)
        return facts.before.model_copy(
            update={
                **_gauges(facts),
                "active": 0,
                "ready": 0,
                "succeeded": 0,
                "succeeded_indexes": "",
                "attempt": attempt,
                "counts_from": attempt,
                **_NO_PODS,
                "recovering": to_entries(dict.fromkeys(range(facts.spec.count), row)),
            }
        )

    def _after(self, row: BackoffState, down: DownReplica) -> BackoffState:
        failure = down.failure
        if self._decision.excused and not failure.refused:
            failure = _EXCUSED
        after = row.after(failure, self._terms.restarts, self._jitter, self._since)
        if self._decision.waiting and (down.role, down.index) in self._permanent:
            # Its policy forbids a restart, unless a disruption explains the failure.
            return after._replace(wait=max(after.wait, self._terms.incident_window))
        return after

    def _shortened(self, row: BackoffState) -> BackoffState:
        """Return the state with a short wait if its failure was just explained by a disruption."""
        excused = any(
            incident.cause == "Disruption" and incident.began <= row.since
            for incident in self._decision.decided
        )
        if not excused or row.disruptions or row.refusals:
            return row
        waited = elapsed(row.since, self._now)
        return row._replace(
            failures=max(0, row.failures - 1),
            disruptions=1,
            wait=min(row.wait, waited + self._jitter),
        )


def _is_stable(facts: RoleFacts, index: int, now: datetime) -> bool:
    pod = facts.alive.get(index)
    return bool(pod and pod.running_since and elapsed(pod.running_since, now) >= STABLE)


class BackoffState(NamedTuple):
    """The backoff of a replica since it was last stable.

    failures: of the program, and pods that a kubelet refused; refusals: the latter, if they were
    the last ones in a row; disruptions: all others. wait: seconds, counted from `since`.
    unknown: the fields of another version, as JSON text.
    """

    failures: int = 0
    disruptions: int = 0
    refusals: int = 0
    wait: float = 0.0
    since: str = ""
    unknown: str = ""

    def after(self, failure: Failure, delays: Delays, jitter: float, since: str) -> BackoffState:
        """Return the state after one more failure; the first disruption waits only for jitter."""
        failures, disruptions, refusals = self[:3]
        if failure.disruption and not failure.refused:
            disruptions += 1
            wait = delays.after(disruptions - 1) if disruptions > 1 else jitter
            return BackoffState(failures, disruptions, 0, wait, since, self.unknown)
        failures += 1
        refusals = refusals + 1 if failure.refused else 0
        wait = delays.after(failures)
        return BackoffState(failures, disruptions, refusals, wait, since, self.unknown)


def worst_state(rows: Iterable[BackoffState]) -> BackoffState:
    """Return the state for replicas that restart together: the maximum of each count."""
    states = list(rows) or [BackoffState()]
    return BackoffState(
        max(row.failures for row in states),
        max(row.disruptions for row in states),
        max(row.refusals for row in states),
        unknown=next((row.unknown for row in states if row.unknown), ""),
    )


def jitter(uid: str, since: str) -> float:
    """Return seconds below JITTER, deterministic for a run and a time."""
    return round(zlib.crc32(f"{uid} {since}".encode()) / 2**32 * JITTER, 3)


def entries_by_index(entries: Iterable[Recovering]) -> dict[int, Recovering]:
    """Return the entry of each replica index."""
    return {index: entry for entry in entries for index in parse_intervals(entry.indexes)}


def backoff_state(entry: Recovering | None) -> BackoffState:
    """Return the backoff state in an entry of the status."""
    if entry is None:
        return BackoffState()
    counts = (entry.failures, entry.disruptions, entry.refusals)
    return BackoffState(*counts, wait_seconds(entry), entry.since, entry.unknown_fields())


def wait_seconds(entry: Recovering) -> float:
    """Return the total wait of an entry's replicas, in seconds."""
    return (entry.wait_milliseconds or 0) / 1000


def fill_in_wait(entry: Recovering, delays: Delays) -> Recovering:
    """Return the entry with a wait, computed from failures if an older controller wrote none."""
    if entry.wait_milliseconds is not None:
        return entry
    wait = delays.after(entry.failures) if entry.failures else 0.0
    return entry.model_copy(update={"wait_milliseconds": round(wait * 1000)})


def to_entries(rows: Mapping[int, BackoffState]) -> tuple[Recovering, ...]:
    """Return entries for states by index; equal states share an entry."""
    groups: dict[BackoffState, list[int]] = {}
    for index, row in rows.items():
        groups.setdefault(row, []).append(index)
    return tuple(
        Recovering(
            indexes=format_intervals(indexes),
            failures=row.failures,
            disruptions=row.disruptions,
            refusals=row.refusals,
            wait_milliseconds=round(row.wait * 1000),
            since=row.since,
            **(orjson.loads(row.unknown) if row.unknown else {}),
        )
        for row, indexes in sorted(groups.items(), key=lambda item: min(item[1]))
    )


def remaining_wait(entry: Recovering | None, now: datetime) -> float:
    """Return the seconds until the replicas of an entry may start; 0 if they may start now.

    At most the whole wait, so that a clock that was set back cannot block a run for a day.
    """
    if entry is None:
        return 0.0
    whole = wait_seconds(entry)
    return min(whole, max(0.0, whole - elapsed(entry.since, now)))
