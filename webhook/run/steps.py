"""The next steps of an active run: the objects to create, the pods to delete and to create."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from webhook.frameworks.table import ROLES
from webhook.placement.node_affinity import MOST_AVOIDED
from webhook.run.actions import (
    CreateConfigMap,
    CreateKeys,
    CreatePod,
    CreateService,
    DeletePod,
    ForceDeletePod,
    OpenService,
    RestoreKeys,
)
from webhook.run.facts import is_finishing
from webhook.run.history import annotation_of
from webhook.run.model.intervals import parse_intervals
from webhook.run.restarts import entries_by_index, pod_number, remaining_wait

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime

    from webhook.run.actions import Action
    from webhook.run.facts import RoleFacts
    from webhook.run.model import RoleStatus, RunSpec
    from webhook.run.model.status import Recovering
    from webhook.run.observed import Needs, Observed, OwnedPod
    from webhook.run.restarts import Counted

# Pods to create per reconcile. Then the status is written, and changes of the run take effect.
PODS_PER_RECONCILE: Final = 500
# The Service of a run with more replicas is closed while its pods are created. The controllers of
# Endpoints and EndpointSlices process all pods of a Service for each new pod, even though none has
# an address yet: the work would be quadratic in the number of replicas.
LARGE: Final = 250
# Seconds between two attempts to restore the SSH keys of pods that do not start. A kubelet retries
# the mount of a missing Secret at least every two minutes.
KEYS_PAUSE: Final = 60.0


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


def create_keys(facts: Mapping[str, RoleFacts]) -> Steps:
    """Create the SSH keys. No pod is planned before the status has the Secret that pods mount."""
    planned = dict.fromkeys(facts, frozenset[int]())
    return Steps([CreateKeys(), *delete_stale_pods(facts)], planned)


def next_steps(
    spec: RunSpec,
    facts: Mapping[str, RoleFacts],
    counted: Counted,
    needs: Needs,
    observed: Observed,
    now: datetime,
) -> Steps:
    """Return what to do next about a run that is neither suspended nor over.

    `counted` has the roles of the next status.
    """
    steps = Steps(list(_prerequisites(spec, needs, observed)))
    steps.actions += _restore_keys(facts, needs, observed)
    # A pod that has a node but does not run waits for its kubelet, which mounts the Secret first.
    if needs.keys and any(
        pod.node and pod.phase == "Pending"
        for role_facts in facts.values()
        for pod in role_facts.alive.values()
    ):
        steps.wait(KEYS_PAUSE)
    # A failure that may end the run keeps its pod, and so its log, until it is decided.
    permanent = any(
        incident.permanent and incident.cause == "Unknown" for incident in counted.incidents
    )
    steps.actions += delete_stale_pods(facts, ended=not permanent)
    created, more = 0, False
    avoid = tuple(sorted(node.name for node in observed.ill_nodes))[:MOST_AVOIDED]
    blocked = _roles_that_wait(spec, facts)
    if is_finishing(spec, facts):
        steps.planned = dict.fromkeys(facts, frozenset[int]())
        steps.actions += open_service(observed)
        return steps
    for role, role_facts in facts.items():
        entries = entries_by_index(role_facts.before.recovering)
        _delete_ended_pods(steps, role_facts, entries, now)
        after = counted.roles[role]
        held = _awaited_roles(spec, role, facts)
        steps.planned[role] = frozenset() if held else _plan(role_facts, after)
        if (pod_number(after), after.history) != (
            pod_number(role_facts.before),
            role_facts.before.history,
        ):
            # Pods are created only after the API server has stored what they are created with.
            continue
        if held:
            steps.held[role] = held
            continue
        for index in _missing_indexes(role_facts):
            left = remaining_wait(entries.get(index), now)
            if left > 0:
                steps.waiting += 1
                steps.wait(left)
            elif role in blocked:
                continue
            elif index not in role_facts.uncreated:
                # The status plans it now.
                more = True
            elif created == PODS_PER_RECONCILE:
                steps.wait(0.0)
                break
            else:
                history = annotation_of(role_facts.before.history, index)
                attempt = role_facts.before.attempt
                restarts = pod_number(role_facts.before) - attempt
                steps.actions.append(CreatePod(role, index, attempt, history, avoid, restarts))
                created += 1
    if not (created or more) or observed.refusals:
        steps.actions += open_service(observed)
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


def open_service(observed: Observed) -> Iterator[OpenService]:
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


def delete_stale_pods(
    facts: Mapping[str, RoleFacts], *, ended: bool = True
) -> Iterator[DeletePod | ForceDeletePod]:
    """Delete the pods of earlier attempts; ended pods only if `ended`."""
    for role_facts in facts.values():
        for index, pod in role_facts.stale.items():
            if ended or not pod.ended:
                yield from _deletion(role_facts, index, pod)


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
    down = {down_replica.index for down_replica in facts.down}
    for index in facts.unfinished:
        if not (index in facts.pods or index in facts.missing or index in down):
            yield index


def _plan(facts: RoleFacts, after: RoleStatus) -> frozenset[int]:
    """Return the replicas that have no pod that counts, by the next status, and need one."""
    present_indexes = parse_intervals(after.succeeded_indexes) | parse_intervals(
        after.active_indexes
    )
    return frozenset(range(facts.spec.count)) - present_indexes


def _roles_that_wait(spec: RunSpec, facts: Mapping[str, RoleFacts]) -> Collection[str]:
    """Return the roles that wait for programs of earlier attempts in their restart unit.

    A new rank 0 has the address of the old one, whose peers would find it.
    """
    old = {role for role, role_facts in facts.items() if role_facts.has_earlier_programs}
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
