"""The replicas of a run, one by one: what its pods say, and why one has none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from webhook.cli.run.node_words import NodeWords
from webhook.run import intervals, observation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.run.model import RunStatus
    from webhook.run.model.status import RoleStatus
    from webhook.run.observed import OwnedPod

_UNKNOWN: Final = NodeWords("", "")


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica, or a pod of a run that serves: then `role` is empty.

    state: a pod's phase, `Running, not ready`, or `Terminating`; of a replica without a pod
        Succeeded, Waiting, or Missing.
    note: why it is so; empty if there is nothing to say.
    downs, since: how many times in a row it has gone down, and when it last did (RFC 3339); 0 and
        empty for one that is stable.
    """

    role: str
    index: int
    pod: str
    state: str
    node: str = ""
    pool: str = ""
    capacity: str = ""
    note: str = ""
    downs: int = 0
    since: str = ""

    @property
    def name(self) -> str:
        """What it is called within its run."""
        return f"{self.role}-{self.index}" if self.role else self.pod

    @property
    def fine(self) -> bool:
        """Whether nobody need look at it."""
        return self.state in ("Running", "Succeeded") and not self.note and not self.downs


def replicas(
    name: str,
    status: RunStatus,
    raw_pods: Sequence[Mapping[str, Any]],
    nodes: Mapping[str, NodeWords],
) -> list[Replica]:
    """Every replica of the run by role, in the status's order, and by index; then other pods."""
    pods = {
        (pod.role, pod.index, pod.name): pod for raw in raw_pods if (pod := observation.pod(raw))
    }
    restarts = {raw["metadata"]["name"]: _restarts(raw) for raw in raw_pods}
    found = []
    for role, counts in status.replicas.items():
        succeeded = intervals.read(counts.succeeded_indexes)
        for index in range(counts.desired):
            pod = pods.pop((role, index, f"{name}-{role}-{index}"), None)
            if pod is not None:
                one = _with_pod(pod, nodes, _notes(pod))
            elif index in succeeded:
                one = Replica(role, index, "", "Succeeded")
            else:
                one = Replica(role, index, "", "Missing")
            found.append(_with_history(one, counts))
    for pod in pods.values():
        times = restarts[pod.name]
        notes = [*_notes(pod), *([f"restarted {times} times"] if times else [])]
        found.append(_with_pod(pod, nodes, notes))
    return found


def _with_pod(pod: OwnedPod, nodes: Mapping[str, NodeWords], notes: Iterable[str]) -> Replica:
    told = nodes.get(pod.node, _UNKNOWN)
    return Replica(
        role=pod.role,
        index=pod.index,
        pod=pod.name,
        state=_state(pod),
        node=pod.node,
        pool=told.pool,
        capacity=told.capacity,
        note="; ".join(notes),
    )


def _with_history(replica: Replica, counts: RoleStatus) -> Replica:
    """The same with what it has gone through, if it is not stable yet."""
    for each in counts.recovering:
        if replica.index in intervals.read(each.indexes):
            state = "Waiting" if replica.state == "Missing" else replica.state
            return replace(
                replica, state=state, downs=each.failures + each.disruptions, since=each.since
            )
    return replica


def _state(pod: OwnedPod) -> str:
    if pod.deleted_at:
        return "Terminating"
    if pod.phase == "Running" and not pod.ready:
        return "Running, not ready"
    return pod.phase


def _notes(pod: OwnedPod) -> Iterator[str]:
    """Why a pod is as it is, the reasons that people can do something about first."""
    if pod.unscheduled:
        # After its first sentence the scheduler speaks of preemption, which helps nobody here.
        yield pod.unscheduled.partition(". ")[0]
    if pod.gates:
        yield f"held back by {pod.gates} scheduling gate{'s' if pod.gates > 1 else ''}"
    if pod.waiting:
        reason, message = pod.waiting
        yield f"{reason}: {message}" if message else reason
    if pod.disruption:
        reason, message, _ = pod.disruption
        yield f"disrupted ({reason})" + (f": {message}" if message else "")
    if pod.phase == "Failed":
        if pod.exit:
            why = f" ({pod.exit.reason})" if pod.exit.reason else ""
            yield f"{pod.exit.container} exited with {pod.exit.code}{why}"
        elif pod.reason:
            yield f"{pod.reason}: {pod.message}" if pod.message else pod.reason


def _restarts(raw: Mapping[str, Any]) -> int:
    """How often a pod's containers were started again in place: those of a Deployment are."""
    statuses = (raw.get("status") or {}).get("containerStatuses") or ()
    return sum(each.get("restartCount") or 0 for each in statuses)
