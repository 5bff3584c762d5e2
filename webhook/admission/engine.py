"""The engine: one pod, one policy set and the time in, one decision out.

No clock, no random number, no counter: the same three give the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook import names
from webhook.admission import stamp
from webhook.admission.arrival import keeps_placement
from webhook.admission.decision import Audited, Decision
from webhook.admission.excepted import of_ended, taking_part
from webhook.identity import identify
from webhook.placement import capacity_request, patch, pod, provenance
from webhook.placement.kueue import flavor_of
from webhook.placement.merge import Surroundings, merge
from webhook.policy import operating_system, subject
from webhook.policy.exceptions import NOTHING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.admission.arrival import Arrival, Cluster
    from webhook.identity import Identity
    from webhook.placement.capacity_request import Request
    from webhook.placement.merge import Merged
    from webhook.placement.pod import PodPlacement
    from webhook.policy.exceptions import SetAside
    from webhook.policy.policy_set import PolicySet

# Many policies may reject a pod at once, and each message quotes the pod.
_REASON_LIMIT = 1500
_OTHER_SYSTEM = "bound for another operating system than the policies' nodes"


def decide(arrival: Arrival, policies: PolicySet, cluster: Cluster) -> Decision:
    """The decision for one pod.

    Raises InvalidPod if the pod's placement fields have no pod's shape.
    """
    own = pod.read(arrival.pod)
    identity = identify(own.labels, own.annotations, arrival.namespace_labels)
    if identity is None:
        return Decision("not-a-run")
    reason = keeps_placement(arrival, own)
    if reason:
        return _left_alone(arrival, own, identity, policies, reason)
    matched, aside = taking_part(policies, subject_of(arrival, own, identity, policies), arrival)
    positions = operating_system.same_system(matched, policies.systems, own)
    if matched and not positions:
        return _left_alone(arrival, own, identity, policies, _OTHER_SYSTEM, aside)
    namespace = arrival.namespace
    enforced = tuple([at for at in positions if policies.policies[at].enforced_in(namespace)])
    flavor = flavor_of(own, pod.scheduling_gates(arrival.pod), arrival.namespace_labels)
    bundle = policies.bundle(enforced, flavor)
    try:
        requests = _requests(own, policies)
    except capacity_request.InvalidRequest as error:
        return Decision(
            "rejected",
            reason=_reason([str(error)]),
            warnings=list(of_ended(aside)),
            policies=bundle.policies,
            identity=identity,
            placement=own,
            set_aside=aside,
        )
    around = Surroundings(
        policies.classes,
        cluster.default_priority_class,
        cluster.default_toleration_seconds,
        flavor,
    )
    merged = merge(bundle, own, requests, around)
    audited = None
    if len(positions) > len(enforced):
        if_enforced = merge(policies.bundle(positions, flavor), own, requests, around)
        audited = _audited(arrival, own, policies, positions, merged, if_enforced)
    if merged.rejections:
        return Decision(
            "rejected",
            reason=_reason(merged.rejections),
            warnings=[*merged.warnings, *of_ended(aside)],
            policies=bundle.policies,
            identity=identity,
            placement=own,
            trace=merged.trace,
            audited=audited,
            set_aside=aside,
        )
    credit = provenance.credits_of(bundle.policies, bundle.wishes, merged.placement)
    final = _stamped(merged.placement, stamp.placed(policies.hash, credit, aside.by_name))
    return Decision(
        "unchanged" if merged.placement == own else "placed",
        patch=patch.operations(arrival.pod, own, final),
        warnings=[*merged.warnings, *of_ended(aside)],
        policies=bundle.policies,
        identity=identity,
        placement=final,
        trace=merged.trace,
        audited=audited,
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
    spec = arrival.pod["spec"]
    return subject.Subject(
        arrival.namespace,
        arrival.namespace_labels,
        own.labels,
        identity,
        subject.resources(spec) if policies.reads_resources else frozenset(),
        subject.volumes(spec) if policies.reads_volumes else frozenset(),
    )


def _requests(own: PodPlacement, policies: PolicySet) -> Sequence[Request]:
    text = own.annotations.get(names.CAPACITY)
    return capacity_request.parse(text, policies.classes) if text else ()


def _stamped(placement: PodPlacement, text: str) -> PodPlacement:
    return placement._replace(annotations={**placement.annotations, names.PLACEMENT: text})


def _left_alone(
    arrival: Arrival,
    own: PodPlacement,
    identity: Identity,
    policies: PolicySet,
    reason: str,
    aside: SetAside = NOTHING,
) -> Decision:
    final = _stamped(own, stamp.left_alone(policies.hash, reason, aside.by_name))
    return Decision(
        "left-alone",
        reason=reason,
        patch=patch.operations(arrival.pod, own, final),
        identity=identity,
        placement=final,
        set_aside=aside,
    )


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
    )
