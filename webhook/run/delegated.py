"""Reconcile a delegated Run: from its engine's object and pods to actions and the next status.

The engine creates and replaces pods. Fairlead creates the object, counts what goes down, and
enforces backoffLimit and activeDeadlineSeconds. A terminal status is written before anything is
deleted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from webhook.run.backends.engines import role_of
from webhook.run.engine_report import (
    SILENCE,
    edited_condition,
    engine_hindrance,
    rejected_pods,
    seconds_of_silence,
    seconds_until_events,
)
from webhook.run.facts import DownReplica, PodOnLostNode, RoleFacts
from webhook.run.failure import OOM_KILLED, Failure, classify_end
from webhook.run.model import RoleStatus
from webhook.run.model.status import format_intervals, parse_intervals
from webhook.run.observed import Observed
from webhook.run.progress import (
    CREATED,
    active_status,
    describe_progress,
    ended_status,
    make_announcements,
    suspended_status,
)
from webhook.run.reconcile import Steps, seconds_until_due, update_totals
from webhook.run.restarts import BackoffState, Counted, backoff_state, entries_by_index, to_entries
from webhook.run.verdict import Verdict, deadline
from webhook.times import elapsed, to_microsecond

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from webhook.run.actions import Action
    from webhook.run.backends.engines import Engine
    from webhook.run.model import Run, RunStatus
    from webhook.run.observed import EngineObject, EngineObserved, OwnedPod

_ENDED: Final = ("Succeeded", "Failed")
# Uids of counted pods that are gone, kept in the status of a role: another process may still
# remember those pods.
MOST_GONE: Final = 500


def reconcile_delegated(
    run: Run, engine: Engine, observed: EngineObserved, now: datetime
) -> Outcome:
    """Return what to do about a delegated run. Pure.

    If `look_up` is not empty, the outcome has nothing else. The caller reads the object and its
    pods live, and calls the function again.
    """
    if run.metadata.deletion_timestamp:
        # The garbage collector deletes the object, and its pods with it.
        return Outcome(run.status)
    if run.status.phase in _ENDED:
        return _reconcile_ended(run, engine, observed, now)
    found = observed.object
    if found is None and run.status.start_time and not observed.fresh:
        return Outcome(run.status, look_up=frozenset({run.name}))
    counts = _count(run, engine, observed, now)
    end = _engine_end(engine, found)
    unexplained = end == "Failed" and not (counts.counted.down or run.status.last_failure)
    if (counts.deleted or unexplained) and not observed.fresh and not run.spec.suspend:
        # The engine deletes pods when its object has ended, which the watch may deliver later.
        return Outcome(run.status, look_up=frozenset({run.name}))
    verdict = _find_verdict(run, engine, found, counts.counted, now)
    if verdict:
        return _finish(run, engine, observed, verdict, now)
    if run.spec.suspend:
        return _reconcile_suspended(run, counts, found, now)
    return _reconcile_active(run, engine, counts, observed, now)


@dataclass(frozen=True)
class _Counts:
    """What was counted. deleted: some pods are only known to be deleted."""

    facts: Mapping[str, RoleFacts]
    counted: Counted
    deleted: bool


def _count(run: Run, engine: Engine, observed: EngineObserved, now: datetime) -> _Counts:
    """Count the pods that went down, and restarts of main containers, each once by its uid."""
    there: dict[str, list[OwnedPod]] = {role: [] for role in run.spec.roles}
    gone: dict[str, list[OwnedPod]] = {role: [] for role in run.spec.roles}
    for pods, by_role in ((observed.pods, there), (observed.gone, gone)):
        for pod in pods:
            role = role_of(run.spec.roles, engine, pod.role)
            if role in by_role and pod.index < run.spec.roles[role].count:
                by_role[role].append(replace(pod, role=role))
    ended = _engine_end(engine, observed.object) is not None
    # While a run is suspended, by its author or by its queue, and until its pods are gone, the
    # engine deletes them for it.
    suspended = observed.object is not None and observed.object.suspended
    quiet = run.spec.suspend or suspended or run.status.phase == "Suspended"
    facts = {
        role: _role_facts(run, role, there[role], gone[role], observed, count_deleted=not ended)
        for role in run.spec.roles
    }
    if quiet:
        facts = {role: replace(one, down=()) for role, one in facts.items()}
    roles = {
        role: _role_status(run, one, there[role], gone[role], now, quiet=quiet)
        for role, one in facts.items()
    }
    down = sorted((each for one in facts.values() for each in one.down), key=lambda one: one.order)
    deleted = any(each.failure.reason == "Deleted" for each in down)
    return _Counts(facts, Counted(roles, tuple(down)), deleted)


def _role_facts(
    run: Run,
    role: str,
    pods: Iterable[OwnedPod],
    gone: Iterable[OwnedPod],
    observed: EngineObserved,
    *,
    count_deleted: bool,
) -> RoleFacts:
    spec, before = run.spec.roles[role], run.status.replicas.get(role) or RoleStatus()
    counted = frozenset(before.counted_uids)
    succeeded = set(parse_intervals(before.succeeded_indexes))
    there: dict[int, OwnedPod] = {}
    alive: dict[int, OwnedPod] = {}
    ended: dict[int, OwnedPod] = {}
    lost: dict[int, PodOnLostNode] = {}
    down: list[DownReplica] = []
    nodes = Observed(nodes=observed.nodes)
    for pod in pods:
        node = nodes.node_health(pod)
        end = classify_end(pod, node)
        there[pod.index] = pod
        if node and node.trouble and not pod.ended:
            lost[pod.index] = PodOnLostNode(pod, node)
        if end == "Succeeded":
            succeeded.add(pod.index)
        elif isinstance(end, Failure):
            if pod.uid not in counted and (count_deleted or end.reason != "Deleted"):
                down.append(DownReplica(role, pod.index, pod.name, end, pod))
            ended[pod.index] = pod
        else:
            alive[pod.index] = pod
            if restarted := _restarted(pod, before):
                down.append(DownReplica(role, pod.index, pod.name, restarted, pod))
    for pod in gone:
        if pod.uid in counted or pod.index in succeeded:
            continue
        end = classify_end(pod, nodes.node_health(pod))
        if end == "Succeeded":
            succeeded.add(pod.index)
            continue
        failure = end or Failure(True, "Deleted", "the pod was deleted")
        if count_deleted or failure.reason != "Deleted":
            down.append(DownReplica(role, pod.index, pod.name, failure, pod))
    return RoleFacts(
        role=role,
        spec=spec,
        before=before,
        there=there,
        alive=alive,
        # Another pod of the same replica may live already.
        ended={index: pod for index, pod in ended.items() if index not in alive},
        stale={},
        succeeded=frozenset(succeeded),
        down=tuple(sorted(down, key=lambda one: one.order)),
        missing=frozenset(),
        lost=lost,
        returned=(),
        interrupted=(),
    )


def _restarted(pod: OwnedPod, before: RoleStatus) -> Failure | None:
    """Return the failure before a restart that is not counted yet."""
    if pod.restarts <= before.counted_restarts.get(pod.uid, 0):
        return None
    end = pod.previous
    if end is None:
        return Failure(False, "Restarted", "its container was restarted")
    return Failure(False, end.reason or "Error", end.message, end.code)


def _role_status(
    run: Run,
    facts: RoleFacts,
    there: Iterable[OwnedPod],
    gone: Iterable[OwnedPod],
    now: datetime,
    *,
    quiet: bool,
) -> RoleStatus:
    before, down = facts.before, facts.down
    present, past = list(there), list(gone)
    restarts = {pod.uid: pod.restarts for pod in (*present, *past) if pod.restarts}
    container = sum(
        max(1, restarts.get(each.pod.uid, 0) - before.counted_restarts.get(each.pod.uid, 0))
        if each.pod and each.pod.uid in restarts
        else 1
        for each in down
        if not each.failure.disruption
    )
    uids = {each.pod.uid for each in down if each.pod and facts.alive.get(each.index) != each.pod}
    if quiet:
        # After the run is resumed, the engine creates pods before the status says so.
        uids |= {pod.uid for pod in past}
        uids |= {pod.uid for pod in present if run.spec.suspend or pod.deleted_at or pod.ended}
    known = {pod.uid for pod in present}
    # Pods that outlived a suspension count again once all replicas run.
    again = run.status.phase == "Running" and not quiet
    alive = {pod.uid for pod in facts.alive.values()} if again else set()
    kept = [uid for uid in before.counted_uids if uid in known and uid not in alive]
    old = [uid for uid in before.counted_uids if uid not in known]
    disruptions = sum(each.failure.disruption for each in down)
    failures = len(down) - disruptions
    recovering, back = _recovering(facts, now)
    # A replica that never runs again was not restarted. A kubelet may restart a container twice
    # between two looks.
    restarted = sum(row.failures + row.disruptions for row in back.values())
    restarted += container - failures
    return before.model_copy(
        update={
            "desired": facts.spec.count,
            "active": len(facts.alive),
            "ready": sum(
                pod.ready for index, pod in facts.alive.items() if index not in facts.lost
            ),
            "succeeded": len(facts.succeeded),
            "succeeded_indexes": format_intervals(facts.succeeded),
            "active_indexes": format_intervals(facts.alive),
            "failed": before.failed + container,
            "disruptions": before.disruptions + disruptions,
            "restarts": before.restarts + restarted,
            "counted_uids": tuple(dict.fromkeys((*old[-MOST_GONE:], *kept, *sorted(uids)))),
            "counted_restarts": restarts,
            "recovering": () if quiet else to_entries(recovering),
        }
    )


def _recovering(
    facts: RoleFacts, now: datetime
) -> tuple[dict[int, BackoffState], dict[int, BackoffState]]:
    """Return the replicas that went down and do not run again yet, and those that do now."""
    rows = {
        index: backoff_state(entry)
        for index, entry in entries_by_index(facts.before.recovering).items()
    }
    for each in facts.down:
        row = rows.get(each.index, BackoffState())
        failed, disrupted = (not each.failure.disruption), each.failure.disruption
        rows[each.index] = row._replace(
            failures=row.failures + failed,
            disruptions=row.disruptions + disrupted,
            since=to_microsecond(now),
        )
    back = {
        index: row
        for index, row in rows.items()
        if index in facts.succeeded
        or (index in facts.alive and facts.alive[index].phase == "Running")
    }
    return {index: row for index, row in rows.items() if index not in back}, back


def _engine_end(engine: Engine, found: EngineObject | None) -> str | None:
    """Return Succeeded or Failed if the engine reports that its object has ended."""
    if found is None:
        return None
    if engine.succeeded in found.conditions:
        return "Succeeded"
    return "Failed" if engine.failed in found.conditions else None


def _find_verdict(
    run: Run, engine: Engine, found: EngineObject | None, counted: Counted, now: datetime
) -> Verdict | None:
    end = _engine_end(engine, found)
    if found is not None and end == "Succeeded":
        return Verdict("Succeeded", "Finished", f"{engine.kind} {found.name} has succeeded")
    if found is not None and end == "Failed":
        return _engine_failure(run, engine, found, counted)
    limit = run.spec.backoff_limit
    failures = sum(role.failed for role in counted.roles.values())
    failure = next((each for each in counted.down if not each.failure.disruption), None)
    if failure and "backoff_limit" in run.spec.model_fields_set and failures > limit:
        that = f"that is failure {failures}, and backoffLimit is {limit}"
        return Verdict("Failed", "BackoffLimitExceeded", f"{failure.description}; {that}")
    return deadline(run, now)


def _engine_failure(run: Run, engine: Engine, found: EngineObject, counted: Counted) -> Verdict:
    reported, message = found.conditions[engine.failed]
    report = f"{engine.kind} {found.name} has failed: {message or reported or 'without a reason'}"
    failure = next((each for each in counted.down if not each.failure.disruption), None)
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
    counts = _count(run, engine, observed, now)
    roles = {
        role: status.model_copy(update={"recovering": (), "active_indexes": ""})
        for role, status in counts.counted.roles.items()
    }
    status = update_totals(run, roles, counts.counted, now)
    status = ended_status(status, run.metadata.generation, end, now)
    return Outcome(status, announcements=make_announcements(run, status), after=0.0)


def _reconcile_suspended(
    run: Run, counts: _Counts, found: EngineObject | None, now: datetime
) -> Outcome:
    """Suspend the object once; a run that is suspended from its start has none."""
    actions: tuple[Action, ...] = ()
    if found and not found.suspended and run.status.phase != "Suspended":
        actions = (SuspendEngineObject(found.uid, suspend=True),)
    status = update_totals(run, counts.counted.roles, counts.counted, now)
    status = suspended_status(status, run.metadata.generation, now)
    return Outcome(status, actions, announcements=make_announcements(run, status))


def _reconcile_active(
    run: Run, engine: Engine, counts: _Counts, observed: EngineObserved, now: datetime
) -> Outcome:
    found, counted = observed.object, counts.counted
    actions: tuple[Action, ...] = ()
    if found is None:
        actions = (CreateEngineObject(),)
    elif found.suspended and run.status.phase == "Suspended":
        actions = (SuspendEngineObject(found.uid, suspend=False),)
    missing = sum(
        index not in one.there and index not in one.succeeded
        for one in counts.facts.values()
        for index in range(one.spec.count)
    )
    look = seconds_until_events(observed, missing, now)
    if look == 0.0:
        return Outcome(run.status, look_up_events=True)
    status = update_totals(run, counted.roles, counted, now)
    rejected = rejected_pods(run, engine, observed, missing, now)
    report = Observed(refusals=observed.refusals or rejected)
    progress = describe_progress(counts.facts, counted, Steps(), report, status.last_failure)
    hindrance = progress.hindrance or engine_hindrance(run, engine, observed, now)
    message, conditions = progress.message, progress.conditions
    if hindrance and not progress.hindrance:
        message = hindrance.message
        created = ConditionUpdate(CREATED, "False", *hindrance)
        conditions = (created, *(each for each in conditions if each.type != CREATED))
    edited = edited_condition(run, engine, observed)
    conditions += (edited,) if edited else ()
    status = active_status(run, status, progress.phase, message, conditions, now)
    silence = seconds_of_silence(observed, now)
    waits = [] if silence is None or silence > SILENCE else [SILENCE - silence + 0.1]
    waits += [] if look is None else [look]
    return Outcome(
        status,
        actions,
        announcements=(
            *make_announcements(run, status, counted.down, hindrance),
            *_announce_edit(run, edited),
        ),
        after=seconds_until_due(run, min(waits, default=None), counted, now),
    )


def _announce_edit(run: Run, edited: ConditionUpdate | None) -> Iterator[Announcement]:
    """Yield one Event for each edit, not for each reconcile."""
    if edited and edited.status == "True":
        known = {each.type: each.message for each in run.status.conditions}
        if known.get(edited.type) != edited.message:
            yield Announcement("Warning", edited.reason, edited.message)


def _reconcile_ended(run: Run, engine: Engine, observed: EngineObserved, now: datetime) -> Outcome:
    """Delete the object of a run that Fairlead ended, and the Run after its time to live.

    An object that ended by itself stays until then, and the engine cleans its pods.
    """
    found = observed.object
    status = _recount(run, engine, observed)
    actions: tuple[Action, ...] = ()
    if found and not found.deleted and _engine_end(engine, found) is None:
        actions = (DeleteEngineObject(found.uid),)
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
    for role, before in run.status.replicas.items():
        pods = [
            pod
            for pod in observed.pods
            if role_of(run.spec.roles, engine, pod.role) == role and not pod.ended
        ]
        ready = sum(pod.ready for pod in pods if not pod.deleted_at)
        roles[role] = before.model_copy(update={"active": len(pods), "ready": ready})
    return run.status.model_copy(
        update={
            "observed_generation": run.metadata.generation,
            "replicas": roles,
            "replicas_ready": f"{sum(each.ready for each in roles.values())}/"
            f"{sum(each.desired for each in roles.values())}"
            if roles
            else run.status.replicas_ready,
        }
    )
