"""The placement that Kueue has written into an admitted pod.

When Kueue starts a job it writes the node labels of the flavor into the nodeSelector of the pod
template, and the name of the podset into a label (kueue: pkg/podset, since 0.12). It adds the
labels that admission checks require too. In the selector of such a pod, keys of the flavor, of the
checks and of the author cannot be distinguished.

A pod's author can write the podset label. So the selector comes before overrides only in namespaces
with a label for it, which their users cannot write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook import names
from webhook.placement import node_affinity
from webhook.placement.capacity_setting import CapacitySetting
from webhook.placement.settings import MemberSetting
from webhook.placement.trace import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from webhook.placement.bundle import Bundle
    from webhook.placement.pod import PodPlacement

_QUEUES = (names.KUEUE_LOCAL_QUEUE, names.KUEUE_QUEUE)


class Flavor(NamedTuple):
    """Who admitted the pod, as messages name it, and the nodeSelector with which it came.

    `kept`: whether the selector comes before overrides.
    """

    by: str
    selector: Mapping[str, str]
    kept: bool


def flavor_of(
    pod: PodPlacement, gates: Collection[str], namespace_labels: Mapping[str, str]
) -> Flavor | None:
    """Return what Kueue wrote into the pod; None if Kueue does not manage it, or has not admitted
    it.

    `gates` are the names of its scheduling gates. A pod with a gate of Kueue has no flavor yet:
    Kueue chooses one later, from the pod as we return it. A pod with the topology gate has one.
    """
    if not pod.labels.get(names.KUEUE_PODSET) or not pod.node_selector:
        return None
    if any(g.startswith(names.KUEUE_PREFIX) and g != names.KUEUE_TOPOLOGY_GATE for g in gates):
        return None
    kept = namespace_labels.get(names.KUEUE) == names.KUEUE_KEEP
    return Flavor(_queue_name(pod), pod.node_selector, kept)


def _queue_name(pod: PodPlacement) -> str:
    for key in _QUEUES:
        if queue := pod.labels.get(key):
            return f"Kueue (queue {quoted(queue)})"
    if workload := pod.annotations.get(names.KUEUE_WORKLOAD):
        return f"Kueue (workload {quoted(workload)})"
    return "Kueue"


def settings(flavor: Flavor) -> tuple[MemberSetting, ...]:
    """Return the selector as settings that fold before any override."""
    return tuple(
        MemberSetting(policy=flavor.by, part="overrides", map="nodeSelector", key=key, value=value)
        for key, value in sorted(flavor.selector.items())
    )


def contradicted(flavor: Flavor, bundle: Bundle) -> bool:
    """Return whether a requirement or override in the bundle leaves no node with the selector."""
    hard = bundle.hard
    return any(
        hard.selector.get(key, value) != value for key, value in flavor.selector.items()
    ) or not node_affinity.satisfiable(hard.terms, {**hard.selector, **flavor.selector})


def overruled(
    flavor: Flavor, bundle: Bundle, selector: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield each field of the selector that overrides have changed or removed, with a message."""
    members = {w.key: w for w in bundle.members.get("nodeSelector", ())}
    for key, value in flavor.selector.items():
        now = selector.get(key)
        if now == value:
            continue
        if now is None:
            classes = (w for w in bundle.of(CapacitySetting) if w.part == "overrides")
            policies = [w.policy for w in classes if key in w.capacity.keys]
        else:
            policies = [members[key].policy] if key in members else []
        wants = f"wants {quoted(now)}" if now is not None else "removed it"
        reason = f"policy {', '.join(policies)} {wants}" if policies else wants
        yield f"nodeSelector[{key}]", f"{reason}; {flavor.by} had set {quoted(value)}"
