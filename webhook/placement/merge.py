"""Merging: the bundle meets one pod.

Requirements judge the pod as it came; what overrides take away goes; defaults fill in where the pod
then says nothing; overrides change. Defaults look at what is left of the pod's own word, so that
merging the result again finds the same. Everything that forbids the merge is known before any field
of the result is made: a pod is refused with all the reasons, or placed whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from webhook.placement import (
    kueue,
    merge_capacity,
    merge_nodes,
    merge_plain,
    merge_tolerations,
    merge_verdict,
)
from webhook.placement.ledger import Ledger
from webhook.placement.node_affinity import TooManyTerms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.capacity_request import Request
    from webhook.placement.kueue import Flavor
    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement
    from webhook.placement.trace import Entry


@dataclass(frozen=True, slots=True)
class MergeContext:
    """What a merge must know beside bundle and pod.

    classes:                     every capacity class of the set, by name
    default_priority_class:      the cluster's globalDefault PriorityClass; empty if there is none
    default_toleration_seconds:  what the DefaultTolerationSeconds admission plugin gives, by taint
    flavor:                      what Kueue put into the pod, if it has admitted it
    node:                        the only node that the pod can be on, if there is one and it is
                                 known
    kept:                        the pod keeps its placement but for requirements: what its
                                 annotation asks of classes is held against requirements on the same
                                 class, and not given
    """

    classes: Mapping[str, CapacityClass] = field(default_factory=dict)
    default_priority_class: str = ""
    default_toleration_seconds: Mapping[str, int] = field(default_factory=dict)
    flavor: Flavor | None = None
    node: Node | None = None
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Merged:
    """The outcome. With `rejections` the pod is refused and `placement` is the pod's own."""

    placement: PodPlacement
    trace: Sequence[Entry]
    warnings: Sequence[str]
    rejections: Sequence[str]


def merge(
    bundle: Bundle, pod: PodPlacement, requests: Sequence[Request], context: MergeContext
) -> Merged:
    """The pod's placement under the bundle, and what its author asks of capacity classes."""
    ledger = Ledger(list(bundle.trace), list(bundle.warnings), list(bundle.contradictions))
    plain = merge_plain.merge(bundle, pod, context.default_priority_class, ledger)
    try:
        result = _with_nodes(plain, bundle, pod, requests, context, ledger)
    except TooManyTerms as error:
        ledger.rejections.append(f"the pod beside policies {', '.join(bundle.policies)}: {error}")
    trace = ledger.trace
    if ledger.rejections:
        result = pod
        # What refuses the pod is not set as well.
        refused = {each[:3] for each in trace if each.outcome == "rejected"}
        trace = [e for e in trace if e.outcome == "rejected" or e[:3] not in refused]
    return Merged(result, trace, ledger.warnings, ledger.rejections)


def _with_nodes(
    plain: PodPlacement,
    bundle: Bundle,
    pod: PodPlacement,
    requests: Sequence[Request],
    context: MergeContext,
    ledger: Ledger,
) -> PodPlacement:
    """`plain` with the fields that choose a node."""
    asked = merge_capacity.settle(bundle, requests, context.classes, ledger)
    if context.kept:
        # Before anything is judged: what is not given must excuse nothing.
        asked, requests = [], ()
    others = len(ledger.rejections)
    merge_verdict.judge(bundle, pod, asked, ledger)
    if context.kept or pod.node_name:
        merge_verdict.judge_node(bundle, pod, context.node, ledger)
    if pod.node_name:
        ledger.skip_node_fields(bundle, "nodeName is set: the pod is bound already")
        return plain
    nodes = merge_nodes.choose(bundle, pod, asked, [r.class_name for r in requests], ledger)
    if context.flavor is not None:
        if len(ledger.rejections) > others:
            look = "look at its flavor or admission checks"
            ledger.rejections.append(f"{context.flavor.by} has admitted the pod: {look}")
        else:
            for path, what in kueue.overruled(context.flavor, bundle, nodes.selector):
                ledger.warn_pod(path, "removed", what)
    return plain._replace(
        node_selector=nodes.selector,
        required=nodes.required,
        tolerations=merge_tolerations.merge(bundle, pod, nodes.capacity, context, ledger),
        lists=merge_plain.lists(bundle, pod, nodes.capacity, ledger),
        topology_spread=merge_plain.spread(bundle, pod, ledger),
    )
