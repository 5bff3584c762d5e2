"""Counts replicas that went down, and says which begin again: a role's next status.

What is counted is remembered before anything is done about it: a pod is deleted only when the
status that the API server gave back has its uid, or a later attempt than the pod's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.run import backoff, intervals
from webhook.run.failure import starts_again
from webhook.times import elapsed, to_microsecond

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from webhook.run.facts import Down, RoleFacts
    from webhook.run.model import RoleStatus, RunSpec


@dataclass(frozen=True, slots=True)
class Counted:
    """The roles' statuses with everything counted.

    down: what was counted now, the cause first.
    permanent: the first that may not start again, under its role's restart policy.
    """

    roles: Mapping[str, RoleStatus]
    down: tuple[Down, ...] = ()
    permanent: Down | None = None


def count(spec: RunSpec, facts: Mapping[str, RoleFacts], now: datetime) -> Counted:
    """Count everything that went down since the last time.

    Under restartScope Role or Run the first of a role's, or of the run's, counts alone: the rest
    went down with it, or will be taken down for it.
    """
    roles_apart = [[one] for one in facts.values()]
    units = [list(facts.values())] if spec.restart_scope == "Run" else roles_apart
    together = spec.restart_scope != "Replica"
    roles: dict[str, RoleStatus] = {}
    down: list[Down] = []
    for unit in units:
        found = sorted((each for one in unit for each in one.down), key=lambda each: each.order)
        if together:
            found = found[:1]
        for one in unit:
            own = [each for each in found if each.role == one.role]
            anew = together and bool(found)
            status = _begun_anew(one, now) if anew else _one_by_one(one, own, now)
            roles[one.role] = _charged(status, own)
        down += found
    down.sort(key=lambda each: each.order)
    permanent = next(
        (
            each
            for each in down
            if not starts_again(facts[each.role].spec.restart_policy, each.failure)
        ),
        None,
    )
    return Counted(roles, tuple(down), permanent)


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
        "ready": sum(pod.ready for pod in facts.alive.values()),
        "succeeded": len(facts.succeeded),
        "succeeded_indexes": intervals.written(facts.succeeded),
    }


def _charged(status: RoleStatus, down: Sequence[Down]) -> RoleStatus:
    if not down:
        return status
    disruptions = sum(each.failure.disruption for each in down)
    return status.model_copy(
        update={
            "failed": status.failed + len(down) - disruptions,
            "disruptions": status.disruptions + disruptions,
            "restarts": status.restarts + len(down),
        }
    )


def _one_by_one(facts: RoleFacts, down: Sequence[Down], now: datetime) -> RoleStatus:
    """Each replica by itself: those that went down wait, and those that last are forgiven."""
    went = {each.index for each in down}
    waiting = {
        index: (entry.failures, entry.since)
        for index, entry in backoff.by_index(facts.before.recovering).items()
        if index not in facts.succeeded and not _stable(facts, index, now)
    }
    since = to_microsecond(now)
    for index in went:
        waiting[index] = (waiting[index][0] + 1 if index in waiting else 1, since)
    gone = {each.pod.uid for each in down if each.pod}
    return facts.before.model_copy(
        update={
            **_gauges(facts),
            "active_indexes": intervals.written(facts.alive.keys() | facts.missing),
            "counted_uids": tuple(sorted({pod.uid for pod in facts.ended.values()} | gone)),
            "recovering": backoff.grouped(waiting),
        }
    )


def _begun_anew(facts: RoleFacts, now: datetime) -> RoleStatus:
    """All replicas of the role once more, those that had finished among them.

    Frameworks that restart together meet anew: a rendezvous needs every member.
    """
    attempt = facts.before.attempt + 1
    rows = max((entry.failures for entry in facts.before.recovering), default=0) + 1
    every = {index: (rows, to_microsecond(now)) for index in range(facts.spec.count)}
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
            "recovering": backoff.grouped(every),
        }
    )


def _stable(facts: RoleFacts, index: int, now: datetime) -> bool:
    pod = facts.alive.get(index)
    return bool(pod and pod.running_since and elapsed(pod.running_since, now) >= backoff.STABLE)
