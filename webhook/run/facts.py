"""The state of one role: its pods, compared with what the run's status recorded."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from webhook.run.failure import (
    Failure,
    classify_end,
    classify_gone,
    classify_unseen,
    disrupted_by_others,
)
from webhook.run.model.intervals import parse_intervals
from webhook.run.observed import NodeHealth, OwnedPod
from webhook.run.replica_nodes import Place, recorded_places

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from webhook.run.model import ReplicaSpec, RoleStatus, Run, RunSpec
    from webhook.run.observed import Observed


@dataclass(frozen=True, slots=True)
class DownReplica:
    """A replica that went down and is not counted yet.

    pod: as it was last seen. If nobody saw its end, it has no uid, and at most a node.
    last_class: in that case, the capacity class of the node when the pod ran.
    """

    role: str
    index: int
    name: str
    failure: Failure
    pod: OwnedPod
    last_class: str = ""

    @property
    def node(self) -> str:
        """The pod's node; empty if it had none or it is not known."""
        return self.pod.node

    @property
    def order(self) -> tuple[bool, str, str, int]:
        """Sort key: the first of several replicas is reported as the cause.

        Disruptions come before failures, because programs fail when they lose a peer.
        """
        finished = self.pod.exit.finished_at if self.pod.exit else ""
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

    pods: all pods of any attempt; each blocks its name until it is gone.
    alive: pods of this attempt that have not ended and are not being deleted.
    ended: pods of this attempt that went down and are already counted.
    stale: pods of earlier attempts.
    succeeded: indexes that have finished, now or earlier.
    down: replicas that went down and are not counted yet.
    missing: indexes that had a pod at the last reconcile, or may have been given one, and have none
    in the cache; they are to be read live.
    gone: pods of this attempt that are deleted and not counted yet, as they were last seen.
    uncreated: indexes whose pods are planned and do not exist.
    unsure: indexes whose pods were planned, and may have existed: nobody saw.
    lost: pods of any attempt that have not ended, on nodes that are not ready, shut down or gone.
    returned: pods of any attempt on nodes that were away while the pods ran and are ready again.
    interrupted: pods of earlier attempts that were disrupted by others than the controller.
    """

    role: str
    spec: ReplicaSpec
    before: RoleStatus
    pods: Mapping[int, OwnedPod]
    alive: Mapping[int, OwnedPod]
    ended: Mapping[int, OwnedPod]
    stale: Mapping[int, OwnedPod]
    succeeded: frozenset[int]
    down: tuple[DownReplica, ...]
    missing: frozenset[int]
    gone: Mapping[int, OwnedPod]
    uncreated: frozenset[int]
    unsure: frozenset[int]
    lost: Mapping[int, PodOnLostNode]
    returned: tuple[PodOnLostNode, ...]
    interrupted: tuple[DownReplica, ...]

    @property
    def unfinished(self) -> Iterable[int]:
        """Indexes that have not finished."""
        return (index for index in range(self.spec.count) if index not in self.succeeded)

    @property
    def has_earlier_programs(self) -> bool:
        """Whether programs of an earlier attempt may still run, apart from those on lost nodes,
        whose end nobody can report."""
        return any(not pod.ended and index not in self.lost for index, pod in self.stale.items())


def is_finishing(spec: RunSpec, facts: Mapping[str, RoleFacts]) -> bool:
    """Return whether a replica of an elastic run has finished: its rendezvous takes no other."""
    return spec.elastic_from is not None and any(
        role_facts.succeeded for role_facts in facts.values()
    )


def collect_facts(run: Run, observed: Observed) -> dict[str, RoleFacts]:
    """Collect the facts about each role of the run."""
    by_role: dict[str, list[OwnedPod]] = {role: [] for role in run.spec.roles}
    for pod in observed.pods.values():
        if pod.role in by_role:
            by_role[pod.role].append(pod)
    facts = {
        role: _role_facts(run, role, spec, by_role[role], observed)
        for role, spec in run.spec.roles.items()
    }
    return _without_late(facts) if is_finishing(run.spec, facts) else facts


def _without_late(facts: Mapping[str, RoleFacts]) -> dict[str, RoleFacts]:
    """Return the facts of an elastic run in which a replica has finished, without those that began
    after it or never: they find no peer, and what becomes of them does not matter.

    Without the pod of a replica that has finished, only those that never began are late.
    """
    ends = [
        pod.exit.finished_at
        for role_facts in facts.values()
        for index, pod in role_facts.pods.items()
        if index in role_facts.succeeded and pod.exit and pod.exit.finished_at
    ]

    def is_late(pod: OwnedPod) -> bool:
        since = pod.on_node_since
        # Nobody saw when the program of a pod without uid began.
        return bool(pod.uid) and (not since or bool(ends and since >= min(ends)))

    return {
        role: replace(
            role_facts,
            alive={
                index: pod
                for index, pod in role_facts.alive.items()
                if pod.phase != "Pending" and not is_late(pod)
            },
            down=tuple(down for down in role_facts.down if not is_late(down.pod)),
        )
        for role, role_facts in facts.items()
    }


def _role_facts(
    run: Run, role: str, spec: ReplicaSpec, pods: Iterable[OwnedPod], observed: Observed
) -> RoleFacts:
    before = run.role_status(role)
    disruption_codes = run.spec.disruption_exit_codes or ()
    pods_by_index = {pod.index: pod for pod in pods if pod.index < spec.count}
    counted = frozenset(before.counted_uids)
    finished = parse_intervals(before.succeeded_indexes)
    succeeded = set(finished)
    alive, ended, stale, lost = {}, {}, {}, {}
    down, interrupted, returned = [], [], []
    for index, pod in pods_by_index.items():
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
            # What becomes of the pod of a replica that has finished does not matter.
            if index not in finished:
                down.append(DownReplica(role, index, pod.name, end, pod))
        else:
            alive[index] = pod
    absent = _find_absent(run, role, before, observed, pods_by_index.keys() | succeeded)
    succeeded |= absent.succeeded
    if not counted <= {pod.uid for pod in pods_by_index.values()}:
        # A counted pod may be there without its label, and would be counted again.
        absent_names = observed.absent | observed.uncreated
        left = frozenset(range(spec.count)) - pods_by_index.keys() - succeeded
        absent.missing.update(
            index for index in left if run.pod_name(role, index) not in absent_names
        )
    return RoleFacts(
        role,
        spec,
        before,
        pods_by_index,
        alive,
        ended,
        stale,
        frozenset(succeeded),
        tuple(sorted((*down, *absent.down), key=lambda down_replica: down_replica.order)),
        frozenset(absent.missing),
        absent.gone,
        frozenset(absent.uncreated),
        frozenset(absent.unsure),
        lost,
        tuple(returned),
        tuple(interrupted),
    )


@dataclass(frozen=True, slots=True)
class _Absent:
    """Replicas of a role that should have a pod, or may have been given one, and have none.

    The fields are those of RoleFacts.
    """

    missing: set[int] = field(default_factory=set)
    uncreated: set[int] = field(default_factory=set)
    unsure: set[int] = field(default_factory=set)
    gone: dict[int, OwnedPod] = field(default_factory=dict)
    down: list[DownReplica] = field(default_factory=list)
    succeeded: set[int] = field(default_factory=set)


def _find_absent(
    run: Run, role: str, before: RoleStatus, observed: Observed, settled: Set[int]
) -> _Absent:
    """Return what is known of the pods that are not there; `settled` are replicas to leave out."""
    absences = _Absent()
    active = parse_intervals(before.active_indexes)
    absent = (active | parse_intervals(before.creating_indexes)) - settled
    if not absent:
        return absences
    places = recorded_places(before, absent)
    stopped = run.status.stopped
    deleted = {
        pod.index: pod
        for pod in observed.gone
        if pod.role == role and pod.attempt >= before.attempt and pod.uid not in before.counted_uids
    }
    for index in sorted(absent):
        name = run.pod_name(role, index)
        if index not in active and name in observed.uncreated and not stopped:
            absences.uncreated.add(index)
        elif name not in observed.absent:
            absences.missing.add(index)
        elif pod := deleted.get(index):
            absences.gone[index] = pod
            codes = run.spec.disruption_exit_codes or ()
            end = classify_gone(pod, observed.node_health(pod), codes)
            if isinstance(end, Failure):
                absences.down.append(DownReplica(role, index, name, end, pod))
            else:
                absences.succeeded.add(index)
        elif index in active:
            place = places.get(index, Place())
            pod = _unseen_pod(run, role, index, before, place)
            failure = classify_unseen(pod, _last_health(place, observed))
            down = DownReplica(role, index, name, failure, pod, place.capacity_class)
            absences.down.append(down)
        elif not stopped:
            absences.unsure.add(index)
    return absences


def _unseen_pod(run: Run, role: str, index: int, status: RoleStatus, place: Place) -> OwnedPod:
    return OwnedPod(
        name=run.pod_name(role, index),
        uid="",
        run_uid=run.metadata.uid,
        role=role,
        index=index,
        attempt=status.attempt,
        phase="Unknown",
        node=place.node,
        fallback=tuple((class_name, None) for class_name in place.fallback),
    )


def _last_health(place: Place, observed: Observed) -> NodeHealth | None:
    """Return the health of a node on which a pod ran; None if it is not known.

    The node is older than the list of nodes: one that is not on it is gone.
    """
    if not place.node or observed.nodes is None:
        return None
    return observed.nodes.get(place.node) or NodeHealth(place.node)
