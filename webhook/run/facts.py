"""What the pods of one role say, set beside what the run's status remembers of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.run import intervals
from webhook.run.failure import Failure, ending, interrupted, vanished

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from webhook.run.model import ReplicaSpec, RoleStatus
    from webhook.run.observed import NodeHealth, Observed, OwnedPod

_ENDED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Down:
    """A replica that went down, and is not counted yet. `pod` is None if it vanished."""

    role: str
    index: int
    name: str
    failure: Failure
    pod: OwnedPod | None

    @property
    def order(self) -> tuple[bool, str, str, int]:
        """Of several at once the first is told to be the cause.

        A disruption before a failure, for programs fail when a peer is taken from them.
        """
        finished = self.pod.exit.finished_at if self.pod and self.pod.exit else ""
        return (not self.failure.disruption, finished or "9", self.role, self.index)


class Lost(NamedTuple):
    """A pod whose node is in trouble, or was.

    again: when the node was heard of again; empty while it is in trouble.
    """

    pod: OwnedPod
    node: NodeHealth
    again: str = ""


@dataclass(frozen=True, slots=True)
class RoleFacts:
    """One role, as its pods are now.

    there: every pod by index, of whatever attempt: its name is taken as long as it is there.
    alive: those of this attempt that have neither ended nor been asked to go.
    ended: those of this attempt that went down and are counted already; with their uids.
    stale: those of an earlier attempt.
    succeeded: indexes that have finished, those already remembered among them.
    down: replicas that went down and are not counted yet.
    missing: indexes that had a pod when last seen, and none now; nothing more is known of them.
    lost: by index, pods of any attempt that have not ended, on nodes that are not ready, shut down
        or gone.
    returned: pods of any attempt on nodes that were away while these ran, and are ready.
    interrupted: pods of an earlier attempt that were disrupted by others than the controller.
    """

    role: str
    spec: ReplicaSpec
    before: RoleStatus
    there: Mapping[int, OwnedPod]
    alive: Mapping[int, OwnedPod]
    ended: Mapping[int, OwnedPod]
    stale: Mapping[int, OwnedPod]
    succeeded: frozenset[int]
    down: tuple[Down, ...]
    missing: frozenset[int]
    lost: Mapping[int, Lost]
    returned: tuple[Lost, ...]
    interrupted: tuple[Down, ...]

    @property
    def unfinished(self) -> Iterable[int]:
        """Indexes that still have work to do."""
        return (index for index in range(self.spec.count) if index not in self.succeeded)


def look(
    role: str,
    spec: ReplicaSpec,
    before: RoleStatus,
    pods: Iterable[OwnedPod],
    run: str,
    observed: Observed,
    disruption_codes: Collection[int] = (),
) -> RoleFacts:
    """Read the pods of one role of the run named `run`.

    `disruption_codes` are its disruptionExitCodes.
    """
    there = {pod.index: pod for pod in pods if pod.index < spec.count}
    counted = frozenset(before.counted_uids)
    succeeded = set(intervals.read(before.succeeded_indexes))
    alive, ended, stale, lost = {}, {}, {}, {}
    down, told, returned = [], [], []
    for index, pod in there.items():
        node = observed.health(pod)
        if node and node.trouble and pod.phase not in _ENDED:
            lost[index] = Lost(pod, node)
        elif node and not node.trouble and (again := node.heard_again(pod.on_node_since)):
            returned.append(Lost(pod, node, again))
        end = ending(pod, node, disruption_codes)
        if end == "Succeeded" and pod.attempt >= before.counts_from:
            succeeded.add(index)
        elif pod.attempt < before.attempt:
            stale[index] = pod
            if why := interrupted(pod):
                told.append(Down(role, index, pod.name, why, pod))
        elif pod.uid in counted:
            ended[index] = pod
        elif isinstance(end, Failure):
            down.append(Down(role, index, pod.name, end, pod))
        else:
            alive[index] = pod
    missing = set()
    for index in intervals.read(before.active_indexes):
        if index in there or index in succeeded:
            continue
        name = f"{run}-{role}-{index}"
        if name in observed.absent:
            down.append(Down(role, index, name, vanished(), None))
        else:
            missing.add(index)
    return RoleFacts(
        role,
        spec,
        before,
        there,
        alive,
        ended,
        stale,
        frozenset(succeeded),
        tuple(sorted(down, key=lambda one: one.order)),
        frozenset(missing),
        lost,
        tuple(returned),
        tuple(told),
    )
