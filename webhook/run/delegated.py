"""Reconcile a delegated Run: from its engine's object and pods to actions and the next status.

The engine creates and replaces pods. Fairlead creates the object, counts what goes down, and
enforces backoffLimit and activeDeadlineSeconds. A terminal status is written before anything is
deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.crd.conditions import ConditionUpdate
from webhook.run.actions import (
    Announcement,
    CreateEngineObject,
    DeleteEngineObject,
    DeleteRun,
    Outcome,
    SuspendEngineObject,
)
from webhook.run.announcements import announce_condition, make_announcements
from webhook.run.backends.engine_pods import assign_replicas
from webhook.run.backends.engines import FAILED
from webhook.run.delegated_counts import Counts, count_replicas
from webhook.run.deletion import reconcile_deleted
from webhook.run.engine_report import (
    BACKEND_SUSPENDED,
    FIRST_LOOK,
    SILENCE,
    edited_condition,
    engine_hindrance,
    failed_for_good,
    pod_name_taken,
    rejected_pods,
    seconds_of_silence,
    seconds_until_events,
    unqueued_condition,
)
from webhook.run.failure import OOM_KILLED
from webhook.run.observed import Observed
from webhook.run.progress import (
    CREATED,
    SUSPENDED,
    active_status,
    describe_progress,
    ended_status,
    suspended_status,
    update_conditions,
)
from webhook.run.reconcile import seconds_until_due, update_totals
from webhook.run.steps import Steps
from webhook.run.verdict import Verdict, deadline
from webhook.times import elapsed, to_second

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from webhook.run.actions import Action
    from webhook.run.backends.engines import Engine
    from webhook.run.facts import RoleFacts
    from webhook.run.model import Run, RunStatus
    from webhook.run.observed import EngineObject, EngineObserved
    from webhook.run.restarts import Counted

# Reasons of engines for an object that failed once too often: JobSet's of its restarts; a Job's,
# which the MPI operator prefixes to that of the pod.
_LIMITS: Final = ("ReachedMaxRestarts", "BackoffLimitExceeded")


def reconcile_delegated(
    run: Run, engine: Engine, observed: EngineObserved, now: datetime
) -> Outcome:
    """Return what to do about a delegated run. Pure.

    If `look_up` is not empty, the outcome has nothing else. The caller reads the object and its
    pods live, and calls the function again.
    """
    if run.metadata.deletion_timestamp:
        return reconcile_deleted(run, assign_replicas(run.spec.roles, engine, observed.pods), now)
    if run.status.ended:
        return _reconcile_ended(run, engine, observed, now)
    engine_object = observed.object
    began = run.status.start_time or run.status.phase == "Suspended"
    if engine_object is None and began and not observed.fresh:
        return Outcome(run.status, look_up=frozenset({run.name}))
    counts = count_replicas(run, engine, observed, now)
    end = engine.end(engine_object)
    unexplained = end == "Failed" and not (counts.counted.down or run.status.last_failure)
    if (counts.deleted or unexplained) and not observed.fresh and not run.spec.suspend:
        # The engine deletes pods when its object has ended, which the watch may deliver later.
        return Outcome(run.status, look_up=frozenset({run.name}))
    verdict = _find_verdict(run, engine, engine_object, counts.counted, now)
    if verdict:
        return _finish(run, engine, observed, verdict, now)
    if run.spec.suspend:
        return _reconcile_suspended(run, engine, counts, engine_object, now)
    return _reconcile_active(run, engine, counts, observed, now)


def _find_verdict(
    run: Run, engine: Engine, engine_object: EngineObject | None, counted: Counted, now: datetime
) -> Verdict | None:
    end = engine.end(engine_object)
    if engine_object is not None and end == "Succeeded":
        return Verdict("Succeeded", "Finished", f"{engine.kind} {engine_object.name} has succeeded")
    if engine_object is not None and end == "Failed":
        return _engine_failure(run, engine, engine_object, counted)
    limit = run.spec.backoff_limit
    failures = sum(role.failed for role in counted.roles.values())
    failure = next(
        (down_replica for down_replica in counted.down if not down_replica.failure.disruption), None
    )
    # An engine that restarts all replicas together counts one failure where each of them fails.
    written = "backoff_limit" in run.spec.model_fields_set and run.spec.restart_scope != "Run"
    if failure and written and failures > limit:
        that = f"that is failure {failures}, and backoffLimit is {limit}"
        return Verdict("Failed", "BackoffLimitExceeded", f"{failure.description}; {that}")
    # While a queue holds the object, the run is not active.
    held = _was_held(run) or (engine_object is not None and engine_object.suspended)
    return None if held else deadline(run, now)


def _was_held(run: Run) -> bool:
    """Return True if another client, such as a queue, had suspended the object."""
    return any(condition.reason == BACKEND_SUSPENDED for condition in run.status.conditions)


def _engine_failure(
    run: Run, engine: Engine, engine_object: EngineObject, counted: Counted
) -> Verdict:
    reported, message = engine_object.conditions[FAILED]
    why = f": {message or reported}" if message or reported else ", and does not say why"
    report = f"{engine.kind} {engine_object.name} has failed{why}"
    if reported.startswith(_LIMITS):
        return Verdict("Failed", "BackoffLimitExceeded", report)
    failure = next(
        (down_replica for down_replica in counted.down if not down_replica.failure.disruption), None
    )
    before = run.status.last_failure
    if failure:
        out = failure.failure.reason == OOM_KILLED
        reason = "OutOfMemory" if out else "PermanentFailure"
        return Verdict("Failed", reason, f"{failure.description}; {report}")
    if before and not before.disruption:
        reason = "OutOfMemory" if before.reason == OOM_KILLED else "PermanentFailure"
        return Verdict("Failed", reason, f"{before.replica} went down; {report}")
    return Verdict("Failed", "BackendFailed", report)


def _finish(
    run: Run, engine: Engine, observed: EngineObserved, end: Verdict, now: datetime
) -> Outcome:
    counts = count_replicas(run, engine, observed, now)
    roles = {
        role: status.model_copy(update={"recovering": (), "active_indexes": ""})
        for role, status in counts.counted.roles.items()
    }
    status = update_totals(run, roles, counts.counted, now)
    status = ended_status(status, run.metadata.generation, end, now)
    return Outcome(status, announcements=make_announcements(run, status), after=0.0)


def _reconcile_suspended(
    run: Run, engine: Engine, counts: Counts, engine_object: EngineObject | None, now: datetime
) -> Outcome:
    """Suspend or delete the object, until it is; a run suspended from its start has none.

    The run is Suspended once its object is. One that is resumed later, another client has resumed.
    A queue that holds the object would resume it, and is told once, and whenever it does.
    """
    status = update_totals(run, counts.counted.roles, counts.counted, now)
    generation, before = run.metadata.generation, run.status.phase == "Suspended"
    queued = engine_object is not None and engine.suspend and engine_object.queue
    actions: tuple[Action, ...] = ()
    if engine_object is None or engine_object.deleted or engine_object.suspended:
        status = suspended_status(status, generation, now)
        if engine_object and queued and not engine_object.deleted and not before:
            actions = (SuspendEngineObject(engine_object.uid, suspend=True, queued=True),)
    elif engine.suspend and before and not queued:
        status = suspended_status(status, generation, now)
        status = _resumed_by_others(run, engine, status, now)
    else:
        actions = (
            (SuspendEngineObject(engine_object.uid, suspend=True, queued=bool(queued)),)
            if engine.suspend
            else (DeleteEngineObject(engine_object.uid),)
        )
        text = (
            f"the run is to be suspended: {engine.kind} {engine_object.name} is not suspended yet"
        )
        update = ConditionUpdate(SUSPENDED, "False", "Suspending", text)
        conditions = update_conditions(status.conditions, (update,), generation, now)
        status = status.model_copy(update={"message": text, "conditions": conditions})
    return Outcome(status, actions, announcements=make_announcements(run, status))


def _resumed_by_others(run: Run, engine: Engine, status: RunStatus, now: datetime) -> RunStatus:
    """Return the status of a suspended run whose object another client has resumed."""
    kind = engine.kind
    text = (
        f"the run is suspended, and another client has resumed {kind} {run.name}: its pods run; "
        f"suspend it there, or delete it (kubectl delete {kind.lower()} {run.name} "
        f"-n {run.namespace})"
    )
    update = ConditionUpdate(SUSPENDED, "False", "ResumedByOthers", text)
    conditions = update_conditions(status.conditions, (update,), run.metadata.generation, now)
    return status.model_copy(update={"message": text, "conditions": conditions})


def _reconcile_active(
    run: Run, engine: Engine, counts: Counts, observed: EngineObserved, now: datetime
) -> Outcome:
    engine_object, counted = observed.object, counts.counted
    actions: tuple[Action, ...] = ()
    absent = (
        ""
        if engine_object and engine_object.deleted
        else engine.absent_role(counts.facts, observed)
    )
    if absent and not observed.fresh:
        return Outcome(run.status, look_up=frozenset({run.name}))
    lost = absent if absent and _was_there(counts.facts[absent]) else ""
    if engine_object is None:
        # The engine would take what is left of a deleted object for that of the new one.
        actions = () if observed.left else (CreateEngineObject(),)
    elif lost:
        # The engine goes on without this pod, and would never end.
        actions = (DeleteEngineObject(engine_object.uid),)
    elif run.status.phase == "Suspended" and (engine_object.suspended or engine_object.queue):
        actions = (
            SuspendEngineObject(engine_object.uid, suspend=False, queued=bool(engine_object.queue)),
        )
    missing = sum(
        index not in role_facts.pods and index not in role_facts.succeeded
        for role_facts in counts.facts.values()
        for index in range(role_facts.spec.count)
    )
    look = seconds_until_events(observed, missing, now)
    if look == 0.0:
        return Outcome(run.status, look_up_events=True)
    status = update_totals(run, counted.roles, counted, now)
    rejected = rejected_pods(run, engine, observed, missing, now)
    report = Observed(refusals=observed.refusals or rejected)
    progress = describe_progress(run.spec, counts.facts, counted, Steps(), report, status)
    hindrance = progress.hindrance or engine_hindrance(run, engine, observed, now)
    hindrance = hindrance or failed_for_good(engine, counts.facts)
    if absent and not lost:
        hindrance = pod_name_taken(run, engine, absent)
    message, conditions = progress.message, progress.conditions
    if hindrance and hindrance is not progress.hindrance:
        message = hindrance.message
        created = ConditionUpdate(CREATED, "False", *hindrance)
        conditions = (
            created,
            *(condition for condition in conditions if condition.type != CREATED),
        )
    edited = edited_condition(run, engine, observed)
    conditions += (edited,) if edited else ()
    admitted = unqueued_condition(run, engine, observed)
    if admitted:
        conditions += (admitted,)
        message += f"; {admitted.message}" if admitted.status == "False" else ""
    status = active_status(run, status, progress.phase, message, conditions, now)
    if engine_object and not engine_object.suspended and _was_held(run):
        # As after a suspension by the author.
        status = status.model_copy(update={"start_time": to_second(now)})
    silence = seconds_of_silence(run, observed, now)
    waits = [] if silence is None or silence > SILENCE else [SILENCE - silence + 0.1]
    waits += [] if look is None else [look]
    waits += [FIRST_LOOK] if observed.left else []
    return Outcome(
        status,
        actions,
        announcements=(
            *make_announcements(run, status, counted.down, hindrance),
            *announce_condition(run, edited, "True"),
            *announce_condition(run, admitted, "False"),
            *_announce_new_object(run, engine, engine_object, lost),
        ),
        after=seconds_until_due(run, min(waits, default=None), counted, now),
    )


def _was_there(facts: RoleFacts) -> bool:
    """Return True if the role had a pod: the name of one that never was may be another's."""
    return bool(facts.before.active or facts.down)


def _announce_new_object(
    run: Run, engine: Engine, engine_object: EngineObject | None, lost: str
) -> Iterator[Announcement]:
    """Yield why the object is created again, and the run with it starts again."""
    again = f"{engine.kind} {run.name} is created again, and the run starts again"
    created = any(
        condition.type == CREATED and condition.status == "True"
        for condition in run.status.conditions
    )
    active = any(role.active for role in run.status.replicas.values())
    if lost:
        what = f"the pod of role {lost}, or what is above the other pods,"
        why = f"{what} is gone, and {engine.operator} does not replace it"
        yield Announcement("Warning", "BackendObjectReplaced", f"{why}: {again}")
    elif engine_object is None and run.status.phase != "Suspended" and (created or active):
        why = f"{engine.kind} {run.name} was deleted"
        yield Announcement("Warning", "BackendObjectReplaced", f"{why}: {again}")


def _reconcile_ended(run: Run, engine: Engine, observed: EngineObserved, now: datetime) -> Outcome:
    """Delete the object of a run that Fairlead ended, and the Run after its time to live.

    An object that ended by itself stays until then, and the engine cleans its pods.
    """
    engine_object = observed.object
    status = _recount(run, engine, observed)
    actions: tuple[Action, ...] = ()
    if engine_object and not engine_object.deleted and engine.end(engine_object) is None:
        actions = (DeleteEngineObject(engine_object.uid),)
    ttl, since = run.spec.ttl_seconds_after_finished, run.status.completion_time
    if ttl is None or since is None:
        return Outcome(status, actions)
    left = ttl - elapsed(since, now)
    if left <= 0:
        return Outcome(status, (DeleteRun(),))
    return Outcome(status, actions, after=left)


def _recount(run: Run, engine: Engine, observed: EngineObserved) -> RunStatus:
    """Return the status with the pods that still run after the end."""
    roles = {}
    numbered_pods = assign_replicas(run.spec.roles, engine, observed.pods)
    for role, before in run.status.replicas.items():
        pods = [pod for pod in numbered_pods if pod.role == role and not pod.ended]
        ready = sum(pod.ready for pod in pods if not pod.deleted_at)
        roles[role] = before.model_copy(update={"active": len(pods), "ready": ready})
    return run.status.model_copy(
        update={
            "observed_generation": run.metadata.generation,
            "replicas": roles,
            "replicas_ready": f"{sum(role_status.ready for role_status in roles.values())}/"
            f"{sum(role_status.desired for role_status in roles.values())}"
            if roles
            else run.status.replicas_ready,
        }
    )
