"""What is to be created and deleted now, by what the persisted status says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from webhook.run import backoff
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
from webhook.run.rendezvous.table import ROLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from webhook.run.actions import Action
    from webhook.run.counting import Counted
    from webhook.run.facts import RoleFacts
    from webhook.run.model import RunSpec
    from webhook.run.observed import Needs, Observed, OwnedPod

# Pods made in one go: after so many the status is written, and a change of the run is seen.
AT_ONCE: Final = 500
# From more replicas on than these the Service is closed while pods are created. The controllers of
# Endpoints and EndpointSlices look at all pods of a Service whenever one comes, though none of them
# has an address yet: work in proportion to the square of the number of replicas.
LARGE: Final = 250
# Seconds between two attempts to restore the SSH keys of pods that do not start. A kubelet tries to
# mount a Secret that is missing every two minutes or more often.
KEYS_PAUSE: Final = 60.0
_ENDED: Final = ("Succeeded", "Failed")


@dataclass(slots=True)
class Steps:
    """The actions, and what they wait for.

    held: role -> the roles whose replicas it waits for.
    waiting: how many replicas wait for their backoff.
    after: seconds until the first of them may start; 0 if there is more to create at once.
    """

    actions: list[Action] = field(default_factory=list)
    held: dict[str, tuple[str, ...]] = field(default_factory=dict)
    waiting: int = 0
    after: float | None = None

    def wait(self, seconds: float) -> None:
        """Come again after so many seconds, or earlier."""
        self.after = seconds if self.after is None else min(self.after, seconds)


def onward(
    spec: RunSpec,
    facts: Mapping[str, RoleFacts],
    counted: Counted,
    needs: Needs,
    observed: Observed,
    now: datetime,
) -> Steps:
    """The steps of a run that goes on."""
    steps = Steps(list(_first(spec, needs, observed)))
    steps.actions += _keys(facts, needs, observed)
    if needs.keys and any(_starts(pod) for one in facts.values() for pod in one.alive.values()):
        steps.wait(KEYS_PAUSE)
    # A failure that may end the run keeps its log until that is decided.
    permanent = any(each.permanent and each.cause == "Unknown" for each in counted.incidents)
    steps.actions += superseded(facts, ended=not permanent)
    created = 0
    for role, one in facts.items():
        entries = backoff.by_index(one.before.recovering)
        for index, pod in one.ended.items():
            left = backoff.remaining(entries.get(index), now)
            if left > 0:
                steps.waiting += 1
                steps.wait(left)
            else:
                steps.actions += _deletion(one, index, pod)
        if counted.roles[role].attempt != one.before.attempt:
            # What begins anew does so once the API server knows of it.
            continue
        if held := _held(spec, role, facts):
            steps.held[role] = held
            continue
        for index in _vacant(one):
            left = backoff.remaining(entries.get(index), now)
            if left > 0:
                steps.waiting += 1
                steps.wait(left)
            elif created == AT_ONCE:
                steps.wait(0.0)
                break
            else:
                steps.actions.append(CreatePod(role, index, one.before.attempt))
                created += 1
    if not created or observed.refusals:
        steps.actions += opened(observed)
    return steps


def opened(observed: Observed) -> Iterator[OpenService]:
    """What makes addresses of a closed Service: once no pod can be created now."""
    if observed.service and observed.service_closed:
        yield OpenService()


def superseded(
    facts: Mapping[str, RoleFacts], *, ended: bool = True
) -> Iterator[DeletePod | ForceDeletePod]:
    """Deletion of the pods of earlier attempts; of those that have ended only if `ended`."""
    for one in facts.values():
        for index, pod in one.stale.items():
            if ended or pod.phase not in _ENDED:
                yield from _deletion(one, index, pod)


def _deletion(facts: RoleFacts, index: int, pod: OwnedPod) -> Iterator[DeletePod | ForceDeletePod]:
    """The deletion of a pod, unless it waits for its kubelet already."""
    lost = facts.lost.get(index)
    if lost and lost.node.trouble == "NodeShutdown":
        yield ForceDeletePod(pod.name, pod.uid)
    elif not pod.deleted_at:
        yield DeletePod(pod.name, pod.uid)


def cleaned(spec: RunSpec, pods: Mapping[str, OwnedPod]) -> Iterator[DeletePod]:
    """What cleanPodPolicy deletes once the run is over."""
    if spec.clean_pod_policy == "None":
        return
    for name, pod in pods.items():
        if not pod.role or pod.deleted_at:
            # A Deployment's pods go with it; deleted before it they would be made anew.
            continue
        runs = pod.phase not in _ENDED
        if runs or spec.clean_pod_policy == "All":
            yield DeletePod(name, pod.uid)


def _first(spec: RunSpec, needs: Needs, observed: Observed) -> Iterator[Action]:
    """What has to be there before the first pod, each in its turn."""
    if needs.config_map and not observed.config_map:
        if needs.keys:
            yield CreateKeys()
        yield CreateConfigMap()
    if not observed.service:
        replicas = sum(replica.count for replica in spec.roles.values())
        yield CreateService(closed=replicas > LARGE)


def _keys(
    facts: Mapping[str, RoleFacts], needs: Needs, observed: Observed
) -> Iterator[RestoreKeys]:
    """Restoring the Secret of SSH keys, unless every replica runs and so has it mounted.

    No watch tells that it was deleted. As soon as a replica is down, not only when it is replaced:
    the pods that run take up new keys within about a minute.
    """
    if needs.keys and observed.config_map and not all(map(_runs, facts.values())):
        yield RestoreKeys()


def _starts(pod: OwnedPod) -> bool:
    """Whether the pod waits for its kubelet, which mounts the Secret first."""
    return bool(pod.node) and pod.phase == "Pending"


def _vacant(facts: RoleFacts) -> Iterator[int]:
    """Indexes whose name is free, and whose work is not done.

    Not those that went down just now, nor those that have to be looked up: what happened to them
    is to be written down first.
    """
    went = {each.index for each in facts.down}
    for index in facts.unfinished:
        if not (index in facts.there or index in facts.missing or index in went):
            yield index


def _held(spec: RunSpec, role: str, facts: Mapping[str, RoleFacts]) -> tuple[str, ...]:
    """The roles that this one waits for: not all of their replicas run yet."""
    first = ROLES[spec.framework].after.get(role, ())
    return tuple(other for other in first if other in facts and not _runs(facts[other]))


def _runs(facts: RoleFacts) -> bool:
    return all(
        index in facts.alive and facts.alive[index].phase == "Running" for index in facts.unfinished
    )
