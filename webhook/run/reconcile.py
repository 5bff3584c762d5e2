"""Reconcile one Run: from the Run, its objects and the time to actions and the next status.

Actions depend on the status that the API server returned; new facts go into the next status. So a
reconcile that was interrupted between two actions continues with the next call, and every failure
is recorded before it has any effect.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from webhook.run import gang, incidents, queue, serving
from webhook.run.actions import (
    CreatePod,
    DeleteDeployment,
    DeletePod,
    DeleteRun,
    Outcome,
)
from webhook.run.announcements import announce_given_up, make_announcements
from webhook.run.deletion import reconcile_deleted
from webhook.run.facts import collect_facts
from webhook.run.history import first_to_give_up
from webhook.run.left_pods import left_at_end, pods_to_read, pods_without_watch, with_left
from webhook.run.manifests import secret_name
from webhook.run.model import LastFailure, RoleStatus
from webhook.run.model.intervals import format_intervals, parse_intervals
from webhook.run.progress import (
    active_status,
    describe_progress,
    ended_status,
    pods_left,
    refused_creations,
    suspended_status,
    waiting_conditions,
)
from webhook.run.restarts import (
    STABLE,
    RestartTerms,
    count_down,
    fill_in_wait,
    pod_number,
    role_at_end,
    suspended_role,
)
from webhook.run.steps import create_keys, delete_stale_pods, next_steps, open_service
from webhook.run.usage import settle_deleted, settle_ended, settle_usage
from webhook.run.verdict import Verdict, find_verdict
from webhook.shortening import cut
from webhook.times import elapsed, to_microsecond, to_second

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from webhook.backoff import Delays
    from webhook.run.actions import Action
    from webhook.run.facts import DownReplica, RoleFacts
    from webhook.run.gang import StartGate
    from webhook.run.model import Run, RunSpec, RunStatus
    from webhook.run.observed import Needs, Observed, OwnedPod
    from webhook.run.queue import Gate
    from webhook.run.restarts import Counted
    from webhook.run.steps import Steps

DEFAULT_TERMS: Final = RestartTerms()
# Maximum nodes to read live per reconcile; further nodes keep their previous state.
MOST_READ: Final = 50
# Seconds until a run looks again at what may change without an event of its own: nodes that are not
# given up because too many are silent, and classes for which waiting does not count.
LOOK_AGAIN_SECONDS: Final = 60.0


def reconcile(
    run: Run,
    needs: Needs,
    observed: Observed,
    now: datetime,
    terms: RestartTerms = DEFAULT_TERMS,
) -> Outcome:
    """Return what to do about a run. Pure; no stored Run makes it raise.

    If `look_up` or `look_up_nodes` is not empty, the outcome has nothing else. The caller reads
    those pods and nodes and calls the function again.
    """
    if run.metadata.deletion_timestamp:
        outcome = reconcile_deleted(run, observed.pods.values(), now)
        return replace(outcome, status=settle_deleted(outcome.status, observed.gone, observed, now))
    if run.status.ended:
        return _reconcile_ended(run, observed, now)
    run = _repair_status(run, now, terms.restarts)
    if run.spec.serving:
        return serving.reconcile(run, needs, observed, now)
    observed = observed.judged(now, terms.gone_after)
    facts = collect_facts(run, observed)
    missing = pods_to_read(run, facts, observed)
    nodes = _nodes_to_read(observed, now, terms.gone_after)
    if missing or nodes:
        return Outcome(run.status, look_up=missing, look_up_nodes=nodes)
    gate = queue.decide(
        run, observed.queue, now, pods_left=observed.active, refusals=observed.refusals
    )
    if gate.look_again:
        return Outcome(run.status, after=queue.UNKNOWN_QUEUE_PAUSE_SECONDS, counted=False)
    run = _with_mounted_keys(run, facts, needs)
    observed = replace(observed, waited=gang.waits_of(run.status))
    counted = count_down(run, facts, observed, now, terms, gate)
    end = find_verdict(run, facts, counted, now, may_run=gate.open)
    start = gang.decide_start(run, facts, counted, observed, now)
    stops = end or run.spec.suspend or not (gate.open and start.open)
    if stops and (unwatched := pods_without_watch(run, facts, observed)):
        return Outcome(run.status, look_up=unwatched)
    if end:
        outcome = _finish(run, facts, counted, end, now)
    elif run.spec.suspend or not gate.open:
        outcome = _reconcile_suspended(run, facts, counted, observed, now, terms, gate)
    else:
        do = _reconcile_active if start.open else _reconcile_waiting
        outcome = do(run, facts, counted, needs, observed, now, terms, start)
    if not end:
        outcome = queue.apply_gate(gate, outcome, observed.queue, run, now)
    after = outcome.status.gang
    held = run.status.starting and after is not None and after.state == "Waiting"
    return replace(outcome, status=settle_usage(outcome.status, facts, observed, now, held=held))


def invalid_status(
    before: RunStatus, generation: int, reason: str, problems: tuple[str, ...], now: datetime
) -> RunStatus:
    """Return the status of a Run without valid pods. It has failed: templates do not change."""
    text = "; ".join(problems)
    end = Verdict("Failed", reason, cut(text, 4000))
    return ended_status(before, generation, end, now)


def _repair_status(run: Run, now: datetime, delays: Delays) -> Run:
    """Return the run with a status that another controller may have written, made consistent.

    Future times become `now`. They are of a controller whose clock was ahead, and backoff,
    incidents and the deadline would start only at those times. Entries without a wait get one. They
    are of an older controller, and replicas in backoff must not start at once after an upgrade.
    """
    status = run.status
    latest = to_microsecond(now)

    def capped(moment: str) -> str:
        return latest if elapsed(moment, now) < 0 else moment

    def repaired(role: RoleStatus) -> RoleStatus:
        entries = (fill_in_wait(entry, delays) for entry in role.recovering)
        recovering = tuple(
            entry.model_copy(update={"since": capped(entry.since)}) for entry in entries
        )
        return role.model_copy(update={"recovering": recovering})

    start = status.start_time
    changed = {
        "start_time": to_second(now) if start and elapsed(start, now) < 0 else start,
        "replicas": {
            role: repaired(role_status) if role_status.recovering else role_status
            for role, role_status in status.replicas.items()
        },
        "incidents": tuple(
            incident.model_copy(
                update={
                    "began": capped(incident.began),
                    "ended": capped(incident.ended) if incident.ended else incident.ended,
                }
            )
            for incident in status.incidents
        ),
    }
    return run.model_copy(update={"status": status.model_copy(update=changed)})


def _with_mounted_keys(run: Run, facts: Mapping[str, RoleFacts], needs: Needs) -> Run:
    """Return the run with the Secret that its pods mount, if an earlier version made them.

    Its name was not in the status. Pods that are created now need the keys of those that live.
    """
    if (
        not needs.keys
        or run.status.ssh_secret
        or not any(role_facts.alive for role_facts in facts.values())
    ):
        return run
    status = run.status.model_copy(update={"ssh_secret": secret_name(run)})
    return run.model_copy(update={"status": status})


def _nodes_to_read(observed: Observed, now: datetime, gone_after: float) -> frozenset[str]:
    """Return the nodes of pods to read live: unknown ones, and those that are shut down or gone.

    No action is based on a taint that may be outdated, and a node may be newer than the cache.
    """
    if observed.nodes is None:
        return frozenset()
    nodes = observed.nodes
    bound = {pod.node for pod in observed.pods.values() if pod.node} - observed.nodes_read
    unknown = sorted(name for name in bound if name not in nodes)
    off = sorted(name for name in bound if name in nodes and nodes[name].seems_off(now, gone_after))
    return frozenset([*off, *unknown][: max(0, MOST_READ - len(observed.nodes_read))])


def _finish(
    run: Run, facts: Mapping[str, RoleFacts], counted: Counted, end: Verdict, now: datetime
) -> Outcome:
    roles = {
        role: role_at_end(role_facts, counted.roles[role]) for role, role_facts in facts.items()
    }
    if run.spec.clean_pod_policy != "None":
        all_of = run.spec.clean_pod_policy == "All"
        roles = {
            role: with_left(role_status, facts[role], keeps=() if all_of else facts[role].pods)
            for role, role_status in roles.items()
        }
    status = update_totals(run, roles, counted, now)
    whole = incidents.record_recovery(counted.incidents, now)
    status = status.model_copy(update={"incidents": whole})
    status = ended_status(status, run.metadata.generation, end, now)
    return Outcome(status, announcements=make_announcements(run, status), after=0.0)


def _reconcile_suspended(
    run: Run,
    facts: Mapping[str, RoleFacts],
    counted: Counted,
    observed: Observed,
    now: datetime,
    terms: RestartTerms,
    gate: Gate,
) -> Outcome:
    """Suspend a run: write the status first, then delete its pods without counting their ends.

    Its owner suspends it, or its queue does.
    """
    # Pods may have been created at the resumption, and the status that says so not been written.
    present = any(
        role_facts.alive or role_facts.ended or role_facts.down for role_facts in facts.values()
    )
    if run.status.phase != "Suspended" or present:
        roles = _stop_roles(run, facts, counted, restarts=gate.restarts)
    else:
        roles = dict(counted.roles)
    roles = {
        role: with_left(role_status, facts[role], keeps=facts[role].succeeded)
        for role, role_status in roles.items()
    }
    totals = update_totals(run, roles, counted, now).model_copy(update={"gang": None})
    refused = None if run.spec.suspend else refused_creations(observed.refusals)
    reason, text = refused or (gate.reason, gate.message)
    left = pods_left(facts)
    status = suspended_status(totals, run.metadata.generation, now, reason, text, left)
    times = (
        incidents.seconds_until_decided(counted.incidents, now, terms.incident_window),
        _seconds_until_lost(facts, now, terms.gone_after),
    )
    return Outcome(
        status,
        (*delete_stale_pods(facts), *open_service(observed)),
        announcements=make_announcements(run, status, counted.down),
        after=min((seconds for seconds in times if seconds is not None), default=None),
    )


def _stop_roles(
    run: Run, facts: Mapping[str, RoleFacts], counted: Counted, *, restarts: bool
) -> dict[str, RoleStatus]:
    """Return the roles whose pods are of an earlier attempt from now on.

    restarts: what restarts together begins again, also replicas that have finished.
    """
    scope = run.spec.restart_scope
    return {
        role: suspended_role(
            counted.roles[role],
            restart_all=restarts
            and (
                scope == "Run"
                or (scope == "Role" and len(role_facts.succeeded) < role_facts.spec.count)
            ),
        )
        for role, role_facts in facts.items()
    }


def _reconcile_waiting(
    run: Run,
    facts: Mapping[str, RoleFacts],
    counted: Counted,
    _needs: Needs,
    observed: Observed,
    now: datetime,
    terms: RestartTerms,
    start: StartGate,
) -> Outcome:
    """Keep the run without pods until it may start: write the status, then delete the pods.

    Unlike that of a suspended run, its time goes on: it is Pending like one whose pods wait.
    """
    roles = dict(counted.roles)
    if start.gives_way:
        roles = _stop_roles(run, facts, counted, restarts=True)
    roles = {
        role: with_left(role_status, facts[role], keeps=facts[role].succeeded)
        for role, role_status in roles.items()
    }
    status = update_totals(run, roles, counted, now).model_copy(update={"gang": start.status})
    message = start.message
    if left := pods_left(facts):
        message += f"; {left}"
    updates = waiting_conditions(message)
    status = active_status(run, status, "Pending", message, updates, now)
    times = (
        start.after,
        incidents.seconds_until_decided(counted.incidents, now, terms.incident_window),
        _seconds_until_lost(facts, now, terms.gone_after),
    )
    after = min((seconds for seconds in times if seconds is not None), default=None)
    return Outcome(
        status,
        (*delete_stale_pods(facts), *open_service(observed)),
        announcements=make_announcements(run, status, counted.down),
        after=seconds_until_due(run, after, counted, now),
    )


def _seconds_until_lost(
    facts: Mapping[str, RoleFacts], now: datetime, gone_after: float
) -> float | None:
    """Return the seconds until a look at the nodes that are away, as the first may be given up."""
    nodes = (
        lost_pod.node for role_facts in facts.values() for lost_pod in role_facts.lost.values()
    )
    times = (node.seconds_left(now, gone_after) for node in nodes if not node.off)
    return min(
        (min(seconds, LOOK_AGAIN_SECONDS) for seconds in times if seconds is not None), default=None
    )


def _reconcile_active(
    run: Run,
    facts: Mapping[str, RoleFacts],
    counted: Counted,
    needs: Needs,
    observed: Observed,
    now: datetime,
    terms: RestartTerms,
    start: StartGate,
) -> Outcome:
    if needs.keys and not run.status.ssh_secret:
        steps = create_keys(facts)
    else:
        steps = next_steps(run.spec, facts, counted, needs, observed, now)
    if start.begins:
        # A pod that an earlier try planned is created only after this start is stored.
        steps.actions = [action for action in steps.actions if not isinstance(action, CreatePod)]
    if start.after is not None:
        steps.wait(start.after)
    roles = {
        role: role_status.model_copy(
            update={"creating_indexes": format_intervals(steps.planned[role])}
        )
        for role, role_status in counted.roles.items()
    }
    status = update_totals(run, roles, counted, now).model_copy(update={"gang": start.status})
    progress = describe_progress(run.spec, facts, counted, steps, observed, status)
    if progress.phase == "Running" and progress.whole:
        whole = incidents.record_recovery(status.incidents, now)
        status = status.model_copy(update={"incidents": whole})
    for seconds in _seconds_until_looks(facts, counted, observed, now, terms):
        if seconds is not None:
            steps.wait(seconds)
    message = "; ".join(filter(None, (progress.message, start.message)))
    status = active_status(run, status, progress.phase, message, progress.conditions, now)
    return Outcome(
        status,
        tuple(steps.actions),
        announcements=(
            *make_announcements(run, status, counted.down, progress.hindrance),
            *announce_given_up(counted.moved, facts),
        ),
        after=seconds_until_due(run, steps.after, counted, now),
        planned=_newly_planned(run, steps, roles),
    )


def _seconds_until_looks(
    facts: Mapping[str, RoleFacts],
    counted: Counted,
    observed: Observed,
    now: datetime,
    terms: RestartTerms,
) -> Iterator[float | None]:
    """Yield when an active run has to be reconciled again without an event; None: not for that."""
    yield incidents.seconds_until_decided(counted.incidents, now, terms.incident_window)
    yield _seconds_until_lost(facts, now, terms.gone_after)
    if waiting := first_to_give_up(facts, observed):
        yield max(0.0, (waiting[0] - now).total_seconds())
    # Nodes of the class may go, and then the wait for one counts.
    if observed.uncounted:
        yield LOOK_AGAIN_SECONDS
    # The recovery of a node that waiting pods avoid reports nothing here.
    pods = (pod for role_facts in facts.values() for pod in role_facts.alive.values())
    if any(pod.avoid and not pod.node for pod in pods):
        yield LOOK_AGAIN_SECONDS
    for node in (observed.nodes or {}).values():
        ill = node.seconds_until_sick(now)
        if ill is not None and not node.sick:
            yield min(ill, LOOK_AGAIN_SECONDS)


def _newly_planned(run: Run, steps: Steps, roles: Mapping[str, RoleStatus]) -> frozenset[str]:
    """Return the names of the pods that the status plans, without those that it had planned.

    If a role begins again, those of earlier pods are planned again. In a run that has stopped they
    are not planned.
    """
    pod_names = set()
    for role, planned in steps.planned.items():
        before = run.role_status(role)
        same = pod_number(before) == pod_number(roles[role]) and not run.status.stopped
        new = planned - parse_intervals(before.creating_indexes) if same else planned
        pod_names |= {run.pod_name(role, index) for index in new}
    return frozenset(pod_names)


def update_totals(
    run: Run, roles: Mapping[str, RoleStatus], counted: Counted, now: datetime
) -> RunStatus:
    """Return the run's status with these roles, and the totals computed from them."""
    down = counted.down
    desired = sum(role.desired for role in roles.values())
    ready = sum(role.ready for role in roles.values())
    return run.status.model_copy(
        update={
            "observed_generation": run.metadata.generation,
            "replicas": {**run.status.replicas, **roles},
            "replicas_ready": f"{ready}/{desired}",
            "restarts": sum(role.restarts for role in roles.values()),
            "disruptions": sum(role.disruptions for role in roles.values()),
            "incidents": counted.incidents,
            "last_failure": _last_failure(down[0], now) if down else run.status.last_failure,
        }
    )


def _last_failure(down: DownReplica, now: datetime) -> LastFailure:
    failure = down.failure
    exit_ = down.pod.exit
    return LastFailure(
        replica=down.name,
        node=down.node,
        exit_code=failure.exit_code,
        reason=failure.reason,
        message=failure.message or down.description,
        disruption=failure.disruption,
        time=(exit_.finished_at if exit_ and exit_.finished_at else to_second(now)),
    )


def seconds_until_due(
    run: Run, after: float | None, counted: Counted, now: datetime
) -> float | None:
    """Return the seconds until an active run must be reconciled without any event, or None."""
    times = [] if after is None else [after]
    limit, start = run.spec.active_deadline_seconds, run.status.start_time
    if limit is not None:
        times.append(limit - elapsed(start, now) if start else float(limit))
    if any(role.recovering for role in counted.roles.values()):
        # Needs no precision: it only resets the backoff of stable replicas.
        times.append(STABLE / 4)
    return max(0.0, min(times)) if times else None


def _reconcile_ended(run: Run, observed: Observed, now: datetime) -> Outcome:
    """Clean up the pods of an ended run, and delete the Run after ttlSecondsAfterFinished."""
    roles, missing = left_at_end(run, observed)
    if missing:
        return Outcome(run.status, look_up=missing)
    ready = sum(role.ready for role in roles.values())
    desired = sum(role.desired for role in roles.values())
    status = run.status.model_copy(
        update={
            "observed_generation": run.metadata.generation,
            "replicas": roles,
            "replicas_ready": f"{ready}/{desired}" if roles else run.status.replicas_ready,
        }
    )
    status = settle_ended(status, observed, now)
    actions: list[Action] = list(clean_pods(run.spec, observed.pods))
    actions += queue.finished(run, observed.queue, pods_left=observed.active)
    if observed.deployment is not None:
        actions.append(DeleteDeployment())
    again = (
        queue.UNKNOWN_QUEUE_PAUSE_SECONDS
        if observed.queue.unknown and observed.queue.served
        else None
    )
    ttl, since = run.spec.ttl_seconds_after_finished, run.status.completion_time
    if ttl is None or since is None:
        return Outcome(status, tuple(actions), after=again)
    left = ttl - elapsed(since, now)
    if left <= 0:
        return Outcome(status, (DeleteRun(),))
    return Outcome(status, tuple(actions), after=left if again is None else min(left, again))


def clean_pods(spec: RunSpec, pods: Mapping[str, OwnedPod]) -> Iterator[DeletePod]:
    """Delete the pods that cleanPodPolicy selects after the run's end."""
    if spec.clean_pod_policy == "None":
        return
    for name, pod in pods.items():
        if not pod.role:
            # Deleted before its Deployment, such a pod would be created again.
            continue
        if pod.deleted_at and not pod.half_deleted:
            continue
        if not pod.ended or spec.clean_pod_policy == "All":
            yield DeletePod(name, pod.uid)
