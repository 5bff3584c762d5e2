"""Reconcile one Run: from the Run, its objects and the time to actions and the next status.

Actions depend on the status that the API server returned; new facts go into the next status. So a
reconcile that was interrupted between two actions continues with the next call, and every failure
is recorded before it has any effect.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from webhook.frameworks.table import ROLES
from webhook.placement.node_affinity import MOST_AVOIDED
from webhook.run import incidents, queue, serving
from webhook.run.actions import (
    CreateConfigMap,
    CreateKeys,
    CreatePod,
    CreateService,
    DeleteDeployment,
    DeletePod,
    DeleteRun,
    ForceDeletePod,
    OpenService,
    Outcome,
    RestoreKeys,
)
from webhook.run.deletion import reconcile_deleted
from webhook.run.facts import collect_facts
from webhook.run.history import annotation_of, first_to_give_up
from webhook.run.manifests import secret_name
from webhook.run.model import LastFailure, RoleStatus
from webhook.run.model.intervals import format_intervals, parse_intervals
from webhook.run.progress import (
    active_status,
    announce_given_up,
    describe_progress,
    ended_status,
    make_announcements,
    pods_left,
    refused_creations,
    suspended_status,
)
from webhook.run.restarts import (
    STABLE,
    RestartTerms,
    count_down,
    entries_by_index,
    fill_in_wait,
    pod_number,
    remaining_wait,
    role_at_end,
    suspended_role,
)
from webhook.run.usage import settle_usage
from webhook.run.verdict import Verdict, find_verdict
from webhook.shortening import cut
from webhook.times import elapsed, to_microsecond, to_second

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime

    from webhook.backoff import Delays
    from webhook.run.actions import Action
    from webhook.run.facts import DownReplica, RoleFacts
    from webhook.run.model import Run, RunSpec, RunStatus
    from webhook.run.model.status import Recovering
    from webhook.run.observed import Needs, Observed, OwnedPod
    from webhook.run.queue import Gate
    from webhook.run.restarts import Counted

DEFAULT_TERMS: Final = RestartTerms()
# Maximum nodes to read live per reconcile; further nodes keep their previous state.
MOST_READ: Final = 50
# Pods to create per reconcile. Then the status is written, and changes of the run take effect.
AT_ONCE: Final = 500
# The Service of a run with more replicas is closed while its pods are created. The controllers of
# Endpoints and EndpointSlices process all pods of a Service for each new pod, even though none has
# an address yet: the work would be quadratic in the number of replicas.
LARGE: Final = 250
# Seconds between two attempts to restore the SSH keys of pods that do not start. A kubelet retries
# the mount of a missing Secret at least every two minutes.
KEYS_PAUSE: Final = 60.0
# Seconds until a run looks again at a node that is not given up because too many are silent.
AGAIN: Final = 60.0


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
        return reconcile_deleted(run, observed.pods.values(), now)
    if run.status.ended:
        return _reconcile_ended(run, observed, now)
    run = _repair_status(run, now, terms.restarts)
    if run.spec.serving:
        return serving.reconcile(run, needs, observed, now)
    observed = observed.judged(now, terms.gone_after)
    facts = collect_facts(run, observed)
    missing = frozenset(
        run.pod_name(role, index) for role, one in facts.items() for index in one.missing
    )
    nodes = _nodes_to_read(observed, now, terms.gone_after)
    if missing or nodes:
        return Outcome(run.status, look_up=missing, look_up_nodes=nodes)
    gate = queue.decide(run, observed.queue, pods_left=observed.active)
    if gate.look_again:
        return Outcome(run.status, after=queue.AGAIN, counted=False)
    run = _with_mounted_keys(run, facts, needs)
    counted = count_down(run, facts, observed, now, terms, gate)
    end = find_verdict(run, facts, counted, now)
    if end:
        outcome = _finish(run, facts, counted, end, now)
    elif run.spec.suspend or not gate.open:
        outcome = _reconcile_suspended(run, facts, counted, observed, now, terms, gate)
    else:
        outcome = _reconcile_active(run, facts, counted, needs, observed, now, terms)
    if not end:
        outcome = queue.apply_gate(gate, outcome, observed.queue, run, now)
    return replace(outcome, status=settle_usage(run.status, outcome.status, facts, observed, now))


def invalid_status(
    before: RunStatus, generation: int, reason: str, problems: tuple[str, ...], now: datetime
) -> RunStatus:
    """Return the status of a Run without valid pods. It has failed, as its spec is immutable."""
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
        entries = (fill_in_wait(each, delays) for each in role.recovering)
        recovering = tuple(
            each.model_copy(update={"since": capped(each.since)}) for each in entries
        )
        return role.model_copy(update={"recovering": recovering})

    start = status.start_time
    changed = {
        "start_time": to_second(now) if start and elapsed(start, now) < 0 else start,
        "replicas": {
            role: repaired(one) if one.recovering else one for role, one in status.replicas.items()
        },
        "incidents": tuple(
            each.model_copy(
                update={
                    "began": capped(each.began),
                    "ended": capped(each.ended) if each.ended else each.ended,
                }
            )
            for each in status.incidents
        ),
    }
    return run.model_copy(update={"status": status.model_copy(update=changed)})


def _with_mounted_keys(run: Run, facts: Mapping[str, RoleFacts], needs: Needs) -> Run:
    """Return the run with the Secret that its pods mount, if an earlier version made them.

    Its name was not in the status. Pods that are created now need the keys of those that live.
    """
    if not needs.keys or run.status.ssh_secret or not any(one.alive for one in facts.values()):
        return run
    status = run.status.model_copy(update={"ssh_secret": secret_name(run)})
    return run.model_copy(update={"status": status})


def _nodes_to_read(observed: Observed, now: datetime, gone_after: float) -> frozenset[str]:
    """Return the nodes of pods to read live: unknown ones, and those that are shut down or gone.

    No action is based on a taint that may be outdated, and a node may be newer than the cache.
    """
    if observed.nodes is None:
        return frozenset()
    known = observed.nodes
    bound = {pod.node for pod in observed.pods.values() if pod.node} - observed.nodes_read
    unknown = sorted(name for name in bound if name not in known)
    off = sorted(name for name in bound if name in known and known[name].seems_off(now, gone_after))
    return frozenset([*off, *unknown][: max(0, MOST_READ - len(observed.nodes_read))])


def _finish(
    run: Run, facts: Mapping[str, RoleFacts], counted: Counted, end: Verdict, now: datetime
) -> Outcome:
    roles = {role: role_at_end(one, counted.roles[role]) for role, one in facts.items()}
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
    present = any(one.alive or one.ended or one.down for one in facts.values())
    if run.status.phase != "Suspended" or present:
        scope = run.spec.restart_scope
        roles = {
            role: suspended_role(
                counted.roles[role],
                restart_all=gate.evicted is not None
                and (scope == "Run" or (scope == "Role" and len(one.succeeded) < one.spec.count)),
            )
            for role, one in facts.items()
        }
    else:
        roles = dict(counted.roles)
    totals = update_totals(run, roles, counted, now)
    refused = None if run.spec.suspend else refused_creations(observed.refusals)
    reason, text = refused or (gate.reason, gate.message)
    left = pods_left(facts)
    status = suspended_status(totals, run.metadata.generation, now, reason, text, left)
    return Outcome(
        status,
        (*_delete_stale_pods(facts), *_open_service(observed)),
        announcements=make_announcements(run, status, counted.down),
        after=incidents.seconds_until_decided(counted.incidents, now, terms.incident_window),
    )


def _reconcile_active(
    run: Run,
    facts: Mapping[str, RoleFacts],
    counted: Counted,
    needs: Needs,
    observed: Observed,
    now: datetime,
    terms: RestartTerms,
) -> Outcome:
    if needs.keys and not run.status.ssh_secret:
        steps = _create_keys(facts)
    else:
        steps = _next_steps(run.spec, facts, counted, needs, observed, now)
    roles = {
        role: one.model_copy(update={"creating_indexes": format_intervals(steps.planned[role])})
        for role, one in counted.roles.items()
    }
    status = update_totals(run, roles, counted, now)
    progress = describe_progress(facts, counted, steps, observed, status)
    if progress.phase == "Running":
        whole = incidents.record_recovery(status.incidents, now)
        status = status.model_copy(update={"incidents": whole})
    left = incidents.seconds_until_decided(counted.incidents, now, terms.incident_window)
    if left is not None:
        steps.wait(left)
    if waiting := first_to_give_up(facts):
        steps.wait(max(0.0, (waiting[0] - now).total_seconds()))
    for one in facts.values():
        for each in one.lost.values():
            left = each.node.seconds_left(now, terms.gone_after)
            if left is not None and not each.node.off:
                steps.wait(min(left, AGAIN))
    if any(pod.avoid and not pod.node for one in facts.values() for pod in one.alive.values()):
        steps.wait(AGAIN)
    for node in (observed.nodes or {}).values():
        ill = node.seconds_until_sick(now)
        if ill is not None and not node.sick:
            steps.wait(min(ill, AGAIN))
    status = active_status(run, status, progress.phase, progress.message, progress.conditions, now)
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


def _newly_planned(run: Run, steps: Steps, roles: Mapping[str, RoleStatus]) -> frozenset[str]:
    """Return the names of the pods that the status plans, without those that it had planned.

    If a role begins again, those of earlier pods are planned anew.
    """
    found = set()
    for role, planned in steps.planned.items():
        before = run.status.replicas.get(role) or RoleStatus()
        same = pod_number(before) == pod_number(roles[role])
        new = planned - parse_intervals(before.creating_indexes) if same else planned
        found |= {run.pod_name(role, index) for index in new}
    return frozenset(found)


@dataclass(slots=True)
class Steps:
    """The actions, and what delays them.

    planned: role -> the replicas whose pods may be created after the next status is stored.
    held: role -> the roles whose replicas it waits for.
    waiting: the number of replicas in backoff.
    after: seconds until the first of them may start; 0 if there is more to create at once.
    """

    actions: list[Action] = field(default_factory=list)
    planned: dict[str, frozenset[int]] = field(default_factory=dict)
    held: dict[str, tuple[str, ...]] = field(default_factory=dict)
    waiting: int = 0
    after: float | None = None

    def wait(self, seconds: float) -> None:
        """Request the next reconcile within this many seconds."""
        self.after = seconds if self.after is None else min(self.after, seconds)


def _create_keys(facts: Mapping[str, RoleFacts]) -> Steps:
    """Create the SSH keys. No pod is planned before the status has the Secret that pods mount."""
    planned = dict.fromkeys(facts, frozenset[int]())
    return Steps([CreateKeys(), *_delete_stale_pods(facts)], planned)


def _next_steps(
    spec: RunSpec,
    facts: Mapping[str, RoleFacts],
    counted: Counted,
    needs: Needs,
    observed: Observed,
    now: datetime,
) -> Steps:
    steps = Steps(list(_prerequisites(spec, needs, observed)))
    steps.actions += _restore_keys(facts, needs, observed)
    # A pod that has a node but does not run waits for its kubelet, which mounts the Secret first.
    if needs.keys and any(
        pod.node and pod.phase == "Pending" for one in facts.values() for pod in one.alive.values()
    ):
        steps.wait(KEYS_PAUSE)
    # A failure that may end the run keeps its pod, and so its log, until it is decided.
    permanent = any(each.permanent and each.cause == "Unknown" for each in counted.incidents)
    steps.actions += _delete_stale_pods(facts, ended=not permanent)
    created, more = 0, False
    avoid = tuple(sorted(each.name for each in observed.ill_nodes))[:MOST_AVOIDED]
    blocked = _roles_that_wait(spec, facts)
    for role, one in facts.items():
        entries = entries_by_index(one.before.recovering)
        _delete_ended_pods(steps, one, entries, now)
        after = counted.roles[role]
        held = _awaited_roles(spec, role, facts)
        steps.planned[role] = frozenset() if held else _plan(one, after)
        if (pod_number(after), after.history) != (pod_number(one.before), one.before.history):
            # Pods are created only after the API server has stored what they are created with.
            continue
        if held:
            steps.held[role] = held
            continue
        for index in _missing_indexes(one):
            left = remaining_wait(entries.get(index), now)
            if left > 0:
                steps.waiting += 1
                steps.wait(left)
            elif role in blocked:
                continue
            elif index not in one.uncreated:
                # The status plans it now.
                more = True
            elif created == AT_ONCE:
                steps.wait(0.0)
                break
            else:
                history = annotation_of(one.before.history, index)
                attempt = one.before.attempt
                restarts = pod_number(one.before) - attempt
                steps.actions.append(CreatePod(role, index, attempt, history, avoid, restarts))
                created += 1
    if not (created or more) or observed.refusals:
        steps.actions += _open_service(observed)
    return steps


def _delete_ended_pods(
    steps: Steps, facts: RoleFacts, entries: Mapping[int, Recovering], now: datetime
) -> None:
    """Delete the pods that went down once their replicas may start again."""
    for index, pod in facts.ended.items():
        left = remaining_wait(entries.get(index), now)
        if left > 0:
            steps.waiting += 1
            steps.wait(left)
        else:
            steps.actions += _deletion(facts, index, pod)


def _prerequisites(spec: RunSpec, needs: Needs, observed: Observed) -> Iterator[Action]:
    """Yield the creation of objects that must exist before the first pod, in order."""
    if needs.config_map and not observed.config_map:
        yield CreateConfigMap()
    if not observed.service:
        replicas = sum(replica.count for replica in spec.roles.values())
        yield CreateService(closed=replicas > LARGE)


def _open_service(observed: Observed) -> Iterator[OpenService]:
    """Open a closed Service once no more pods can be created in this reconcile."""
    if observed.service and observed.service_closed:
        yield OpenService()


def _restore_keys(
    facts: Mapping[str, RoleFacts], needs: Needs, observed: Observed
) -> Iterator[RestoreKeys]:
    """Restore the Secret of SSH keys, unless every replica runs and so has it mounted.

    No watch reports a deletion of the Secret. It is restored as soon as a replica is down, before
    the replacement starts: running pods receive new keys within about a minute.
    """
    if needs.keys and observed.config_map and not all(map(_all_running, facts.values())):
        yield RestoreKeys()


def _delete_stale_pods(
    facts: Mapping[str, RoleFacts], *, ended: bool = True
) -> Iterator[DeletePod | ForceDeletePod]:
    """Delete the pods of earlier attempts; ended pods only if `ended`."""
    for one in facts.values():
        for index, pod in one.stale.items():
            if ended or not pod.ended:
                yield from _deletion(one, index, pod)


def _deletion(facts: RoleFacts, index: int, pod: OwnedPod) -> Iterator[DeletePod | ForceDeletePod]:
    """Delete a pod, unless it is already terminating.

    An ended pod is normally removed at once. One that is half deleted would stay, with its name.
    """
    lost = facts.lost.get(index)
    if lost and lost.node.off:
        yield ForceDeletePod(pod.name, pod.uid)
    elif not pod.deleted_at or pod.half_deleted:
        yield DeletePod(pod.name, pod.uid)


def _missing_indexes(facts: RoleFacts) -> Iterator[int]:
    """Yield indexes that have no pod and have not finished.

    Indexes that just went down, and those to look up, are left out: their failures must be
    recorded first.
    """
    down = {each.index for each in facts.down}
    for index in facts.unfinished:
        if not (index in facts.there or index in facts.missing or index in down):
            yield index


def _plan(facts: RoleFacts, after: RoleStatus) -> frozenset[int]:
    """Return the replicas that have no pod that counts, by the next status, and need one."""
    there = parse_intervals(after.succeeded_indexes) | parse_intervals(after.active_indexes)
    return frozenset(range(facts.spec.count)) - there


def _roles_that_wait(spec: RunSpec, facts: Mapping[str, RoleFacts]) -> Collection[str]:
    """Return the roles that wait for programs of earlier attempts in their restart unit.

    A new rank 0 has the address of the old one, whose peers would find it.
    """
    old = {role for role, one in facts.items() if one.has_earlier_programs}
    if spec.restart_scope == "Run" and old:
        return facts.keys()
    return old if spec.restart_scope == "Role" else ()


def _awaited_roles(spec: RunSpec, role: str, facts: Mapping[str, RoleFacts]) -> tuple[str, ...]:
    """Return the roles that this one waits for, because not all of their replicas run."""
    first = ROLES[spec.framework].after.get(role, ())
    return tuple(other for other in first if other in facts and not _all_running(facts[other]))


def _all_running(facts: RoleFacts) -> bool:
    return all(
        index in facts.alive and facts.alive[index].phase == "Running" for index in facts.unfinished
    )


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
    roles = {role: recount(role, before, observed) for role, before in run.status.replicas.items()}
    ready = sum(role.ready for role in roles.values())
    desired = sum(role.desired for role in roles.values())
    status = run.status.model_copy(
        update={
            "observed_generation": run.metadata.generation,
            "replicas": roles,
            "replicas_ready": f"{ready}/{desired}" if roles else run.status.replicas_ready,
        }
    )
    actions: list[Action] = list(clean_pods(run.spec, observed.pods))
    actions += queue.finished(run, observed.queue, pods_left=observed.active)
    if observed.deployment is not None:
        actions.append(DeleteDeployment())
    again = queue.AGAIN if observed.queue.unknown and observed.queue.served else None
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


def recount(role: str, before: RoleStatus, observed: Observed) -> RoleStatus:
    if observed.deployment is not None:
        return before
    pods = [pod for pod in observed.pods.values() if pod.role == role and not pod.ended]
    ready = sum(pod.ready for pod in pods if not pod.deleted_at)
    return before.model_copy(update={"active": len(pods), "ready": ready})
