"""Counts replicas that went down, and says which begin again: a role's next status.

What is counted is remembered before anything is done about it: a pod is deleted only when the
status that the API server gave back has its uid, or a later attempt than the pod's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from webhook.backoff import INCIDENT_WINDOW, RESTART_DELAYS
from webhook.run import backoff, intervals
from webhook.run.backoff import Row, jitter_of, row_of, worst
from webhook.run.failure import Failure, starts_again
from webhook.run.incidents import judge
from webhook.times import elapsed, to_microsecond

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from webhook.backoff import Delays
    from webhook.run.facts import Down, RoleFacts
    from webhook.run.incidents import Judged
    from webhook.run.model import Incident, RoleStatus, Run
    from webhook.run.observed import Observed

# What a replica waits for as after a disruption.
_EXCUSED: Final = Failure(True, "", "")


@dataclass(frozen=True, slots=True)
class RestartTerms:
    """An admin's settings.

    restarts: how long replicas wait. incident_window: for how many seconds a failure is not charged
    while a disruption may come to light.
    """

    restarts: Delays = RESTART_DELAYS
    incident_window: float = INCIDENT_WINDOW


@dataclass(frozen=True, slots=True)
class Counted:
    """The roles' statuses with everything counted.

    down: what was counted now, the cause first.
    incidents: those of the status, brought up to now; decided: those that were decided now.
    refused: a replica whose pod kubelets have refused too often.
    """

    roles: Mapping[str, RoleStatus]
    down: tuple[Down, ...] = ()
    incidents: tuple[Incident, ...] = ()
    decided: tuple[Incident, ...] = ()
    refused: Down | None = None


def count(
    run: Run, facts: Mapping[str, RoleFacts], observed: Observed, now: datetime, terms: RestartTerms
) -> Counted:
    """Count everything that went down since the last time.

    Under restartScope Role or Run the first of a role's, or of the run's, counts alone: the rest
    went down with it, or will be taken down for it.
    """
    scope = run.spec.restart_scope
    together = scope != "Replica"
    units = [list(facts.values())] if scope == "Run" else [[one] for one in facts.values()]
    chosen: list[tuple[list[RoleFacts], list[Down]]] = []
    for unit in units:
        found = sorted((each for one in unit for each in one.down), key=lambda each: each.order)
        chosen.append((unit, found[:1] if together else found))
    down = sorted((each for _, found in chosen for each in found), key=lambda each: each.order)
    permanent = {
        (each.role, each.index)
        for each in down
        if not starts_again(facts[each.role].spec.restart_policy, each.failure)
    }
    judged = judge(
        run.status.incidents, facts, down, permanent, observed, now, terms.incident_window
    )
    waits = _Waits(run, judged, permanent, now, terms)
    roles = {
        one.role: _charged(
            waits.begun_anew(one, found[0])
            if together and found
            else waits.one_by_one(one, [each for each in found if each.role == one.role]),
            restarts=sum(each.role == one.role for each in found),
            failed=judged.failed.get(one.role, 0),
            disruptions=judged.disruptions.get(one.role, 0),
        )
        for unit, found in chosen
        for one in unit
    }
    refused = next((each for each in down if _too_often(roles[each.role], each)), None)
    return Counted(roles, tuple(down), judged.incidents, judged.decided, refused)


def suspended(counted: RoleStatus) -> RoleStatus:
    """A role's status at a suspension: its pods are of an earlier attempt from now on."""
    return counted.model_copy(
        update={
            "attempt": counted.attempt + 1,
            "active": 0,
            "ready": 0,
            "active_indexes": "",
            "counted_uids": (),
            "recovering": (),
        }
    )


def closed(facts: RoleFacts, counted: RoleStatus) -> RoleStatus:
    """A role's status at the run's end: what happened last is counted, and starts nothing again."""
    return counted.model_copy(
        update={
            **_gauges(facts),
            "restarts": facts.before.restarts,
            "attempt": facts.before.attempt,
            "counts_from": facts.before.counts_from,
            "active_indexes": "",
            "counted_uids": (),
            "recovering": (),
        }
    )


def _gauges(facts: RoleFacts) -> dict[str, object]:
    return {
        "desired": facts.spec.count,
        "active": len(facts.alive),
        "ready": sum(pod.ready for index, pod in facts.alive.items() if index not in facts.lost),
        "succeeded": len(facts.succeeded),
        "succeeded_indexes": intervals.written(facts.succeeded),
    }


def _charged(status: RoleStatus, *, restarts: int, failed: int, disruptions: int) -> RoleStatus:
    if not (restarts or failed or disruptions):
        return status
    return status.model_copy(
        update={
            "failed": status.failed + failed,
            "disruptions": status.disruptions + disruptions,
            "restarts": status.restarts + restarts,
        }
    )


def _too_often(status: RoleStatus, down: Down) -> bool:
    entry = backoff.by_index(status.recovering).get(down.index)
    return entry is not None and entry.refusals >= backoff.MOST_REFUSALS


class _Waits:
    """Which replicas begin again, and how long each of them waits."""

    def __init__(
        self,
        run: Run,
        judged: Judged,
        permanent: Collection[tuple[str, int]],
        now: datetime,
        terms: RestartTerms,
    ) -> None:
        self._judged = judged
        self._permanent = permanent
        self._now = now
        self._since = to_microsecond(now)
        self._jitter = jitter_of(run.metadata.uid, self._since)
        self._terms = terms

    def one_by_one(self, facts: RoleFacts, down: Iterable[Down]) -> RoleStatus:
        """Each replica by itself: those that went down wait, and those that last are forgiven."""
        rows = {
            index: self._shortened(row_of(entry))
            for index, entry in backoff.by_index(facts.before.recovering).items()
            if index not in facts.succeeded and not _stable(facts, index, self._now)
        }
        went = list(down)
        for each in went:
            rows[each.index] = self._after(rows.get(each.index, Row()), each)
        gone = {each.pod.uid for each in went if each.pod}
        return facts.before.model_copy(
            update={
                **_gauges(facts),
                "active_indexes": intervals.written(facts.alive.keys() | facts.missing),
                "counted_uids": tuple(sorted({pod.uid for pod in facts.ended.values()} | gone)),
                "recovering": backoff.grouped(rows),
            }
        )

    def begun_anew(self, facts: RoleFacts, down: Down) -> RoleStatus:
        """All replicas of the role once more, those that had finished among them.

        Frameworks that restart together meet anew: a rendezvous needs every member.
        """
        attempt = facts.before.attempt + 1
        row = self._after(worst(map(row_of, facts.before.recovering)), down)
        return facts.before.model_copy(
            update={
                **_gauges(facts),
                "active": 0,
                "ready": 0,
                "succeeded": 0,
                "succeeded_indexes": "",
                "attempt": attempt,
                "counts_from": attempt,
                "active_indexes": "",
                "counted_uids": (),
                "recovering": backoff.grouped(dict.fromkeys(range(facts.spec.count), row)),
            }
        )

    def _after(self, row: Row, down: Down) -> Row:
        failure = down.failure
        if self._judged.excused and not failure.refused:
            failure = _EXCUSED
        after = row.after(failure, self._terms.restarts, self._jitter, self._since)
        if self._judged.waiting and (down.role, down.index) in self._permanent:
            # Its policy forbids a restart, unless a disruption comes to light.
            return after._replace(wait=max(after.wait, self._terms.incident_window))
        return after

    def _shortened(self, row: Row) -> Row:
        """The row without its wait, if what it waits for was just found to be a disruption."""
        excused = any(
            each.cause == "Disruption" and each.began <= row.since for each in self._judged.decided
        )
        if not excused or row.disruptions or row.refusals:
            return row
        waited = elapsed(row.since, self._now)
        return row._replace(
            failures=max(0, row.failures - 1),
            disruptions=1,
            wait=min(row.wait, waited + self._jitter),
        )


def _stable(facts: RoleFacts, index: int, now: datetime) -> bool:
    pod = facts.alive.get(index)
    return bool(pod and pod.running_since and elapsed(pod.running_since, now) >= backoff.STABLE)
