"""Merge a bundle into a pod.

1. Requirements are checked against the pod as it was sent.
2. Overrides remove what they exclude.
3. Defaults fill in what the pod then leaves unset; merging the result again changes nothing.
4. Overrides set their values.

All rejections are known before any field of the result is made: a pod is rejected with all reasons,
or placed completely.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.dns_names import is_subdomain
from webhook.placement import (
    kueue,
    merge_nodes,
    merge_plain,
    merge_tolerations,
    merge_values,
    merge_verdict,
    node_affinity,
)
from webhook.placement.bundle import conjoined
from webhook.placement.fields import SCALARS
from webhook.placement.namespace_setting import NamespaceSetting
from webhook.placement.node_affinity import TooManyTerms, satisfiable
from webhook.placement.plugin_tolerations import NO_FACTS
from webhook.placement.pod import REQUIRED_NODES
from webhook.placement.settings import AllowedSetting, ValuesSetting
from webhook.placement.trace import Entry, Ledger, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.capacity_request import Request
    from webhook.placement.kueue import Flavor
    from webhook.placement.merge_nodes import NodeChoice
    from webhook.placement.nodes import Node
    from webhook.placement.owner_selector import OwnerSelector
    from webhook.placement.plugin_tolerations import Facts
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Requirement, Term

# The most requirements that are added because of nodes to avoid.
_MOST_ADDED: Final = 1000


class MergeContext(NamedTuple):
    """What a merge needs in addition to bundle and pod.

    classes:                     every capacity class of the set, by name
    default_priority_class:      the cluster's globalDefault PriorityClass; empty if there is none
    flavor:                      what Kueue put into the pod, if it has admitted it
    node:                        the only node that the pod can be on, if there is one and it is
                                 known
    kept:                        the pod keeps its placement, and only requirements apply: its
                                 capacity annotation is checked against requirements on the
                                 same class, and has no other effect
    facts:                       what others than its author add to the pod depends on them
    selector:                    that of the pod's owner; None if no owner counts it by one, or it
                                 is not given
    """

    classes: Mapping[str, CapacityClass] = MappingProxyType({})
    default_priority_class: str = ""
    flavor: Flavor | None = None
    node: Node | None = None
    kept: bool = False
    facts: Facts = NO_FACTS
    selector: OwnerSelector | None = None


class Merged(NamedTuple):
    """The result. With `rejections` the pod is rejected and `placement` is the pod's own.

    `removed`: as in Ledger.
    """

    placement: PodPlacement
    trace: Sequence[Entry]
    warnings: Sequence[str]
    rejections: Sequence[str]
    removed: Mapping[str, Sequence[str]] = MappingProxyType({})


def merge(
    bundle: Bundle, pod: PodPlacement, requests: Sequence[Request], context: MergeContext
) -> Merged:
    """Merge the bundle, and the author's requests for capacity classes, into the pod."""
    ledger = Ledger(list(bundle.trace), list(bundle.warnings), list(bundle.contradictions))
    default = context.default_priority_class
    plain = merge_plain.merge(bundle, pod, default, context.selector, ledger)
    try:
        result = _with_nodes(plain, bundle, pod, requests, context, ledger)
    except TooManyTerms as error:
        what = f"the pod together with policies {', '.join(bundle.policies)}"
        ledger.rejections.append(f"{what}: {error}")
    trace = ledger.trace
    if ledger.rejections:
        result = pod
        # A setting that rejects the pod is not also traced as set.
        refused = {entry[:3] for entry in trace if entry.outcome == "rejected"}
        trace = [e for e in trace if e.outcome == "rejected" or e[:3] not in refused]
    removed = {} if ledger.rejections else ledger.removed
    return Merged(result, trace, ledger.warnings, ledger.rejections, removed)


def _with_nodes(
    plain: PodPlacement,
    bundle: Bundle,
    pod: PodPlacement,
    requests: Sequence[Request],
    context: MergeContext,
    ledger: Ledger,
) -> PodPlacement:
    asked = merge_nodes.settle(bundle, requests, context.classes, ledger)
    if context.kept:
        # Before the verdict: a request without effect must not excuse anything.
        asked, requests = [], ()
    others = len(ledger.rejections)
    if bundle.of(AllowedSetting):
        pod = merge_tolerations.allowed(bundle, pod, asked, context, ledger)
    if bundle.of(ValuesSetting):
        merge_values.judge(bundle, pod, asked, context, ledger)
    for setting in bundle.of(NamespaceSetting):
        if setting.part == "requirements" or not (context.kept or pod.node_name):
            ledger.reject(setting, setting.missing)
    merge_verdict.judge(bundle, pod, asked, ledger)
    if context.kept or pod.node_name:
        merge_verdict.judge_node(bundle, pod, context.node, ledger)
    if pod.node_name:
        ledger.skip_node_fields(bundle, "nodeName is set: the pod is bound already")
        return plain
    nodes = merge_nodes.choose(bundle, pod, asked, [r.class_name for r in requests], ledger)
    if context.flavor is not None:
        if len(ledger.rejections) > others:
            look = "check its flavor and its admission checks"
            ledger.rejections.append(f"{context.flavor.by} has admitted the pod; {look}")
        else:
            for path, what in kueue.overruled(context.flavor, bundle, nodes.selector):
                ledger.warn_pod(path, "removed", what)
    if not context.kept:
        plain = _within_grace(plain, pod, nodes, context.classes.values(), ledger)
    return plain._replace(
        node_selector=nodes.selector,
        required=_avoiding(nodes.required, pod, ledger),
        tolerations=merge_tolerations.merge(bundle, pod, nodes.capacity, context, ledger),
        lists=merge_plain.lists(bundle, pod, nodes.capacity, ledger),
        topology_spread=merge_plain.spread(bundle, pod, ledger),
    )


def _within_grace(
    plain: PodPlacement,
    pod: PodPlacement,
    nodes: NodeChoice,
    classes: Iterable[CapacityClass],
    ledger: Ledger,
) -> PodPlacement:
    """Return the pod with a grace period that each class allows on whose nodes alone it can run."""
    limits = [
        (capacity.most_grace, capacity.name)
        for capacity in classes
        if capacity.most_grace is not None and _runs_only_on(capacity, nodes)
    ]
    field = SCALARS["terminationGracePeriodSeconds"]
    value: int = getattr(plain, field.attribute)
    most, name = min(limits, default=(value, ""))
    if most >= value:
        return plain
    what = f"{most} instead of {value}: class {name} allows no longer"
    if getattr(pod, field.attribute) in field.unwritten(""):
        ledger.trace.append(Entry(field.name, "", "pod", "set", what))
    else:
        ledger.warn_pod(field.name, "set", what)
    changed: dict[str, Any] = {field.attribute: most}
    return plain._replace(**changed)


def _runs_only_on(capacity: CapacityClass, nodes: NodeChoice) -> bool:
    try:
        outside = conjoined(nodes.required, [capacity.outside])
    except TooManyTerms:
        return False
    return satisfiable(nodes.required, nodes.selector) and not satisfiable(outside, nodes.selector)


def _avoiding(required: list[Term] | None, pod: PodPlacement, ledger: Ledger) -> list[Term] | None:
    """Return the terms without the nodes that the pod's annotation names.

    Any author may write it, as they may choose nodes for a pod; the controller of Runs does.
    """

    def warn(why: str) -> None:
        ledger.warn_pod(REQUIRED_NODES, "skipped", f"annotation {names.AVOID_NODES}: {why}")

    named = node_affinity.avoided_nodes(pod.annotations)
    valid = [name for name in named if is_subdomain(name)]
    avoided = valid[: node_affinity.MOST_AVOIDED]
    if wrong := [name for name in named if name not in valid]:
        warn(f"{quoted(wrong[0])} is not the name of a node, and is left out")
    if valid != avoided:
        warn(f"it names over {len(avoided)} nodes; the first {len(avoided)} are avoided")
    if not avoided:
        return required
    terms = len(required or ())
    if terms * len(avoided) > _MOST_ADDED:
        warn(f"{terms} terms are too many for {len(avoided)} nodes")
        return required
    fields: list[Requirement] = [
        {"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in avoided
    ]
    condition: list[Term] = [{"matchFields": fields}]
    narrowed_terms = condition if required is None else node_affinity.narrowed(required, condition)
    reason = f"annotation {names.AVOID_NODES}: {', '.join(avoided)}"
    if all(node_affinity.contradiction(term, {}) for term in narrowed_terms):
        ledger.warn_pod(REQUIRED_NODES, "set", f"{reason}: no other node meets the affinity")
    elif narrowed_terms != required:
        ledger.trace.append(Entry(REQUIRED_NODES, "", "pod", "set", reason))
    return narrowed_terms
