"""The state of one role: its pods, compared with what the run's status recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from webhook.run.failure import Failure, classify_end, disrupted_by_others, vanished_pod
from webhook.run.model.intervals import parse_intervals
from webhook.run.model.status import RoleStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.run.model import ReplicaSpec, Run
    from webhook.run.observed import NodeHealth, Observed, OwnedPod


@dataclass(frozen=True, slots=True)
class DownReplica:
    """A replica that went down and is not counted yet. `pod` is None if the pod vanished."""

    role: str
    index: int
    name: str
    failure: Failure
    pod: OwnedPod | None

    @property
    def node(self) -> str:
        """The pod's node; empty if it had none or the pod vanished."""
        return self.pod.node if self.pod else ""

    @property
    def order(self) -> tuple[bool, str, str, int]:
        """Sort key: the first of several replicas is reported as the cause.

        Disruptions come before failures, because programs fail when they lose a peer.
        """
        finished = self.pod.exit.finished_at if self.pod and self.pod.exit else ""
        return (not self.failure.disruption, finished or "9", self.role, self.index)

    @property
    def description(self) -> str:
        """What happened, for people: worker-2 exited with 137 (SIGKILL) on node a."""
        failure = self.failure
        replica = f"{self.role}-{self.index}"
        where = f" on node {self.node}" if self.node else ""
        words = f": {failure.message}" if failure.message else ""
        if failure.disruption:
            return f"{replica} was disrupted{where} ({failure.reason}{words})"
        if failure.exit_code is None:
            return f"{replica} failed{where} ({failure.reason}{words})"
        word = "" if failure.reason == "Error" else f" ({failure.reason})"
        return f"{replica} exited with {failure.exit_code}{word}{where}"


class PodOnLostNode(NamedTuple):
    """A pod whose node is or was in trouble.

    ready_again: when the node was ready again; empty while it is in trouble.
    """

    pod: OwnedPod
    node: NodeHealth
    ready_again: str = ""


@dataclass(frozen=True, slots=True)
class RoleFacts:
    """The replicas of one role. Mappings are by replica index.

    there: all pods of any attempt; each blocks its name until it is gone.
    alive: pods of this attempt that have not ended and are not being deleted.
    ended: pods of this attempt that went down and are already counted.
    stale: pods of earlier attempts.
    succeeded: indexes that have finished, now or earlier.
    down: replicas that went down and are not counted yet.
    missing: indexes that had a pod at the last reconcile and have none now; the reason is unknown.
    lost: pods of any attempt that have not ended, on nodes that are not ready, shut down or gone.
    returned: pods of any attempt on nodes that were away while the pods ran and are ready again.
    interrupted: pods of earlier attempts that were disrupted by others than the controller.
    """

    role: str
    spec: ReplicaSpec
    before: RoleStatus
    there: Mapping[int, OwnedPod]
    alive: Mapping[int, OwnedPod]
    ended: Mapping[int, OwnedPod]
    stale: Mapping[int, OwnedPod]
    succeeded: frozenset[int]
    down: tuple[DownReplica, ...]
    missing: frozenset[int]
    lost: Mapping[int, PodOnLostNode]
    returned: tuple[PodOnLostNode, ...]
    interrupted: tuple[DownReplica, ...]

    @property
    def unfinished(self) -> Iterable[int]:
        """Indexes that have not finished."""
        return (index for index in range(self.spec.count) if index not in self.succeeded)


def collect_facts(run: Run, observed: Observed) -> dict[str, RoleFacts]:
    """Collect the facts about each role of the run."""
    by_role: dict[str, list[OwnedPod]] = {role: [] for role in run.spec.roles}
    for pod in observed.pods.values():
        if pod.role in by_role:
            by_role[pod.role].append(pod)
    return {
        role: _role_facts(run, role, spec, by_role[role], observed)
        for role, spec in run.spec.roles.items()
    }


def _role_facts(
    run: Run, role: str, spec: ReplicaSpec, pods: Iterable[OwnedPod], observed: Observed
) -> RoleFacts:
    before = run.status.replicas.get(role) or RoleStatus()
    disruption_codes = run.spec.disruption_exit_codes or ()
    there = {pod.index: pod for pod in pods if pod.index < spec.count}
    counted = frozenset(before.counted_uids)
    succeeded = set(parse_intervals(before.succeeded_indexes))
    alive, ended, stale, lost = {}, {}, {}, {}
    down, interrupted, returned = [], [], []
    for index, pod in there.items():
        node = observed.node_health(pod)
        if node and node.trouble and not pod.ended:
            lost[index] = PodOnLostNode(pod, node)
        elif node and not node.trouble and (again := node.ready_again_after(pod.on_node_since)):
            returned.append(PodOnLostNode(pod, node, again))
        end = classify_end(pod, node, disruption_codes)
        if end == "Succeeded" and pod.attempt >= before.counts_from:
            succeeded.add(index)
        elif pod.attempt < before.attempt:
            stale[index] = pod
            if why := disrupted_by_others(pod):
                interrupted.append(DownReplica(role, index, pod.name, why, pod))
        elif pod.uid in counted:
            ended[index] = pod
        elif isinstance(end, Failure):
            down.append(DownReplica(role, index, pod.name, end, pod))
        else:
            alive[index] = pod
    missing = set()
    for index in parse_intervals(before.active_indexes):
        if index in there or index in succeeded:
            continue
        name = run.pod_name(role, index)
        if name in observed.absent:
            down.append(DownReplica(role, index, name, vanished_pod(), None))
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
        tuple(interrupted),
    )
