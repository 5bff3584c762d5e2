"""What Kueue has put into a pod that it has admitted, as far as the pod tells.

When Kueue starts a job it writes the node labels of the flavor into the nodeSelector of the pod
template, and the name of the podset as a label beside them (kueue: pkg/podset, since 0.12). What
admission checks ask for comes with it. The selector of such a pod is the flavor's, the checks' and
its author's: nothing tells them apart.

A pod's author can write that label. So what is in the selector goes before overrides only in
namespaces that say so, by a label which their authors cannot write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook import names
from webhook.placement import node_affinity
from webhook.placement.settings import MemberSetting
from webhook.placement.trace import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from webhook.placement.bundle import Bundle
    from webhook.placement.pod import PodPlacement

_QUEUES = (names.KUEUE_LOCAL_QUEUE, names.KUEUE_QUEUE)


class Flavor(NamedTuple):
    """Who admitted the pod, as messages name it, and the nodeSelector with which it came.

    `kept`: whether it goes before overrides.
    """

    by: str
    selector: Mapping[str, str]
    kept: bool


def flavor_of(
    pod: PodPlacement, gates: Collection[str], namespace_labels: Mapping[str, str]
) -> Flavor | None:
    """What Kueue put into the pod; None if it has no say in it, or not yet.

    `gates` are the names of its scheduling gates. A pod that waits at one of Kueue's has no flavor
    so far: Kueue will choose one by what the pod says when we are done. Behind the topology's gate
    it has.
    """
    if not pod.labels.get(names.KUEUE_PODSET) or not pod.node_selector:
        return None
    if any(g.startswith(names.KUEUE_PREFIX) and g != names.KUEUE_TOPOLOGY_GATE for g in gates):
        return None
    kept = namespace_labels.get(names.KUEUE) == names.KUEUE_KEEP
    return Flavor(_named(pod), pod.node_selector, kept)


def _named(pod: PodPlacement) -> str:
    for key in _QUEUES:
        if queue := pod.labels.get(key):
            return f"Kueue (queue {quoted(queue)})"
    if workload := pod.annotations.get(names.KUEUE_WORKLOAD):
        return f"Kueue (workload {quoted(workload)})"
    return "Kueue"


def settings(flavor: Flavor) -> tuple[MemberSetting, ...]:
    """The selector as settings that fold before any override."""
    return tuple(
        MemberSetting(policy=flavor.by, part="overrides", map="nodeSelector", key=key, value=value)
        for key, value in sorted(flavor.selector.items())
    )


def contradicted(flavor: Flavor, bundle: Bundle) -> bool:
    """Whether something hard in the bundle leaves no node beside the selector."""
    hard = bundle.hard
    return any(
        hard.selector.get(key, value) != value for key, value in flavor.selector.items()
    ) or not node_affinity.satisfiable(hard.terms, {**hard.selector, **flavor.selector})


def overruled(
    flavor: Flavor, bundle: Bundle, selector: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Each field of the selector that overrides have changed or removed, with what to say of it."""
    members = {w.key: w for w in bundle.members.get("nodeSelector", ())}
    for key, value in flavor.selector.items():
        now = selector.get(key)
        if now == value:
            continue
        if now is None:
            classes = (w for w in bundle.capacity if w.part == "overrides")
            policies = [w.policy for w in classes if key in w.capacity.keys]
        else:
            policies = [members[key].policy] if key in members else []
        wants = f"wants {quoted(now)}" if now is not None else "removed it"
        said = f"policy {', '.join(policies)} {wants}" if policies else wants
        yield f"nodeSelector[{key}]", f"{said}, {flavor.by} put {quoted(value)}"
