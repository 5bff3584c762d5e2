"""The engine: one pod, one policy set and the time in, one decision out.

No clock, no random number, no counter: the same three give the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook import names
from webhook.admission import stamp
from webhook.admission.arrival import OF_DAEMON_SET, keeps_placement
from webhook.admission.decision import Audited, Decision
from webhook.admission.evaluation import NO_POLICIES, Evaluation, Part, ReceivedPod
from webhook.admission.excepted import of_ended, taking_part
from webhook.identity import identify
from webhook.placement import capacity_request, node_affinity, patch, pod, pod_size, provenance
from webhook.placement.kueue import flavor_of
from webhook.placement.merge import MergeContext, merge
from webhook.policy import operating_system, subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.admission.arrival import Arrival, Cluster
    from webhook.admission.decision import Result
    from webhook.identity import Identity
    from webhook.placement.capacity_request import Request
    from webhook.placement.merge import Merged
    from webhook.placement.nodes import Node
    from webhook.placement.patch import Operation
    from webhook.placement.pod import PodPlacement
    from webhook.policy.policy_set import PolicySet

# Many policies may reject a pod at once, and each message quotes the pod.
_REASON_LIMIT = 1500
_OTHER_SYSTEM = "bound for another operating system than the policies' nodes"


def decide(arrival: Arrival, policies: PolicySet, cluster: Cluster) -> Decision:
    """The decision for one pod.

    Raises InvalidPod if the pod's placement fields have no pod's shape.
    """
    seen = see(arrival)
    if seen is None:
        return Decision("not-a-run")
    return decide_seen(seen, policies, cluster)


def decide_seen(seen: ReceivedPod, policies: PolicySet, cluster: Cluster) -> Decision:
    """The decision for a pod of a run, which was read already. Raises as `decide` does."""
    evaluation = weigh(seen, part_in(seen, policies), policies, cluster)
    return _written(seen, evaluation, policies)


def see(arrival: Arrival) -> ReceivedPod | None:
    """What is read of the pod; None if it is of no run. Raises as `decide` does."""
    own = pod.read(arrival.pod)
    identity = identify(own.labels, own.annotations, arrival.namespace_labels)
    if identity is None:
        return None
    keeps = keeps_placement(arrival, own)
    # Pods of DaemonSets that only a namespace marks are mostly agents of the cluster: nobody said
    # of them that they are a run's.
    held = not keeps or (keeps == OF_DAEMON_SET and identity.marked_itself)
    return ReceivedPod(arrival, own, identity, keeps, held)


def part_in(seen: ReceivedPod, policies: PolicySet) -> Part:
    """Who takes part in the pod; if it keeps its placement, who requires something, or nobody."""
    if not seen.held:
        return NO_POLICIES
    subject = subject_of(seen.arrival, seen.own, seen.identity, policies)
    part = Part(*taking_part(policies, subject, seen.arrival))
    if not seen.keeps:
        return part
    return part._replace(
        positions=tuple([at for at in part.positions if policies.policies[at].requires])
    )


def weigh(
    seen: ReceivedPod, part: Part, policies: PolicySet, cluster: Cluster, *, audit: bool = True
) -> Evaluation:
    """What becomes of the pod, given who takes part in it, as `part_in` tells.

    Without `audit` it is left open what policies under Audit would change. Raises as `decide` does.
    """
    own, arrival = seen.own, seen.arrival
    matched, aside = part
    if seen.keeps and not matched:
        return Evaluation("left-alone", own, seen.keeps, aside=aside)
    if excess := pod_size.excess(own):
        return Evaluation("rejected", own, _reason([excess]), aside=aside)
    # Of these policies only the requirements apply: no author can write those away.
    requiring = matched
    if not seen.keeps:
        requiring = operating_system.other_system(matched, policies.systems, own)
    positions = tuple(
        [at for at in matched if at not in requiring or policies.policies[at].requires]
    )
    if matched and not positions:
        return Evaluation("left-alone", own, _OTHER_SYSTEM, aside=aside)
    namespace = arrival.namespace
    enforced = tuple([at for at in positions if policies.policies[at].enforced_in(namespace)])
    flavor = flavor_of(own, pod.scheduling_gates(arrival.pod), arrival.namespace_labels)
    bundle = policies.bundle(enforced, flavor, requiring)
    try:
        requests = _requests(own, policies)
    except capacity_request.InvalidRequest as error:
        return Evaluation("rejected", own, _reason([str(error)]), bundle, aside=aside)
    context = MergeContext(
        policies.classes,
        cluster.default_priority_class,
        cluster.default_toleration_seconds,
        flavor,
        node=_node(own, cluster),
        kept=bool(seen.keeps),
    )
    merged = merge(bundle, own, requests, context)
    audited = None
    if audit and len(positions) > len(enforced):
        every = policies.bundle(positions, flavor, requiring)
        if_enforced = merge(every, own, requests, context)
        audited = _audited(arrival, own, policies, positions, merged, if_enforced)
    rejections = merged.rejections
    if not rejections and (excess := pod_size.excess(merged.placement)):
        rejections = [f"as policies {', '.join(bundle.policies)} place it, {excess}"]
    if rejections:
        reason = _reason(rejections)
        return Evaluation("rejected", own, reason, bundle, merged, audited, aside)
    result: Result = "unchanged" if merged.placement == own else "placed"
    return Evaluation(result, merged.placement, "", bundle, merged, audited, aside)


def merged_if_held(seen: ReceivedPod, policies: PolicySet, cluster: Cluster) -> Merged | None:
    """What requirements would make of a DaemonSet's pod that is left alone; None for others."""
    if seen.held or seen.keeps != OF_DAEMON_SET:
        return None
    held = seen._replace(held=True)
    return weigh(held, part_in(held, policies), policies, cluster, audit=False).merged


def rejections_if_held(seen: ReceivedPod, policies: PolicySet, cluster: Cluster) -> Sequence[str]:
    """Why requirements would reject a DaemonSet's pod that is left alone; nothing for others."""
    merged = merged_if_held(seen, policies, cluster)
    return merged.rejections if merged else ()


def _node(own: PodPlacement, cluster: Cluster) -> Node | None:
    """The only node that the pod can be on, by nodeName or as a DaemonSet names it, if known."""
    name = own.node_name or node_affinity.only_node(own.required)
    return cluster.node(name) if cluster.node is not None and name else None


def _written(seen: ReceivedPod, evaluation: Evaluation, policies: PolicySet) -> Decision:
    """What becomes of the pod as a patch, with the stamp that says why."""
    placement, bundle, aside = evaluation.placement, evaluation.bundle, evaluation.aside
    warnings: Sequence[str] = ()
    if bundle is not None:
        said = evaluation.merged.warnings if evaluation.merged else ()
        warnings = [*said, *of_ended(aside)]
    operations: Sequence[Operation] = ()
    if evaluation.allowed:
        if bundle is None:
            text = stamp.left_alone(policies.hash, evaluation.reason, aside.by_name)
        else:
            credit = provenance.credits_of(bundle.policies, bundle.settings, placement)
            text = stamp.placed(policies.hash, credit, aside.by_name)
        placement = placement._replace(annotations={**placement.annotations, names.PLACEMENT: text})
        operations = patch.operations(seen.arrival.pod, seen.own, placement)
    return Decision(
        evaluation.result,
        reason=evaluation.reason,
        patch=operations,
        warnings=warnings,
        policies=evaluation.policies,
        identity=seen.identity,
        placement=placement,
        trace=evaluation.trace,
        audited=evaluation.audited,
        set_aside=aside,
    )


def _reason(rejections: Sequence[str]) -> str:
    """Every rejection in one message, as far as it stays readable in a terminal."""
    text = "; ".join(dict.fromkeys(rejections))
    cut = text if len(text) <= _REASON_LIMIT else f"{text[:_REASON_LIMIT]}…"
    return f"fairlead: {cut}"


def subject_of(
    arrival: Arrival, own: PodPlacement, identity: Identity, policies: PolicySet
) -> subject.Subject:
    """What the policies' conditions are asked about, as far as any of them asks."""
    spec, space = arrival.pod["spec"], arrival.namespace_labels
    return subject.subject_of(arrival.namespace, space, own.labels, identity, spec, policies.tested)


def _requests(own: PodPlacement, policies: PolicySet) -> Sequence[Request]:
    text = own.annotations.get(names.CAPACITY)
    return capacity_request.parse(text, policies.classes) if text else ()


def _audited(
    arrival: Arrival,
    own: PodPlacement,
    policies: PolicySet,
    positions: tuple[int, ...],
    enforced: Merged,
    if_enforced: Merged,
) -> Audited:
    audited = tuple(
        policies.policies[at].name
        for at in positions
        if not policies.policies[at].enforced_in(arrival.namespace)
    )
    return Audited(
        audited,
        patch=patch.operations(arrival.pod, own, if_enforced.placement),
        rejections=if_enforced.rejections,
        differs=(if_enforced.placement, if_enforced.rejections)
        != (enforced.placement, enforced.rejections),
        trace=if_enforced.trace,
    )
