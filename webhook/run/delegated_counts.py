"""Count what an engine's pods did: replicas that run, failures and disruptions, each once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from webhook.run.backends.engine_pods import assign_replicas
from webhook.run.facts import DownReplica, PodOnLostNode, RoleFacts
from webhook.run.failure import Failure, classify_end
from webhook.run.model.intervals import format_intervals, parse_intervals
from webhook.run.observed import Observed
from webhook.run.restarts import BackoffState, Counted, backoff_state, entries_by_index, to_entries
from webhook.times import to_microsecond

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from webhook.run.backends.engines import Engine
    from webhook.run.model import RoleStatus, Run
    from webhook.run.observed import EngineObserved, OwnedPod

# Uids of counted pods that are gone, kept in the status of a role: another process may still
# remember those pods.
MOST_GONE: Final = 500
_DELETED: Final = Failure(True, "Deleted", "the pod was deleted")


@dataclass(frozen=True)
class Counts:
    """What was counted. deleted: some pods are only known to be deleted."""

    facts: Mapping[str, RoleFacts]
    counted: Counted
    deleted: bool


def count_replicas(run: Run, engine: Engine, observed: EngineObserved, now: datetime) -> Counts:
    """Count the pods that went down, and restarts of main containers, each once by its uid."""
    listed_pods: dict[str, list[OwnedPod]] = {role: [] for role in run.spec.roles}
    gone: dict[str, list[OwnedPod]] = {role: [] for role in run.spec.roles}
    # A pod that lives is the replica, whatever is left of its predecessors.
    pods = sorted(observed.pods, key=lambda pod: not pod.ended)
    numbered_pods = assign_replicas(run.spec.roles, engine, [*pods, *observed.gone])
    for place, pod in enumerate(numbered_pods):
        by_role = listed_pods if place < len(pods) else gone
        if pod.role in by_role:
            by_role[pod.role].append(pod)
    ended = engine.end(observed.object) is not None
    # While a run is suspended, by its author or by its queue, and until its pods are gone, the
    # engine deletes them for it.
    suspended = observed.object is not None and observed.object.suspended
    quiet = run.spec.suspend or suspended or run.status.phase == "Suspended"
    facts = {
        role: _role_facts(
            run, role, listed_pods[role], gone[role], observed, count_deleted=not ended
        )
        for role in run.spec.roles
    }
    if quiet:
        facts = {role: replace(role_facts, down=()) for role, role_facts in facts.items()}
    roles = {
        role: _role_status(run, role_facts, listed_pods[role], gone[role], now, quiet=quiet)
        for role, role_facts in facts.items()
    }
    down = sorted(
        (down_replica for role_facts in facts.values() for down_replica in role_facts.down),
        key=lambda down_replica: down_replica.order,
    )
    deleted = any(down_replica.failure.reason == "Deleted" for down_replica in down)
    return Counts(facts, Counted(roles, tuple(down)), deleted)


def _role_facts(
    run: Run,
    role: str,
    pods: Sequence[OwnedPod],
    gone: Sequence[OwnedPod],
    observed: EngineObserved,
    *,
    count_deleted: bool,
) -> RoleFacts:
    spec, before = run.spec.roles[role], run.role_status(role)
    succeeded = set(parse_intervals(before.succeeded_indexes))
    pods_by_index: dict[int, OwnedPod] = {}
    alive: dict[int, OwnedPod] = {}
    ended: dict[int, OwnedPod] = {}
    lost: dict[int, PodOnLostNode] = {}
    nodes = Observed(nodes=observed.nodes)
    ends = [(pod, classify_end(pod, nodes.node_health(pod))) for pod in pods]
    past = [(pod, classify_end(pod, nodes.node_health(pod)) or _DELETED) for pod in gone]
    succeeded |= {
        pod.index for pod, end in (*ends, *past) if end == "Succeeded" and pod.index < spec.count
    }
    for pod, end in ends:
        if pod.index >= spec.count:
            continue
        node = nodes.node_health(pod)
        pods_by_index[pod.index] = pod
        if node and node.trouble and not pod.ended:
            lost[pod.index] = PodOnLostNode(pod, node)
        if isinstance(end, Failure):
            ended[pod.index] = pod
        elif end is None:
            alive[pod.index] = pod
    past = [(pod, end) for pod, end in past if pod.index not in succeeded]
    down = _find_down(role, before, (*ends, *past), count_deleted=count_deleted)
    return RoleFacts(
        role=role,
        spec=spec,
        before=before,
        pods=pods_by_index,
        alive=alive,
        # Another pod of the same replica may live already.
        ended={index: pod for index, pod in ended.items() if index not in alive},
        stale={},
        succeeded=frozenset(succeeded),
        down=tuple(sorted(down, key=lambda down_replica: down_replica.order)),
        missing=frozenset(),
        gone={},
        uncreated=frozenset(),
        unsure=frozenset(),
        lost=lost,
        returned=(),
        interrupted=(),
    )


def _find_down(
    role: str,
    before: RoleStatus,
    ends: Iterable[tuple[OwnedPod, Failure | str | None]],
    *,
    count_deleted: bool,
) -> Iterator[DownReplica]:
    """Yield what is not counted yet, also of pods beyond the Run's own count.

    Others may have scaled the engine's object up. A deletion that is the engine's own is none.
    """
    for pod, end in ends:
        if isinstance(end, Failure):
            counts = (count_deleted and not pod.withdrawn) or end.reason != _DELETED.reason
            if counts and pod.uid not in before.counted_uids:
                yield DownReplica(role, pod.index, pod.name, end, pod)
        elif end is None and (restarted := _restarted(pod, before)):
            yield DownReplica(role, pod.index, pod.name, restarted, pod)


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
    listed_pods: Iterable[OwnedPod],
    gone: Iterable[OwnedPod],
    now: datetime,
    *,
    quiet: bool,
) -> RoleStatus:
    before, down = facts.before, facts.down
    present, past = list(listed_pods), list(gone)
    restarts = {pod.uid: pod.restarts for pod in (*present, *past) if pod.restarts}
    container = sum(
        max(
            1,
            restarts.get(down_replica.pod.uid, 0)
            - before.counted_restarts.get(down_replica.pod.uid, 0),
        )
        if down_replica.pod.uid in restarts
        else 1
        for down_replica in down
        if not down_replica.failure.disruption
    )
    uids = {
        down_replica.pod.uid
        for down_replica in down
        if facts.alive.get(down_replica.index) != down_replica.pod
    }
    if quiet:
        # After the run is resumed, the engine creates pods before the status says so.
        uids |= {pod.uid for pod in past}
        uids |= {pod.uid for pod in present if run.spec.suspend or pod.deleted_at or pod.ended}
    present_uids = {pod.uid for pod in present}
    # Pods that outlived a suspension count again once all replicas run.
    again = run.status.phase == "Running" and not quiet
    alive = {pod.uid for pod in facts.alive.values()} if again else set()
    kept = [uid for uid in before.counted_uids if uid in present_uids and uid not in alive]
    old = [uid for uid in before.counted_uids if uid not in present_uids]
    disruptions = sum(down_replica.failure.disruption for down_replica in down)
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
    for down_replica in facts.down:
        if down_replica.index >= facts.spec.count:
            continue
        row = rows.get(down_replica.index, BackoffState())
        failed, disrupted = (not down_replica.failure.disruption), down_replica.failure.disruption
        rows[down_replica.index] = row._replace(
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
