"""What a run used: seconds of replicas and of their accelerators, by the class of their nodes.

A pod's time is added to the status once, by the write after which the run counts on it no more. Of
pods that live, the time follows from their own timestamps. So nothing is written while they run,
and no restart of the controller loses or repeats a second.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.run.model.intervals import parse_intervals
from webhook.run.model.status import Usage
from webhook.times import elapsed, format_span, parse_time, to_second

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from webhook.run.facts import RoleFacts
    from webhook.run.model import RoleStatus, RunStatus
    from webhook.run.observed import NodeHealth, Observed, OwnedPod

# The resource of a replica itself; the others are extended resources that its pod requests.
REPLICAS: Final = "replicas"
_AMOUNTS: Final = ("seconds", "waiting_seconds", "repeated_seconds")


class PodTime(NamedTuple):
    """Whole seconds of one pod.

    waiting: from its creation until it had a node; on_node: from then until its main container
    ended, its deletion was requested, its node was lost, or the given time: what came first. Grace
    periods do not count.
    """

    waiting: int
    on_node: int


def pod_time(pod: OwnedPod, node: NodeHealth | None, now: datetime) -> PodTime:
    """Return the time of a pod until now."""
    ends = [to_second(now), pod.deleted_at, pod.exit.finished_at if pod.exit else ""]
    if node and node.trouble and node.ready != "False":
        # Its end is not known: only when it was last heard of.
        ends.append(node.since)
    end = min(parse_time(each) for each in ends if each)
    bound = (pod.bound_since or pod.on_node_since or pod.created) if pod.node else ""
    waits_until = min(parse_time(bound), end) if bound else end
    waiting = elapsed(pod.created, waits_until) if pod.created else 0.0
    on_node = elapsed(bound, end) if bound else 0.0
    return PodTime(max(0, int(waiting)), max(0, int(on_node)))


def settle_usage(
    before: RunStatus,
    after: RunStatus,
    facts: Mapping[str, RoleFacts],
    observed: Observed,
    now: datetime,
) -> RunStatus:
    """Return the status `after` with the time of the pods on which the run counts no more.

    What a disruption or a failure ended is repeated: all of it, although a program that writes
    checkpoints repeats less. So is what finished replicas did that run again, of the pods that are
    still there.
    """
    over = after.completion_time is not None
    wasted = after.phase not in ("Suspended", "Succeeded")
    rows: list[Usage] = []
    for role, one in facts.items():
        status = after.replicas[role]
        if not (over or one.gone) and _same(one.before, status):
            continue
        counts_then, counts_now = _counting(one.before), _counting(status)
        finished = parse_intervals(status.succeeded_indexes)
        left = [pod for pod in one.there.values() if over or not counts_now(pod)]
        for pod in filter(counts_then, (*left, *one.gone.values())):
            repeated = wasted and pod.index not in finished
            rows += usage_of(pod, observed, now, repeated=repeated)
        if wasted:
            rows += _run_again(
                one, parse_intervals(one.before.succeeded_indexes) - finished, observed, now
            )
    unseen = sum(not each.pod.uid for one in facts.values() for each in one.down)
    if not rows and not unseen:
        return after
    usage = tuple(sum_usage((*before.usage, *rows)))
    total = sum(each.repeated_seconds for each in usage if each.resource == REPLICAS)
    return after.model_copy(
        update={
            "usage": usage,
            "unseen": before.unseen + unseen,
            "repeated": format_span(total) if total else None,
        }
    )


def _run_again(
    facts: RoleFacts, indexes: Iterable[int], observed: Observed, now: datetime
) -> Iterator[Usage]:
    """Yield as repeated what the pods of finished replicas did, whose time is in the status."""
    for pod in filter(None, map(facts.there.get, sorted(indexes))):
        for row in usage_of(pod, observed, now, repeated=True) if pod.phase == "Succeeded" else ():
            yield row.model_copy(update={"seconds": 0, "waiting_seconds": 0})


def live_usage(
    status: RunStatus, facts: Mapping[str, RoleFacts], observed: Observed, now: datetime
) -> Iterator[Usage]:
    """Yield the time until now of the pods that are not in the status yet."""
    for one in facts.values() if status.completion_time is None else ():
        counts = _counting(one.before)
        for pod in one.there.values():
            if counts(pod):
                yield from usage_of(pod, observed, now, repeated=False)


def usage_of(
    pod: OwnedPod, observed: Observed, now: datetime, *, repeated: bool
) -> Iterator[Usage]:
    """Yield the time of a pod: as a replica, and of each accelerator that it requests."""
    node = observed.node_health(pod)
    waiting, on_node = pod_time(pod, node, now)
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
    for each in rows:
        key = each.capacity_class, each.resource != REPLICAS, each.resource
        first.setdefault(key, each)
        totals[key].update({field: getattr(each, field) for field in _AMOUNTS})
    return [
        first[key].model_copy(update=dict(total))
        for key, total in sorted(totals.items())
        if any(total.values())
    ]


def usage_increase(before: Iterable[Usage], after: Iterable[Usage]) -> list[Usage]:
    """Return what the rows `after` have more than `before`."""
    earlier = {(each.capacity_class, each.resource): each for each in before}
    nothing = Usage(resource="")
    return [
        each.model_copy(
            update={
                field: getattr(each, field)
                - getattr(earlier.get((each.capacity_class, each.resource), nothing), field)
                for field in _AMOUNTS
            }
        )
        for each in after
    ]


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
