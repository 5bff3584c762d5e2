"""Which waits for a node are no reason to give a class up, as the Run's author excludes its nodes.

The terms are those of the Run, and not of the pod, which has those of policies too. Of its
nodeSelector only what the pod has counts: a policy may have replaced or removed a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.placement.own_terms import why_none_fits
from webhook.placement.pod import parse_pod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.node_groups import NodeGroups
    from webhook.placement.pod import PodPlacement
    from webhook.run.observed import OwnedPod
    from webhook.run.plan import Plan


def uncounted_waits(
    plan: Plan,
    pods: Iterable[OwnedPod],
    find_class: Callable[[str], CapacityClass | None],
    groups: NodeGroups,
) -> Mapping[tuple[str, str], str]:
    """Return by pod and class why its waiting for a node of the class does not count.

    `groups` are all nodes. For a class that is not known every wait counts.
    """
    reasons: dict[tuple[str, str], str] = {}
    # Equal replicas share their terms.
    reason_by_key: dict[object, str] = {}
    for pod in pods:
        if pod.node or not pod.unscheduled:
            continue
        template_key = (pod.role, pod.index) if (pod.role, pod.index) in plan.special else pod.role
        for name, most in pod.fallback:
            capacity = find_class(name) if most is not None else None
            if capacity is None:
                continue
            key = template_key, pod.selector, name
            if key not in reason_by_key:
                reason_by_key[key] = why_none_fits(_own_terms(plan, pod), capacity, groups)
            if reason_by_key[key]:
                reasons[pod.name, name] = reason_by_key[key]
    return reasons


def _own_terms(plan: Plan, pod: OwnedPod) -> PodPlacement:
    spec = plan.placed_spec(pod.role, pod.index)
    placement = parse_pod({"metadata": {}, "spec": {"affinity": spec.get("affinity")}})
    selector = spec.get("nodeSelector") or {}
    return placement._replace(
        node_selector={key: value for key, value in pod.selector if selector.get(key) == value}
    )
