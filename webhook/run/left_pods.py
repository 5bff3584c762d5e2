"""Pods that no watch tells of: which to read live, and which are left of a run that has stopped.

Whoever may change a pod may take the label by which it is watched, at any time. Of a run that is
suspended or over, the status has the replicas whose pods are not known to be gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.run.deletion import recount
from webhook.run.model.intervals import format_intervals, parse_intervals

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from webhook.run.facts import RoleFacts
    from webhook.run.model import RoleStatus, Run
    from webhook.run.observed import Observed

# Maximum pods of a run that has stopped to read while others of it are still there.
MAX_PODS_READ: Final = 20


def pods_to_read(run: Run, facts: Mapping[str, RoleFacts], observed: Observed) -> frozenset[str]:
    """Return the names of pods to read live: those that may be there without their label."""
    missing = frozenset(
        run.pod_name(role, index)
        for role, role_facts in facts.items()
        for index in role_facts.missing
    )
    if not run.status.stopped:
        return missing | observed.unknown
    return frozenset() if _waits_to_look(missing, observed) else missing


def pods_without_watch(
    run: Run, facts: Mapping[str, RoleFacts], observed: Observed
) -> frozenset[str]:
    """Return the names of pods to read before a run that has begun ends or stops."""
    if not run.status.begun or run.status.stopped:
        return frozenset()
    return frozenset(
        name
        for role, role_facts in facts.items()
        for index in range(role_facts.spec.count)
        if index not in role_facts.pods
        and (name := run.pod_name(role, index)) not in observed.absent | observed.uncreated
    )


def with_left(status: RoleStatus, facts: RoleFacts, *, keeps: Collection[int]) -> RoleStatus:
    """Return the status with the replicas whose pods are left; ended ones of `keeps` may stay."""
    left = {index for index, pod in facts.pods.items() if not (pod.ended and index in keeps)}
    indexes = format_intervals(left | facts.missing)
    return status.model_copy(update={"creating_indexes": indexes})


def left_at_end(run: Run, observed: Observed) -> tuple[dict[str, RoleStatus], frozenset[str]]:
    """Return the roles of a run that is over, with the replicas whose pods are left to delete.

    Also return the names of those to read first. The pods of a Deployment are left to it.
    """
    roles, missing = dict(run.status.replicas), set[str]()
    policy = run.spec.clean_pod_policy
    for role, before in roles.items() if observed.deployment is None else ():
        pods = [pod for pod in observed.pods.values() if pod.role == role]
        unknown = {
            index: name
            for index in parse_intervals(before.creating_indexes) - {pod.index for pod in pods}
            if policy != "None" and (name := run.pod_name(role, index)) not in observed.absent
        }
        missing |= set(unknown.values())
        present_indexes = {pod.index for pod in pods if policy == "All" or not pod.ended}
        left = format_intervals({*unknown, *present_indexes} if policy != "None" else ())
        roles[role] = recount(before, pods).model_copy(update={"creating_indexes": left})
    return roles, frozenset() if _waits_to_look(missing, observed) else frozenset(missing)


def _waits_to_look(missing: Collection[str], observed: Observed) -> bool:
    """Return whether pods of a run that is suspended or over are read later: when the others that
    it deletes are gone. Many are read by a list of the namespace."""
    return len(missing) > MAX_PODS_READ and observed.active
