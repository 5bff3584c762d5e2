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
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook import names
from webhook.dns_names import is_subdomain
from webhook.placement import kueue, merge_nodes, merge_plain, merge_verdict, node_affinity
from webhook.placement.capacity import names_taint
from webhook.placement.node_affinity import TooManyTerms
from webhook.placement.pod import REQUIRED_NODES
from webhook.placement.tolerations import NO_EXECUTE, covered, covers, joined, normal, with_seconds
from webhook.placement.trace import Entry, Ledger, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.capacity_request import Request
    from webhook.placement.kueue import Flavor
    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement
    from webhook.placement.settings import CapacitySetting, TolerationSetting
    from webhook.placement.shapes import Requirement, Term, Toleration

# The most requirements that are added because of nodes to avoid.
_MOST_ADDED: Final = 1000


class MergeContext(NamedTuple):
    """What a merge needs in addition to bundle and pod.

    classes:                     every capacity class of the set, by name
    default_priority_class:      the cluster's globalDefault PriorityClass; empty if there is none
    default_toleration_seconds:  what the DefaultTolerationSeconds admission plugin gives, by taint
    flavor:                      what Kueue put into the pod, if it has admitted it
    node:                        the only node that the pod can be on, if there is one and it is
                                 known
    kept:                        the pod keeps its placement, and only requirements apply: its
                                 capacity annotation is checked against requirements on the
                                 same class, and has no other effect
    """

    classes: Mapping[str, CapacityClass] = MappingProxyType({})
    default_priority_class: str = ""
    default_toleration_seconds: Mapping[str, int] = MappingProxyType({})
    flavor: Flavor | None = None
    node: Node | None = None
    kept: bool = False


class Merged(NamedTuple):
    """The result. With `rejections` the pod is rejected and `placement` is the pod's own."""

    placement: PodPlacement
    trace: Sequence[Entry]
    warnings: Sequence[str]
    rejections: Sequence[str]


def merge(
    bundle: Bundle, pod: PodPlacement, requests: Sequence[Request], context: MergeContext
) -> Merged:
    """Merge the bundle, and the author's requests for capacity classes, into the pod."""
    ledger = Ledger(list(bundle.trace), list(bundle.warnings), list(bundle.contradictions))
    plain = merge_plain.merge(bundle, pod, context.default_priority_class, ledger)
    try:
        result = _with_nodes(plain, bundle, pod, requests, context, ledger)
    except TooManyTerms as error:
        what = f"the pod together with policies {', '.join(bundle.policies)}"
        ledger.rejections.append(f"{what}: {error}")
    trace = ledger.trace
    if ledger.rejections:
        result = pod
        # A setting that rejects the pod is not also traced as set.
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
    asked = merge_nodes.settle(bundle, requests, context.classes, ledger)
    if context.kept:
        # Before the verdict: a request without effect must not excuse anything.
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
            look = "check its flavor and its admission checks"
            ledger.rejections.append(f"{context.flavor.by} has admitted the pod; {look}")
        else:
            for path, what in kueue.overruled(context.flavor, bundle, nodes.selector):
                ledger.warn_pod(path, "removed", what)
    return plain._replace(
        node_selector=nodes.selector,
        required=_avoiding(nodes.required, pod, ledger),
        tolerations=_merge_tolerations(bundle, pod, nodes.capacity, context, ledger),
        lists=merge_plain.lists(bundle, pod, nodes.capacity, ledger),
        topology_spread=merge_plain.spread(bundle, pod, ledger),
    )


def _avoiding(required: list[Term] | None, pod: PodPlacement, ledger: Ledger) -> list[Term] | None:
    """Return the terms without the nodes that the pod's annotation names.

    Any author may write it, as they may choose nodes for a pod; the controller of Runs does.
    """

    def warn(why: str) -> None:
        ledger.warn_pod(REQUIRED_NODES, "skipped", f"annotation {names.AVOID_NODES}: {why}")

    named = node_affinity.avoided_nodes(pod.annotations)
    valid = [each for each in named if is_subdomain(each)]
    avoided = valid[: node_affinity.MOST_AVOIDED]
    if wrong := [each for each in named if each not in valid]:
        warn(f"{quoted(wrong[0])} is not the name of a node, and is left out")
    if valid != avoided:
        warn(f"{len(named)} nodes are too many; the first {len(avoided)} are avoided")
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
    found = condition if required is None else node_affinity.narrowed(required, condition)
    reason = f"annotation {names.AVOID_NODES}: {', '.join(avoided)}"
    if all(node_affinity.contradiction(term, {}) for term in found):
        ledger.warn_pod(REQUIRED_NODES, "set", f"{reason}: no other node meets the affinity")
    elif found != required:
        ledger.trace.append(Entry(REQUIRED_NODES, "", "pod", "set", reason))
    return found


def _merge_tolerations(
    bundle: Bundle,
    pod: PodPlacement,
    capacity: Sequence[CapacitySetting],
    context: MergeContext,
    ledger: Ledger,
) -> list[Toleration]:
    """Return the pod's tolerations under the bundle and the capacity modes that apply."""
    own = _without_prevented(bundle, pod.tolerations, capacity, context, ledger)
    result = with_seconds(own, bundle.specific) if bundle.specific else own
    for setting in bundle.tolerations:
        result = _with_setting(setting, result, own, context.default_toleration_seconds, ledger)
    for settled in capacity:
        if settled.mode.tolerates and settled.capacity.taints:
            result = joined(result, settled.capacity.tolerations)
    return pod.tolerations if result == pod.tolerations else result


def _filled_in(toleration: Toleration, seconds: Mapping[str, int]) -> bool:
    """Return whether it is what the DefaultTolerationSeconds admission plugin puts into every
    pod."""
    key = toleration.get("key") or ""
    return (
        toleration.get("operator") == "Exists"
        and toleration.get("effect") == NO_EXECUTE
        and key in seconds
        and toleration.get("tolerationSeconds") == seconds[key]
    )


def _without_prevented(
    bundle: Bundle,
    tolerations: list[Toleration],
    capacity: Sequence[CapacitySetting],
    context: MergeContext,
    ledger: Ledger,
) -> list[Toleration]:
    """Remove tolerations for the taints of a prevented class, unless another class has them."""
    wanted = [setting.toleration for setting in bundle.tolerations]
    result = tolerations
    for settled in capacity:
        if not settled.mode.excludes or not settled.capacity.taints:
            continue
        of_others = [
            taint
            for other in context.classes.values()
            if other.name != settled.capacity.name
            for taint in other.taints
        ]
        taints = settled.capacity.taints
        goes = [
            names_taint(t, taints) and not names_taint(t, of_others) and t not in wanted
            for t in result
        ]
        gone = {str(t.get("key")) for t, leaves in zip(result, goes, strict=True) if leaves}
        for key in sorted(gone):
            what = f"{settled.capacity.name}={settled.mode}"
            ledger.warn_pod(f"tolerations[{key}]", "removed", what)
        if gone:
            result = [t for t, leaves in zip(result, goes, strict=True) if not leaves]
    return result


def _with_setting(
    setting: TolerationSetting,
    result: list[Toleration],
    own: Sequence[Toleration],
    seconds: Mapping[str, int],
    ledger: Ledger,
) -> list[Toleration]:
    """Return `result` with one setting merged in; `own` are the pod's own tolerations."""
    toleration = setting.toleration
    if setting.is_default:
        if setting.if_null and not all(_filled_in(t, seconds) for t in own):
            ledger.note(setting, "kept", "the pod has tolerations of its own")
            return result
        # If the toleration is already present, a second default is the author's own. Replacing it
        # would change one more with every call.
        for at, other in enumerate(result if toleration not in result else ()):
            same_key = other.get("key") == toleration.get("key")
            if same_key and _filled_in(other, seconds) and covers(toleration, other):
                ledger.note(setting, "set", "instead of the API server's default")
                return [*result[:at], toleration, *result[at + 1 :]]
    if toleration in own:
        ledger.note(setting, "kept", "the pod already has this value")
    elif not covered(toleration, own):
        ledger.note(setting, "set", "added")
    elif not setting.is_default and normal(toleration).effect == NO_EXECUTE:
        ledger.note(setting, "set", "put before what tolerates the same taint")
    else:
        ledger.note(setting, "kept", "the pod tolerates it already")
    return result if covered(toleration, result) else [*result, toleration]
