"""The queue of Kueue in which a Run waits: its Workload, and what its states ask for.

The controller owns one Workload for a Run with the label kueue.x-k8s.io/queue-name. Kueue decides
when it is admitted and when it is evicted. Pods exist only in between, and the quota is released
only when they are gone (as pkg/controller/jobframework/reconciler.go of Kueue does for the jobs
that it knows).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.crd.conditions import ConditionUpdate, update_conditions
from webhook.run.actions import CheckWorkload, CreateWorkload, DeleteWorkload, WriteWorkload
from webhook.shortening import cut
from webhook.times import elapsed, parse_time, to_second

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from webhook.placement.shapes import JsonObject
    from webhook.run.actions import Action, Outcome
    from webhook.run.model import Run
    from webhook.run.model.status import RunStatus
    from webhook.run.observed import Refusal
    from webhook.run.queue_state import Queueing, StoredWorkload

# The condition of a Run that was in a queue.
ADMITTED: Final = "Admitted"
NOT_QUEUED: Final = "NotQueued"
_LATE: Final = (
    f"label {names.KUEUE_QUEUE} was given after the run began: it counts when the run is suspended "
    "and resumed"
)
# What is known of a queue is not enough to go on.
QUEUE_UNKNOWN: Final = "QueueUnknown"
# Seconds until a look at a queue of which nothing is known.
UNKNOWN_QUEUE_PAUSE_SECONDS: Final = 3.0
# The same if only a change of an object can help. The whole Run is read for each.
LASTING_PAUSE_SECONDS: Final = 60.0
# Seconds until the next look at the position of the first run that waits.
POSITION_PAUSE_SECONDS: Final = 15.0
MESSAGE_MAX_CHARACTERS: Final = 500
# Reasons of an eviction after which Kueue's jobs may be admitted at once. After the others Kueue
# itself says when.
_ADMITTED_AT_ONCE: Final = ("Preempted", "NodeFailures")
# Reasons of evictions by this controller, after which the run queues again as it would be placed
# then: its pods cannot be created, or ask other nodes than those of its flavors.
CANNOT_CREATE: Final = "CannotCreate"
PLACEMENT_CHANGED: Final = "PlacementChanged"
# Seconds for which pods of an admitted run are refused until it gives its quota back.
STUCK_AFTER: Final = 60.0
_WAITS_FOR_START: Final = "WaitForStart"
_RECOVERS: Final = ("WaitForRecovery", "Recovered")


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether the pods of a Run may exist.

    reason, message: why not. evicted: reason and message of an eviction of now by Kueue.
    restarts: the run begins again, also its replicas that have finished, if its scope says so.
    actions: on the Workload. look_again: nothing is known; nothing may be done.
    """

    open: bool = True
    reason: str = ""
    message: str = ""
    evicted: tuple[str, str] | None = None
    restarts: bool = False
    actions: tuple[Action, ...] = ()
    updates: tuple[ConditionUpdate, ...] = ()
    look_again: bool = False
    after: float | None = None
    """Seconds until the next look, although nothing changes."""


def queue_of(run: Run) -> str:
    """Return the queue in which the Run waits; empty for none."""
    if run.spec.serving or run.spec.delegated:
        return ""
    return (run.metadata.labels or {}).get(names.KUEUE_QUEUE) or ""


def was_queued(status: RunStatus) -> bool:
    """Return whether the Run is in a queue, or was admitted by one."""
    return any(
        condition.type == ADMITTED and condition.reason != NOT_QUEUED
        for condition in status.conditions
    )


def waits_in_queue(run: Run) -> bool:
    """Return whether the Run has no pods until a queue admits it, by its own status."""
    status = run.status
    late = status.start_time is not None and not was_queued(status)
    admitted = any(
        (condition.type, condition.status) == (ADMITTED, "True") for condition in status.conditions
    )
    return bool(queue_of(run)) and not (late or admitted or run.spec.suspend or status.ended)


def decide(
    run: Run,
    queueing: Queueing,
    now: datetime,
    *,
    pods_left: bool,
    refusals: Sequence[Refusal] = (),
) -> Gate:
    """Return whether the Run's pods may exist, and what to do with its Workload.

    pods_left: pods of the Run exist that have not ended. refusals: of its creations.
    """
    queue, workload = queue_of(run), queueing.workload
    queued = was_queued(run.status)
    if not queue or run.spec.suspend or (run.status.start_time and not queued):
        # Not in a queue. A label that is added while the run is active counts when it is resumed.
        leaves = workload and not workload.deleted and not (run.spec.suspend and pods_left)
        late = queue and not run.spec.suspend
        about = _LATE if late else "the run is not in a queue"
        update = ConditionUpdate(ADMITTED, "False", NOT_QUEUED, about)
        return Gate(
            actions=(DeleteWorkload(workload.name, workload.uid),) if workload and leaves else (),
            updates=(update,) if queued or late else (),
        )
    if queueing.unknown:
        begun = run.status.phase != "Suspended" and run.status.start_time is not None
        if begun and not queueing.served:
            return Gate(updates=_admission(queueing.unknown, admitted=True))
        what = f"queue {queue}: {queueing.unknown}"
        pause = LASTING_PAUSE_SECONDS if queueing.lasting else UNKNOWN_QUEUE_PAUSE_SECONDS
        return _shut(QUEUE_UNKNOWN, what, look_again=begun, after=pause)
    if workload is None or workload.deleted:
        create = () if pods_left or workload else (CreateWorkload(queue),)
        why = "its Workload was deleted" if queued and pods_left else "it is not in the queue yet"
        return _shut("Queued", f"queue {queue}: {why}", actions=create)
    if workload.queue != queue or workload.has("Finished"):
        delete = () if pods_left else (DeleteWorkload(workload.name, workload.uid),)
        return _shut("Queued", f"it leaves queue {workload.queue} for {queue}", actions=delete)
    if workload.has("Evicted"):
        if workload.conditions["Evicted"].reason in (CANNOT_CREATE, PLACEMENT_CHANGED):
            return _left(run, workload, queueing.pause, now, pods_left=pods_left)
        return _evicted(run, workload, queueing.position, pods_left=pods_left)
    if queueing.look:
        text = _waiting(workload, queueing.position)
        if workload.holds_quota:
            text = f"waits in queue {queue}: it has quota, and its pods are tried with it"
        return _shut("Queued", text, actions=(CheckWorkload(workload.name, workload.uid),))
    if not workload.has("Admitted"):
        return _shut(
            "Queued", _waiting(workload, queueing.position), after=_pause(queueing.position)
        )
    why, left = _stuck(workload, refusals, now, pods_left=pods_left)
    about = _flavors(workload)
    if queueing.withheld:
        about += f"; no replica can be created now: {queueing.withheld}"
    return Gate(
        updates=_admission(about, admitted=True),
        actions=(evict(workload, CANNOT_CREATE, why),) if left == 0 else (),
        after=left,
    )


def _shut(
    reason: str,
    message: str,
    *,
    actions: tuple[Action, ...] = (),
    look_again: bool = False,
    after: float | None = None,
) -> Gate:
    updates = _admission(message, admitted=False, reason=reason)
    return Gate(
        open=False,
        reason=reason,
        message=message,
        actions=actions,
        updates=updates,
        look_again=look_again,
        after=after,
    )


def _admission(
    message: str, *, admitted: bool, reason: str = "Admitted"
) -> tuple[ConditionUpdate, ...]:
    return (ConditionUpdate(ADMITTED, "True" if admitted else "False", reason, message),)


def _evicted(run: Run, workload: StoredWorkload, position: int | None, *, pods_left: bool) -> Gate:
    """Delete the pods, then release the quota: Kueue holds it until then."""
    _, reason, why, _ = workload.conditions["Evicted"]
    holds = workload.holds_quota
    why = f"{reason}: {cut(why, MESSAGE_MAX_CHARACTERS)}"
    text = f"evicted from queue {workload.queue} ({why})"
    evicted = (reason, text) if run.status.phase != "Suspended" else None
    if not holds:
        text = f"{_waiting(workload, position)}; it was evicted ({why})"
    elif pods_left:
        text += "; its pods are being deleted"
    release = (WriteWorkload(workload.name, workload.uid, workload.version, _release(workload)),)
    return Gate(
        open=False,
        reason="Evicted",
        message=text,
        evicted=evicted,
        restarts=evicted is not None,
        actions=release if holds and not pods_left else (),
        updates=_admission(text, admitted=False, reason="Evicted"),
        after=_pause(position),
    )


def _stuck(
    workload: StoredWorkload, refusals: Sequence[Refusal], now: datetime, *, pods_left: bool
) -> tuple[str, float | None]:
    """Return why pods of an admitted run are not created, and the seconds until it gives its quota
    back for that; None if it does not.

    A run that was whole keeps its quota as long as some of its pods are there.
    """
    refused = [refusal for refusal in refusals if refusal.reason != QUEUE_UNKNOWN]
    ready = workload.conditions.get("PodsReady")
    since = [workload.conditions["Admitted"].since]
    if ready and (ready.true or ready.reason in _RECOVERS):
        if ready.true or pods_left:
            return "", None
        since.append(ready.since)
    if not refused:
        return "", None
    left = max(0.0, STUCK_AFTER - elapsed(max(since), now))
    return f"{refused[0].name}: {refused[0].message}", left


def evict(workload: StoredWorkload, reason: str, why: str) -> WriteWorkload:
    """Return the eviction of a run by this controller, which gives the quota back later."""
    update = _condition("Evicted", reason, cut(why, MESSAGE_MAX_CHARACTERS))
    return WriteWorkload(workload.name, workload.uid, workload.version, (update,))


def _left(
    run: Run, workload: StoredWorkload, pause: float, now: datetime, *, pods_left: bool
) -> Gate:
    """Delete the pods, give the quota back, and queue again by another Workload after a pause."""
    _, reason, why, since = workload.conditions["Evicted"]
    end = parse_time(since) + timedelta(seconds=pause)
    text = f"it gives up the quota of queue {workload.queue}: {cut(why, MESSAGE_MAX_CHARACTERS)}"
    actions: tuple[Action, ...] = ()
    after = None
    if pods_left:
        text += "; its pods are being deleted"
    elif now >= end:
        actions = (DeleteWorkload(workload.name, workload.uid),)
    else:
        text += f"; it queues again at {to_second(end)}"
        after = (end - now).total_seconds()
        if workload.holds_quota:
            release = _release(workload)
            actions = (WriteWorkload(workload.name, workload.uid, workload.version, release),)
    return Gate(
        open=False,
        reason=reason,
        message=text,
        restarts=run.status.phase != "Suspended",
        actions=actions,
        updates=_admission(text, admitted=False, reason=reason),
        after=after,
    )


def _pause(position: int | None) -> float:
    """Return the seconds until the next look at a position, as no watch tells of it: one more for
    each run before, so that a long queue costs little.
    """
    return POSITION_PAUSE_SECONDS + (position or 0)


def _reactivate(workload: StoredWorkload) -> str:
    patch = '{"spec":{"active":true}}'
    return (
        f"; it is deactivated: kubectl patch workloads.kueue.x-k8s.io {workload.name} "
        f"-n {workload.namespace} --type merge -p '{patch}', or suspend and resume the run"
    )


def _waiting(workload: StoredWorkload, position: int | None) -> str:
    """Return what an active Workload without admission waits for, in Kueue's words."""
    where = f"waits in queue {workload.queue}"
    reserved = workload.conditions.get("QuotaReserved")
    # Of a queue that is missing or stopped, the position is no news.
    if position is not None and not (reserved and reserved.reason == "Inadmissible"):
        where += f", position {position} in its ClusterQueue"
    if not workload.active:
        return where + _reactivate(workload)
    if workload.has("QuotaReserved"):
        return f"{where}: it has quota; admission checks: {workload.checks or 'not ready'}"
    return f"{where}: {cut(reserved.message, MESSAGE_MAX_CHARACTERS)}" if reserved else where


def _flavors(workload: StoredWorkload) -> str:
    flavors_by_set = {
        set_name: assigned.flavors for set_name, assigned in workload.assignments.items()
    }
    text = ", ".join(
        f"{set_name} on {', '.join(flavors)}"
        for set_name, flavors in flavors_by_set.items()
        if flavors
    )
    return f"admitted by queue {workload.queue}" + (f": {text}" if text else "")


def pods_ready(queueing: Queueing, *, ready: bool) -> Iterator[Action]:
    """Yield the update of the Workload's condition PodsReady, if it has changed.

    ready: all replicas run or have finished. Kueue's waitForPodsReady evicts by it.
    """
    workload = queueing.workload
    if workload is None or not workload.has("Admitted") or workload.has("Evicted"):
        return
    before = workload.conditions.get("PodsReady")
    if ready:
        recovered = before and before.reason in _RECOVERS
        update = _condition("PodsReady", "Recovered" if recovered else "Started", "all pods run")
    else:
        recovers = before and (before.true or before.reason == "WaitForRecovery")
        reason = "WaitForRecovery" if recovers else _WAITS_FOR_START
        update = _condition("PodsReady", reason, "not all pods run", true=False)
    if before is None or (before.true, before.reason) != (ready, update["reason"]):
        yield WriteWorkload(workload.name, workload.uid, workload.version, (update,))


def finished(run: Run, queueing: Queueing, *, pods_left: bool) -> Iterator[Action]:
    """Yield the end of the Workload of a Run that is over: it releases the quota.

    The quota is held while pods remain that the Run deletes.
    """
    workload = queueing.workload
    waits = pods_left and run.spec.clean_pod_policy != "None"
    if workload is None or workload.deleted or workload.has("Finished") or waits:
        return
    reason = "Succeeded" if run.status.phase == "Succeeded" else "Failed"
    update = _condition(
        "Finished", reason, cut(run.status.message or reason, MESSAGE_MAX_CHARACTERS)
    )
    yield WriteWorkload(workload.name, workload.uid, workload.version, (update,))


def _release(workload: StoredWorkload) -> tuple[JsonObject, ...]:
    """Return the conditions by which an owner gives back the quota of an evicted Workload."""
    _, reason, message, _ = workload.conditions["Evicted"]
    return (
        _condition("QuotaReserved", "Pending", message, true=False),
        _condition("Admitted", "NoReservation", "the workload has no reservation", true=False),
        _condition("Requeued", reason, message, true=reason in _ADMITTED_AT_ONCE),
        _condition("PodsReady", _WAITS_FOR_START, "not all pods run", true=False),
    )


def _condition(kind: str, reason: str, message: str, *, true: bool = True) -> JsonObject:
    status = "True" if true else "False"
    return {"type": kind, "status": status, "reason": reason, "message": message}


def apply_gate(
    gate: Gate, outcome: Outcome, queueing: Queueing, run: Run, now: datetime
) -> Outcome:
    """Return the outcome of a run that is not over, with what its queue asks for."""
    status = outcome.status
    if gate.updates:
        conditions = update_conditions(
            status.conditions, gate.updates, run.metadata.generation, to_second(now)
        )
        status = status.model_copy(update={"conditions": conditions})
    actions = gate.actions
    if gate.open and not run.spec.suspend and not actions:
        actions += (*pods_ready(queueing, ready=status.phase == "Running"),)
    after = min(
        (seconds for seconds in (gate.after, outcome.after) if seconds is not None), default=None
    )
    return replace(outcome, status=status, actions=(*outcome.actions, *actions), after=after)
