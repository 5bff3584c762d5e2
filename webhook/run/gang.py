"""The start of a gang: all replicas of a Run with `gang` get a node, or none keeps one.

A Run that was whole once is left alone: what it loses is replaced as of any other Run. A start is
granted by one write of the status, before any pod is planned. One that does not become whole gives
way: its pods are of an earlier attempt from then on, as those of a suspended Run, and no count but
that of the tries rises.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.backoff import GANG_AGAIN_DELAYS
from webhook.run.facts import is_finishing
from webhook.run.history import first_to_give_up, waiting
from webhook.run.model.intervals import format_intervals, parse_intervals
from webhook.run.model.status import GangStatus, GangWait, RunStatus
from webhook.run.queue import queue_of, was_queued
from webhook.run.restarts import jitter
from webhook.run.usage import pod_time
from webhook.shortening import cut
from webhook.times import elapsed, parse_time, span_seconds, to_microsecond, to_second

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from webhook.run.facts import RoleFacts
    from webhook.run.model import Run
    from webhook.run.observed import Observed, OwnedPod
    from webhook.run.restarts import Counted

# Seconds of a start at least, if nodes can be made for it: an autoscaler needs some minutes.
ON_DEMAND_SECONDS: Final = 1200.0
# Seconds until the next look of a gang that waits: no watch tells of room for it.
LOOK_SECONDS: Final = 30.0
_MESSAGE_MAX_CHARACTERS: Final = 500


@dataclass(frozen=True, slots=True)
class StartGate:
    """Whether the pods of a Run may be created, and the next state of its start.

    message: why not, or what a start needs; gives_way: the pods of now are given up; begins: the
    start is granted by the status of now, so no pod is created before it is stored.
    """

    open: bool = True
    status: GangStatus | None = None
    message: str = ""
    gives_way: bool = False
    begins: bool = False
    after: float | None = None


class _Members(NamedTuple):
    """How many replicas need a node at one time, and how many have one."""

    needed: int
    bound: int
    whole: bool


def is_gang(run: Run) -> bool:
    """Return whether the Run starts all at once. One in a queue is started by the queue."""
    spec = run.spec
    # A label that is added while the run is active counts when it is resumed.
    queued = was_queued(run.status) or (bool(queue_of(run)) and run.status.start_time is None)
    return spec.gang is not None and not (spec.serving or spec.delegated or queued)


def stored_gang(raw: Mapping[str, Any]) -> GangStatus | None:
    """Return the start of a stored native Run; None if it has none, or competes for nothing."""
    spec, metadata = raw.get("spec") or {}, raw["metadata"]
    if not spec.get("gang") or spec.get("suspend") or metadata.get("deletionTimestamp"):
        return None
    return unfinished_start(RunStatus.read(raw.get("status")), metadata.get("creationTimestamp"))


def unfinished_start(status: RunStatus, created: str | None) -> GangStatus | None:
    """Return the start of a Run of this status that is not whole; one without a status waits."""
    gang = status.gang
    if gang is None and created and status.start_time is None:
        gang = GangStatus(state="Waiting", since=created)
    return gang if gang and gang.state in ("Waiting", "Starting") else None


def replicas_needed(run: Run) -> int:
    """Return how many replicas have to have a node at one time, by the run's status."""
    finished = sum(role.succeeded for role in run.status.replicas.values())
    count = sum(replica.count for replica in run.spec.roles.values()) - finished
    return count if run.spec.elastic_from is None else min(count, run.spec.elastic_from)


def waits_of(status: RunStatus) -> dict[tuple[str, int, str], str]:
    """Return since when replicas wait for a class, over all tries: by role, index and class.

    A wait for which policies gave the class up is over, as its event is in the history.
    """
    waited = status.gang.waited if status.gang else ()
    ends: dict[tuple[str, int, str], datetime] = {}
    for role, role_status in status.replicas.items() if waited else ():
        for entry in role_status.history:
            for event in entry.events:
                counts = event.waited_seconds is not None
                for index in parse_intervals(entry.indexes) if counts else ():
                    key, end = (role, index, event.capacity_class), parse_time(event.time)
                    ends[key] = max(ends.get(key, end), end)
    return {
        key: wait.since
        for wait in waited
        for index in parse_intervals(wait.indexes)
        for key in ((wait.role, index, wait.capacity_class),)
        if key not in ends or ends[key] < parse_time(wait.since)
    }


def decide_start(
    run: Run,
    facts: Mapping[str, RoleFacts],
    counted: Counted,
    observed: Observed,
    now: datetime,
) -> StartGate:
    """Return whether pods may be created of a run that is neither suspended nor over."""
    if not is_gang(run):
        return StartGate(status=run.status.gang)
    before, begun = run.status.gang, run.status.start_time is not None
    if before is None:
        # Without this field, a Run that has begun was begun by another version, as a whole.
        before = GangStatus(state="Whole" if begun else "Waiting", since=to_microsecond(now))
    if before.state == "Waiting":
        return _wait(run, before, facts, observed, now)
    if before.state == "Starting":
        return _start(run, before, facts, counted, observed, now)
    anew = any(counted.roles[role].attempt > facts[role].before.attempt for role in facts)
    if begun and anew and run.spec.restart_scope == "Run":
        new = before.model_copy(
            update={"state": "Waiting", "since": to_microsecond(now), "tries": 0}
        )
        return StartGate(open=False, status=new, message="all replicas start again", after=0.0)
    return StartGate(status=_forget_waits(before, facts, observed))


def _wait(
    run: Run,
    before: GangStatus,
    facts: Mapping[str, RoleFacts],
    observed: Observed,
    now: datetime,
) -> StartGate:
    left = -elapsed(before.not_before, now) if before.not_before else 0.0
    asked = run.start_now and parse_time(run.start_now) >= parse_time(before.since)
    if left > 0 and not asked:
        return _pause(before, left)
    if any(role_facts.has_earlier_programs for role_facts in facts.values()):
        text = "it waits until the pods of the last try are gone"
        return StartGate(open=False, status=before, message=text, after=LOOK_SECONDS)
    if not observed.start.granted:
        text = f"it waits to start all at once: {observed.start.why}"
        return StartGate(open=False, status=before, message=text, after=LOOK_SECONDS)
    update = {
        "state": "Starting",
        "since": to_microsecond(now),
        "tries": before.tries + 1,
        "not_before": None,
    }
    return StartGate(status=before.model_copy(update=update), begins=True)


def _pause(gang: GangStatus, left: float) -> StartGate:
    """Wait for the next try, for so many seconds."""
    end = to_second(parse_time(gang.not_before or gang.since))
    text = f"try {gang.tries} gave its nodes back; {gang.lacked}; the next is at {end}"
    return StartGate(open=False, status=gang, message=text, after=left)


def _start(
    run: Run,
    before: GangStatus,
    facts: Mapping[str, RoleFacts],
    counted: Counted,
    observed: Observed,
    now: datetime,
) -> StartGate:
    """Go on with a start, until it is whole or gives way."""
    pods = [pod for role_facts in facts.values() for pod in role_facts.alive.values()]
    members = _count_members(run, facts)
    again = any(counted.roles[role].attempt > facts[role].before.attempt for role in facts)
    held = before.held_seconds + sum(pod_time(pod, now).on_node for pod in pods)
    priority = max((pod.priority for pod in pods), default=before.priority)
    if members.whole and not again:
        update = {"held_seconds": held, "priority": priority, "lacked": ""}
        update |= {"state": "Whole", "since": to_microsecond(now)}
        whole = before.model_copy(update=update)
        return StartGate(status=_forget_waits(whole, facts, observed))
    limit = span_seconds(run.spec.gang.start_within) if run.spec.gang else 0.0
    limit = max(limit, ON_DEMAND_SECONDS) if observed.start.on_demand else limit
    left = limit - elapsed(before.since, now)
    lacks = _lacks(pods, observed)
    if not again and lacks and (left <= 0 or observed.start.yields_to):
        pause = GANG_AGAIN_DELAYS.after(max(1, before.tries))
        pause += jitter(run.metadata.uid, to_microsecond(now))
        end = now + timedelta(seconds=pause)
        if given_up := first_to_give_up(facts, observed):
            # No later than it would be given up by pods that go on waiting.
            end = max(now, min(end, given_up[0]))
        lacked = f"{members.bound} of {members.needed} replicas had a node; {lacks}"
        if observed.start.yields_to:
            lacked = f"Run {observed.start.yields_to} began first; {lacked}"
        new = before.model_copy(
            update={
                "state": "Waiting",
                "since": to_microsecond(now),
                "not_before": to_microsecond(end),
                "lacked": lacked,
                "held_seconds": held,
                "priority": priority,
                "waited": _format_waits(_waits_so_far(facts, observed)),
            }
        )
        return replace(_pause(new, (end - now).total_seconds()), gives_way=True)
    text = f"it starts all at once: {members.bound} of {members.needed} replicas have a node"
    if left > 0:
        text += f"; if one can have none at {to_second(now + timedelta(seconds=left))}, all pause"
    return StartGate(
        status=_forget_waits(before.model_copy(update={"priority": priority}), facts, observed),
        message=text,
        after=min(left, LOOK_SECONDS) if left > 0 else LOOK_SECONDS,
    )


def _lacks(pods: list[OwnedPod], observed: Observed) -> str:
    """Return why a replica can have no node; empty if each has one, or may still get one.

    A node that is silent, a scheduling gate and an image are no reason.
    """
    waits = next((pod for pod in pods if pod.unscheduled and not pod.node), None)
    if waits:
        return f"{waits.name}: {cut(waits.unscheduled, _MESSAGE_MAX_CHARACTERS)}"
    if observed.refusals:
        first = observed.refusals[0]
        return f"{first.name}: {cut(first.message, _MESSAGE_MAX_CHARACTERS)}"
    return ""


def _count_members(run: Run, facts: Mapping[str, RoleFacts]) -> _Members:
    bound = {
        (role, index)
        for role, role_facts in facts.items()
        for index, pod in role_facts.alive.items()
        if pod.node
    }
    unfinished = sum(len(list(role_facts.unfinished)) for role_facts in facts.values())
    least = run.spec.elastic_from
    if is_finishing(run.spec, facts):
        return _Members(len(bound), len(bound), whole=True)
    if least is None:
        return _Members(unfinished, len(bound), len(bound) == unfinished)
    leads = (next(iter(facts)), 0) in bound
    return _Members(least, len(bound), leads and len(bound) >= least)


def _forget_waits(
    gang: GangStatus, facts: Mapping[str, RoleFacts], observed: Observed
) -> GangStatus:
    """Return the start without the waits that are over: the replica has a node, or the class was
    given up. A late replica of an elastic run goes on waiting after all others have started."""
    if not gang.waited:
        return gang
    return gang.model_copy(update={"waited": _format_waits(_unmet(observed.waited, facts))})


def _unmet(
    waits: Mapping[tuple[str, int, str], str], facts: Mapping[str, RoleFacts]
) -> dict[tuple[str, int, str], str]:
    """Return the waits of replicas that have neither a node nor finished."""
    met = {
        (role, index)
        for role, role_facts in facts.items()
        for index in {
            *role_facts.succeeded,
            *(i for i, pod in role_facts.alive.items() if pod.node),
        }
    }
    return {key: since for key, since in waits.items() if key[:2] not in met}


def _waits_so_far(
    facts: Mapping[str, RoleFacts], observed: Observed
) -> dict[tuple[str, int, str], str]:
    """Return since when replicas wait for a class, in this try or in earlier ones."""
    waits = _unmet(observed.waited, facts)
    for role_facts in facts.values():
        for pod, capacity, since, _ in waiting(role_facts, observed):
            waits[pod.role, pod.index, capacity] = since
    return waits


def _format_waits(waits: Mapping[tuple[str, int, str], str]) -> tuple[GangWait, ...]:
    groups: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for (role, index, capacity), since in waits.items():
        groups[role, capacity, since].add(index)
    return tuple(
        GangWait(role=role, indexes=format_intervals(indexes), capacity_class=capacity, since=since)
        for (role, capacity, since), indexes in sorted(groups.items())
    )
