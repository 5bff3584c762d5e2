"""The queue of Kueue in which a Run waits: its Workload, and what its states ask for.

The controller owns one Workload for a Run with the label kueue.x-k8s.io/queue-name. Kueue decides
when it is admitted and when it is evicted. Pods exist only in between, and the quota is released
only when they are gone (as pkg/controller/jobframework/reconciler.go of Kueue does for the jobs
that it knows).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.crd.conditions import ConditionUpdate, update_conditions
from webhook.run.actions import CreateWorkload, DeleteWorkload, WriteWorkload
from webhook.shortening import cut
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from webhook.placement.shapes import JsonObject
    from webhook.run.actions import Action, Outcome
    from webhook.run.model import Run
    from webhook.run.model.status import RunStatus
    from webhook.run.queue_state import Queueing, StoredWorkload

# The condition of a Run that was in a queue.
ADMITTED: Final = "Admitted"
_NOT_QUEUED: Final = "NotQueued"
_LATE: Final = (
    f"label {names.KUEUE_QUEUE} was given after the run began: it counts when the run is suspended "
    "and resumed"
)
# What is known of a queue is not enough to go on.
QUEUE_UNKNOWN: Final = "QueueUnknown"
# Seconds until a look at a queue of which nothing is known.
AGAIN: Final = 3.0
# The same if only a change of an object can help. The whole Run is read for each.
LASTING_PAUSE: Final = 60.0
# Seconds until the next look at the position of the first run that waits.
POSITION_PAUSE: Final = 15.0
LONGEST: Final = 500
# Reasons of an eviction after which Kueue's jobs may be admitted at once. After the others Kueue
# itself says when.
_AT_ONCE: Final = ("Preempted", "NodeFailures")
_WAITS_FOR_START: Final = "WaitForStart"
_RECOVERS: Final = ("WaitForRecovery", "Recovered")


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether the pods of a Run may exist.

    reason, message: why not. evicted: reason and message of an eviction of now.
    actions: on the Workload. look_again: nothing is known; nothing may be done.
    """

    open: bool = True
    reason: str = ""
    message: str = ""
    evicted: tuple[str, str] | None = None
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
    return any(each.type == ADMITTED and each.reason != _NOT_QUEUED for each in status.conditions)


def decide(run: Run, known: Queueing, *, pods_left: bool) -> Gate:
    """Return whether the Run's pods may exist, and what to do with its Workload.

    pods_left: pods of the Run exist that have not ended.
    """
    queue, workload = queue_of(run), known.workload
    queued = was_queued(run.status)
    if not queue or run.spec.suspend or (run.status.start_time and not queued):
        # Not in a queue. A label that is added while the run is active counts when it is resumed.
        leaves = workload and not workload.deleted and not (run.spec.suspend and pods_left)
        late = queue and not run.spec.suspend
        about = _LATE if late else "the run is not in a queue"
        update = ConditionUpdate(ADMITTED, "False", _NOT_QUEUED, about)
        return Gate(
            actions=(DeleteWorkload(workload.name, workload.uid),) if workload and leaves else (),
            updates=(update,) if queued or late else (),
        )
    if known.unknown:
        begun = run.status.phase != "Suspended" and run.status.start_time is not None
        if begun and not known.served:
            return Gate(updates=_admission(known.unknown, admitted=True))
        what = f"queue {queue}: {known.unknown}"
        pause = LASTING_PAUSE if known.lasting else AGAIN
        return _shut(QUEUE_UNKNOWN, what, look_again=begun, after=pause)
    if workload is None or workload.deleted:
        create = () if pods_left or workload else (CreateWorkload(queue),)
        why = "its Workload was deleted" if queued and pods_left else "it is not in the queue yet"
        return _shut("Queued", f"queue {queue}: {why}", actions=create)
    if workload.queue != queue or workload.has("Finished"):
        delete = () if pods_left else (DeleteWorkload(workload.name, workload.uid),)
        return _shut("Queued", f"it leaves queue {workload.queue} for {queue}", actions=delete)
    if workload.has("Evicted"):
        return _evicted(run, workload, known.position, pods_left=pods_left)
    if workload.has("Admitted"):
        about = _flavors(workload)
        if known.withheld:
            about += f"; no replica can be created now: {known.withheld}"
        return Gate(updates=_admission(about, admitted=True))
    return _shut("Queued", _waiting(workload, known.position), after=_pause(known.position))


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
    _, reason, why = workload.conditions["Evicted"]
    holds = workload.has("QuotaReserved") or workload.has("Admitted")
    why = f"{reason}: {cut(why, LONGEST)}"
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
        actions=release if holds and not pods_left else (),
        updates=_admission(text, admitted=False, reason="Evicted"),
        after=_pause(position),
    )


def _pause(position: int | None) -> float:
    """Return the seconds until the next look at a position, as no watch tells of it: one more for
    each run before, so that a long queue costs little.
    """
    return POSITION_PAUSE + (position or 0)


def _reactivate(workload: StoredWorkload) -> str:
    patch = '{"spec":{"active":true}}'
    return (
        f"; it is deactivated: kubectl patch workload {workload.name} --type merge -p '{patch}', "
        "or suspend and resume the run"
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
    return f"{where}: {cut(reserved.message, LONGEST)}" if reserved else where


def _flavors(workload: StoredWorkload) -> str:
    found = {each: assigned.flavors for each, assigned in workload.assignments.items()}
    of = ", ".join(f"{each} on {', '.join(flavors)}" for each, flavors in found.items() if flavors)
    return f"admitted by queue {workload.queue}" + (f": {of}" if of else "")


def pods_ready(known: Queueing, *, ready: bool) -> Iterator[Action]:
    """Yield the update of the Workload's condition PodsReady, if it has changed.

    ready: all replicas run or have finished. Kueue's waitForPodsReady evicts by it.
    """
    workload = known.workload
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


def finished(run: Run, known: Queueing, *, pods_left: bool) -> Iterator[Action]:
    """Yield the end of the Workload of a Run that is over: it releases the quota.

    The quota is held while pods remain that the Run deletes.
    """
    workload = known.workload
    waits = pods_left and run.spec.clean_pod_policy != "None"
    if workload is None or workload.deleted or workload.has("Finished") or waits:
        return
    reason = "Succeeded" if run.status.phase == "Succeeded" else "Failed"
    update = _condition("Finished", reason, cut(run.status.message or reason, LONGEST))
    yield WriteWorkload(workload.name, workload.uid, workload.version, (update,))


def _release(workload: StoredWorkload) -> tuple[JsonObject, ...]:
    """Return the conditions by which an owner gives back the quota of an evicted Workload."""
    _, reason, message = workload.conditions["Evicted"]
    return (
        _condition("QuotaReserved", "Pending", message, true=False),
        _condition("Admitted", "NoReservation", "the workload has no reservation", true=False),
        _condition("Requeued", reason, message, true=reason in _AT_ONCE),
        _condition("PodsReady", _WAITS_FOR_START, "not all pods run", true=False),
    )


def _condition(kind: str, reason: str, message: str, *, true: bool = True) -> JsonObject:
    status = "True" if true else "False"
    return {"type": kind, "status": status, "reason": reason, "message": message}


def apply_gate(gate: Gate, outcome: Outcome, known: Queueing, run: Run, now: datetime) -> Outcome:
    """Return the outcome of a run that is not over, with what its queue asks for."""
    status = outcome.status
    if gate.updates:
        conditions = update_conditions(
            status.conditions, gate.updates, run.metadata.generation, to_second(now)
        )
        status = status.model_copy(update={"conditions": conditions})
    actions = gate.actions
    if gate.open and not run.spec.suspend:
        actions += (*pods_ready(known, ready=status.phase == "Running"),)
    after = min((each for each in (gate.after, outcome.after) if each is not None), default=None)
    return replace(outcome, status=status, actions=(*outcome.actions, *actions), after=after)
