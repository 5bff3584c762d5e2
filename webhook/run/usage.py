"""What a run used: seconds of replicas and of their accelerators, by the class of their nodes.

A pod's time is added to the status once, by the write after which the run counts on it no more. If
the pod has not ended by then, because the controller ends it, the rest is added once its end is
known. Of pods that live, the time follows from their own timestamps. So nothing is written while
they run, and no restart of the controller loses or repeats a second.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.run.model.intervals import format_intervals, parse_intervals
from webhook.run.model.status import Ending, Usage
from webhook.times import elapsed, format_span, parse_time, to_second

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from webhook.run.facts import RoleFacts
    from webhook.run.model import RoleStatus, RunStatus
    from webhook.run.observed import NodeHealth, Observed, OwnedPod

# The resource of a replica itself; the others are extended resources that its pod requests.
REPLICAS: Final = "replicas"
_AMOUNTS: Final = ("seconds", "waiting_seconds", "repeated_seconds")


class PodTime(NamedTuple):
    """Whole seconds of one pod.

    waiting: from its creation until it had a node; on_node: from then until its end.
    """

    waiting: int
    on_node: int


def known_end(pod: OwnedPod, node: NodeHealth | None) -> datetime | None:
    """Return when the pod's time ended, if it is known: its main container ended, its deletion was
    requested, or its node was lost, what came first. Grace periods do not count."""
    ends = [pod.deleted_at, pod.finished_at, pod.exit.finished_at if pod.exit else ""]
    if node and node.trouble and node.ready != "False":
        # Its end is not known: only when it was last heard of.
        ends.append(node.since)
    if pod.phase == "Failed" and pod.disruption and not any(ends):
        # No kubelet reported its end.
        ends.append(pod.disruption[2])
    return min((parse_time(end) for end in ends if end), default=None)


def pod_time(pod: OwnedPod, end: datetime) -> PodTime:
    """Return the time of a pod until its end, or until it is looked at."""
    end = parse_time(to_second(end))
    bound = (pod.bound_since or pod.on_node_since or pod.created) if pod.node else ""
    waits_until = min(parse_time(bound), end) if bound else end
    waiting = elapsed(pod.created, waits_until) if pod.created else 0.0
    on_node = elapsed(bound, end) if bound else 0.0
    return PodTime(max(0, int(waiting)), max(0, int(on_node)))


def settle_usage(
    after: RunStatus,
    facts: Mapping[str, RoleFacts],
    observed: Observed,
    now: datetime,
    *,
    held: bool = False,
) -> RunStatus:
    """Return the status `after` with the time of the pods on which the run counts no more.

    held: their programs waited for peers that had no node, so all of their time until now is
    waiting.

    What a disruption or a failure ended is repeated: all of it, although a program that writes
    checkpoints repeats less. So is what finished replicas did that run again, of the pods that are
    still there.
    """
    over = after.completion_time is not None
    wasted = after.phase not in ("Suspended", "Succeeded")
    rows: list[Usage] = []
    ending: dict[str, tuple[Ending, ...]] = {}
    for role, role_facts in facts.items():
        status = after.replicas[role]
        if not (over or role_facts.gone) and _same(role_facts.before, status):
            continue
        counts_then, counts_now = _counting(role_facts.before), _counting(status)
        finished = parse_intervals(status.succeeded_indexes)
        left = [pod for pod in role_facts.pods.values() if over or not counts_now(pod)]
        not_ended: dict[bool, list[int]] = {True: [], False: []}
        for pod in filter(counts_then, (*left, *role_facts.gone.values())):
            repeated = wasted and pod.index not in finished and not held
            pod_rows = usage_of(pod, observed, now, repeated=repeated)
            rows += map(_as_waiting, pod_rows) if held else pod_rows
            present = pod.index in role_facts.pods and not pod.ended
            if present and not held and not _end_of(pod, observed):
                not_ended[repeated].append(pod.index)
        ending[role] = tuple(
            Ending(indexes=format_intervals(indexes), since=to_second(now), repeated=repeated)
            for repeated, indexes in not_ended.items()
            if indexes
        )
        if wasted:
            rows += _run_again(
                role_facts,
                parse_intervals(role_facts.before.succeeded_indexes) - finished,
                observed,
                now,
            )
    unseen = sum(
        not down_replica.pod.uid
        for role_facts in facts.values()
        for down_replica in role_facts.down
    )
    return _with_usage(settle_ended(after, observed, now, ending), rows, unseen)


def settle_ended(
    after: RunStatus,
    observed: Observed,
    now: datetime,
    newly_ending: Mapping[str, tuple[Ending, ...]] = MappingProxyType({}),
) -> RunStatus:
    """Return the status with the rest of the time of pods that were ending and have ended.

    Of a pod that is gone, and whose last state nobody saw, the rest stays unknown.
    """
    rows: list[Usage] = []
    roles = {}
    for role, status in after.replicas.items():
        entries = newly_ending.get(role, ())
        new = {index for entry in entries for index in parse_intervals(entry.indexes)}
        pods = _pods_of(role, observed) if status.ending else {}
        for entry in status.ending:
            left = []
            for index in sorted(parse_intervals(entry.indexes) - new):
                pod = _find_ending(pods.get(index, ()), entry)
                if pod is None:
                    continue
                is_present = observed.pods.get(pod.name) is pod
                if is_present and not pod.ended and not _end_of(pod, observed):
                    left.append(index)
                else:
                    rows += _rest(pod, entry, observed, now)
            if left:
                again = entry.model_copy(update={"indexes": format_intervals(left)})
                entries = (*entries, again)
        if entries != status.ending:
            roles[role] = status.model_copy(update={"ending": entries})
    if not roles:
        return after
    return _with_usage(after.model_copy(update={"replicas": {**after.replicas, **roles}}), rows, 0)


def _with_usage(after: RunStatus, rows: Sequence[Usage], unseen: int) -> RunStatus:
    if not rows and not unseen:
        return after
    usage = tuple(sum_usage((*after.usage, *rows)))
    total = sum(row.repeated_seconds for row in usage if row.resource == REPLICAS)
    return after.model_copy(
        update={
            "usage": usage,
            "unseen": after.unseen + unseen,
            "repeated": format_span(total) if total else None,
        }
    )


def _pods_of(role: str, observed: Observed) -> Mapping[int, Sequence[OwnedPod]]:
    """Return the pods of a role by index: those that are gone first, the latest last."""
    pods_by_index: dict[int, list[OwnedPod]] = defaultdict(list)
    for pod in (*observed.gone, *observed.pods.values()):
        if pod.role == role:
            pods_by_index[pod.index].append(pod)
    return pods_by_index


def _find_ending(pods: Sequence[OwnedPod], entry: Ending) -> OwnedPod | None:
    """Return the pod that was ending: not one that was created after it."""
    since = parse_time(entry.since)
    old = (pod for pod in reversed(pods) if not pod.created or parse_time(pod.created) <= since)
    return next(old, None)


def _rest(pod: OwnedPod, entry: Ending, observed: Observed, now: datetime) -> Iterator[Usage]:
    """Yield the time of a pod that the status does not have; below zero if it ended earlier."""
    before = _usage_until(pod, observed, parse_time(entry.since), repeated=entry.repeated)
    return _differences(before, usage_of(pod, observed, now, repeated=entry.repeated))


def _end_of(pod: OwnedPod, observed: Observed) -> datetime | None:
    return known_end(pod, observed.node_health(pod))


def settle_deleted(
    status: RunStatus, pods: Iterable[OwnedPod], observed: Observed, now: datetime
) -> RunStatus:
    """Return the status of a Run that is deleted, with the time of these pods, until now.

    What they did is not repeated. Of a run that is over, the status has it.
    """
    rows: list[Usage] = []
    for pod in pods if status.completion_time is None else ():
        role = status.replicas.get(pod.role)
        if role and _counting(role)(pod):
            rows += usage_of(pod, observed, now, repeated=False)
    return _with_usage(settle_ended(status, observed, now), rows, 0)


def _run_again(
    facts: RoleFacts, indexes: Iterable[int], observed: Observed, now: datetime
) -> Iterator[Usage]:
    """Yield as repeated what the pods of finished replicas did, whose time is in the status."""
    for pod in filter(None, map(facts.pods.get, sorted(indexes))):
        for row in usage_of(pod, observed, now, repeated=True) if pod.phase == "Succeeded" else ():
            yield row.model_copy(update={"seconds": 0, "waiting_seconds": 0})


def live_usage(
    status: RunStatus, facts: Mapping[str, RoleFacts], observed: Observed, now: datetime
) -> Iterator[Usage]:
    """Yield the time until now of the pods that are not in the status yet."""
    for role, role_facts in facts.items():
        counts = _counting(role_facts.before)
        for pod in role_facts.pods.values() if status.completion_time is None else ():
            if counts(pod):
                yield from usage_of(pod, observed, now, repeated=False)
        pods = _pods_of(role, observed) if role_facts.before.ending else {}
        for entry in role_facts.before.ending:
            for index in parse_intervals(entry.indexes):
                if old := _find_ending(pods.get(index, ()), entry):
                    yield from _rest(old, entry, observed, now)


def usage_of(
    pod: OwnedPod, observed: Observed, now: datetime, *, repeated: bool
) -> Iterator[Usage]:
    """Yield the time of a pod: as a replica, and of each accelerator that it requests."""
    end = _end_of(pod, observed)
    return _usage_until(pod, observed, min(now, end) if end else now, repeated=repeated)


def _as_waiting(usage: Usage) -> Usage:
    return usage.model_copy(
        update={"seconds": 0, "waiting_seconds": usage.waiting_seconds + usage.seconds}
    )


def _usage_until(
    pod: OwnedPod, observed: Observed, end: datetime, *, repeated: bool
) -> Iterator[Usage]:
    node = observed.node_health(pod)
    waiting, on_node = pod_time(pod, end)
    for resource, count in ((REPLICAS, 1), *pod.accelerators):
        yield Usage(
            capacity_class=node.capacity_class if node else "",
            resource=resource,
            seconds=on_node * count,
            waiting_seconds=waiting * count,
            repeated_seconds=on_node * count if repeated else 0,
        )


def resources_in_use(observed: Observed) -> set[tuple[str, str]]:
    """Return what the pods use: capacity class, and REPLICAS or an accelerator.

    The class is empty without a node. Accelerators are those of pods that have started: before,
    their names may be anything.
    """
    nodes = observed.nodes or {}
    return {
        (node.capacity_class if (node := nodes.get(pod.node)) else "", resource)
        for pod in observed.pods.values()
        for resource in (REPLICAS, *(dict(pod.accelerators) if pod.running_since else ()))
    }


def sum_usage(rows: Iterable[Usage]) -> list[Usage]:
    """Return one row for each class and resource: replicas first, nothing for no time."""
    totals: dict[tuple[str, bool, str], Counter[str]] = defaultdict(Counter)
    first: dict[tuple[str, bool, str], Usage] = {}
    for row in rows:
        key = row.capacity_class, row.resource != REPLICAS, row.resource
        first.setdefault(key, row)
        totals[key].update({field: getattr(row, field) for field in _AMOUNTS})
    return [
        first[key].model_copy(update=dict(total))
        for key, total in sorted(totals.items())
        if any(total.values())
    ]


def usage_increase(before: Iterable[Usage], after: Iterable[Usage]) -> list[Usage]:
    """Return what the rows `after` have more than `before`; less is below zero."""
    return list(_differences(before, after))


def _differences(before: Iterable[Usage], after: Iterable[Usage]) -> Iterator[Usage]:
    earlier = {(usage.capacity_class, usage.resource): usage for usage in before}
    nothing = Usage(resource="")
    for usage in after:
        earlier_usage = earlier.get((usage.capacity_class, usage.resource), nothing)
        more = {field: getattr(usage, field) - getattr(earlier_usage, field) for field in _AMOUNTS}
        yield usage.model_copy(update=more)


def _same(before: RoleStatus, after: RoleStatus) -> bool:
    return (before.attempt, before.counted_uids, before.succeeded_indexes) == (
        after.attempt,
        after.counted_uids,
        after.succeeded_indexes,
    )


def _counting(status: RoleStatus) -> Callable[[OwnedPod], bool]:
    """Return whether the run counts on a pod, by a role's status."""
    ended, finished = frozenset(status.counted_uids), parse_intervals(status.succeeded_indexes)
    return lambda pod: (
        pod.attempt >= status.attempt and pod.uid not in ended and pod.index not in finished
    )
