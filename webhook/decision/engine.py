"""The engine: a pure function from a pod, a policy set and the time to a decision.

It reads no clock, random number or counter: the same inputs give the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook import names
from webhook.decision import audit, stamp
from webhook.decision.arrival import OF_DAEMON_SET, keeps_placement, spares_daemon_sets
from webhook.decision.decision import Audited, Decision, ReceivedPod
from webhook.identity import identify
from webhook.placement import capacity_request, node_affinity, patch, pod, provenance
from webhook.placement.capacity_setting import CapacitySetting
from webhook.placement.fields import field_of
from webhook.placement.kueue import flavor_of
from webhook.placement.merge import MergeContext, merge
from webhook.placement.owner_selector import STATEFUL_SET
from webhook.placement.plugin_tolerations import Facts, default_tolerations_of
from webhook.placement.settings import AllowedSetting, MemberSetting
from webhook.placement.split import needs_replicas
from webhook.placement.trace import warning
from webhook.policy import operating_system, subject
from webhook.policy.exceptions import NOTHING
from webhook.shortening import cut
from webhook.sources import SHIPPED
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.decision.arrival import Arrival, Cluster
    from webhook.decision.decision import Effect, Result
    from webhook.decision.notice import Owner
    from webhook.identity import Identity
    from webhook.placement.bundle import Bundle
    from webhook.placement.capacity_request import Request
    from webhook.placement.kueue import Flavor
    from webhook.placement.merge import Merged
    from webhook.placement.nodes import Node
    from webhook.placement.patch import Operation
    from webhook.placement.pod import PodPlacement
    from webhook.policy.exceptions import SetAside
    from webhook.policy.policy_set import PolicySet
    from webhook.sources.table import SourceTable

# Many policies may reject a pod at once, and each message quotes the pod.
_REASON_LIMIT = 1500
_OTHER_SYSTEM = "bound for another operating system than the policies' nodes"


def decide(arrival: Arrival, policies: PolicySet, cluster: Cluster) -> Decision:
    """Return the decision for one pod.

    Raises InvalidPod if the pod's placement fields have invalid types.
    """
    received = receive_pod(arrival, policies.sources)
    if received is None:
        return Decision("not-a-run")
    return decide_received(received, policies, cluster)


def decide_received(received: ReceivedPod, policies: PolicySet, cluster: Cluster) -> Decision:
    """Return the decision for a pod of a run that is already parsed. Raises as `decide` does."""
    return _build_decision(received, _evaluate(received, policies, cluster), policies)


def receive_pod(arrival: Arrival, sources: SourceTable = SHIPPED) -> ReceivedPod | None:
    """Parse the pod; return None if it belongs to no run. Raises as `decide` does."""
    placement = pod.parse_pod(arrival.pod)
    identity = identify(
        placement.labels, placement.annotations, arrival.namespace_labels, sources, led=arrival.led
    )
    if identity is None:
        return None
    keeps = keeps_placement(arrival, placement)
    held = not keeps or (
        keeps == OF_DAEMON_SET
        and (identity.marked_itself or not spares_daemon_sets(arrival.namespace_labels))
    )
    return ReceivedPod(arrival, placement, identity, keeps, held)


class Evaluation(NamedTuple):
    """The result for a pod of a run.

    result:     as in Decision, like reason, audited and aside
    placement:  the resulting placement, without Fairlead's own annotation
    bundle:     of the enforced policies that apply; None if the pod is left alone
    merged:     None if the bundle was not applied to the pod
    rejections: why the pod is rejected; empty if it is not
    """

    result: Result
    placement: PodPlacement
    reason: str = ""
    bundle: Bundle | None = None
    merged: Merged | None = None
    audited: Audited | None = None
    aside: SetAside = NOTHING
    rejections: Sequence[str] = ()


def _evaluate(received: ReceivedPod, policies: PolicySet, cluster: Cluster) -> Evaluation:
    """Evaluate the policies that match the pod, enforced and under Audit. Raises as `decide`
    does."""
    enforced, tried, aside = _matched(received, policies)
    evaluation = _enforce(received, policies, cluster, enforced, aside)
    if not tried:
        return evaluation

    def enforce(more: tuple[int, ...]) -> Evaluation:
        return _enforce(received, policies, cluster, tuple(sorted((*enforced, *more))), aside)

    every = enforce(tried)
    together = audit.effect(evaluation, every)
    alone: dict[str, Effect] = {}
    for number, at in enumerate(tried):
        name = policies.policies[at].name
        if number >= audit.MOST_ALONE:
            alone[name] = audit.NOT_JUDGED
            continue
        policy_evaluation = every if len(tried) == 1 else enforce((at,))
        effect = audit.effect(evaluation, policy_evaluation)
        # Like an enforced one, a policy for another operating system does not apply.
        applies = policy_evaluation.bundle is not None and name in policy_evaluation.bundle.policies
        if applies or effect.outcome != "same":
            alone[name] = effect
    if not alone:
        return evaluation
    operations: Sequence[Operation] = ()
    if not every.rejections:
        operations = patch.operations(received.arrival.pod, received.original, every.placement)
    return evaluation._replace(audited=Audited(alone, together, operations))


def _matched(
    received: ReceivedPod, policies: PolicySet
) -> tuple[tuple[int, ...], tuple[int, ...], SetAside]:
    """Return the positions of the policies that apply: of the enforced ones, and of those under
    Audit; and what exceptions set aside."""
    matched, aside = select_policies(received, policies)
    return (*policies.divide(matched, received.arrival.namespace), aside)


def _enforce(
    received: ReceivedPod,
    policies: PolicySet,
    cluster: Cluster,
    matched: tuple[int, ...],
    aside: SetAside,
) -> Evaluation:
    """Apply the policies at these positions, all of which match, and no others.

    A pod is admitted or rejected as without teams' policies: if it is rejected with them, they do
    not apply.
    """
    evaluation = _apply(received, policies, cluster, matched, aside)
    teams = [at for at in matched if policies.policies[at].team] if evaluation.rejections else ()
    if not teams:
        return evaluation
    others = tuple([at for at in matched if at not in teams])
    without = _apply(received, policies, cluster, others, aside)
    if without.merged is None or without.rejections:
        return without
    what = "left out: with it, the pod would be rejected"
    warnings = [warning(f"policy {policies.policies[at].name}: {what}") for at in teams]
    merged = without.merged._replace(warnings=[*without.merged.warnings, *warnings])
    return without._replace(merged=merged)


def _apply(
    received: ReceivedPod,
    policies: PolicySet,
    cluster: Cluster,
    matched: tuple[int, ...],
    aside: SetAside,
) -> Evaluation:
    """Apply the policies at these positions."""
    placement, arrival = received.original, received.arrival
    if received.keeps and not matched:
        return Evaluation("left-alone", placement, received.keeps, aside=aside)
    if excess := pod.excess(placement):
        return _rejected([excess], placement, aside)
    # For another operating system only requirements apply: no author can opt out of those.
    requiring = matched
    if not received.keeps:
        requiring = operating_system.other_system(matched, policies.systems, placement)
    positions = matched
    if requiring:
        positions = tuple(
            [at for at in matched if at not in requiring or policies.policies[at].requires]
        )
    if matched and not positions:
        return Evaluation("left-alone", placement, _OTHER_SYSTEM, aside=aside)
    flavor = flavor_of(placement, pod.scheduling_gates(arrival.pod), arrival.namespace_labels)
    bundle = policies.bundle(positions, flavor, requiring, received.replica)
    try:
        requests = _requests(placement, policies)
    except capacity_request.InvalidRequest as error:
        return _rejected([str(error)], placement, aside, bundle)
    context = MergeContext(
        policies.classes,
        cluster.default_priority_class,
        flavor,
        node=_node(placement, cluster),
        kept=bool(received.keeps),
        facts=facts_of(received, cluster, flavor),
        selector=arrival.selector,
    )
    merged = merge(bundle, placement, requests, context)
    rejections = merged.rejections
    if not rejections and (excess := pod.excess(merged.placement)):
        rejections = [f"after policies {', '.join(bundle.policies)} were applied: {excess}"]
    if rejections:
        return _rejected(rejections, placement, aside, bundle, merged)
    result: Result = "unchanged" if merged.placement == placement else "placed"
    return Evaluation(result, merged.placement, "", bundle, merged, aside=aside)


def _rejected(
    rejections: Sequence[str],
    placement: PodPlacement,
    aside: SetAside,
    bundle: Bundle | None = None,
    merged: Merged | None = None,
) -> Evaluation:
    reason = _reason(rejections)
    return Evaluation("rejected", placement, reason, bundle, merged, None, aside, rejections)


def facts_of(received: ReceivedPod, cluster: Cluster, flavor: Flavor | None) -> Facts:
    """Return what the tolerations that others than its author add to the pod depend on."""
    arrival = received.arrival
    return Facts(
        arrival.pod["spec"],
        cluster.default_toleration_seconds,
        cluster.runtime_classes.get(received.original.runtime_class_name),
        default_tolerations_of(arrival.namespace_labels),
        received.keeps == OF_DAEMON_SET,
        cluster.flavors if flavor is not None and flavor.kept else (),
    )


def merged_if_held(received: ReceivedPod, policies: PolicySet, cluster: Cluster) -> Merged | None:
    """Apply the requirements to a DaemonSet's pod, also if it is left alone; None for others."""
    if received.keeps != OF_DAEMON_SET:
        return None
    received = received._replace(held=True)
    enforced, _, aside = _matched(received, policies)
    return _enforce(received, policies, cluster, enforced, aside).merged


def _node(placement: PodPlacement, cluster: Cluster) -> Node | None:
    """Return the only node that the pod can run on (nodeName or affinity), if it is known."""
    name = placement.node_name or node_affinity.only_node(placement.required)
    return cluster.node(name) if cluster.node is not None and name else None


def _build_decision(received: ReceivedPod, evaluation: Evaluation, policies: PolicySet) -> Decision:
    """Return the evaluation as a patch, with the stamp that explains it."""
    placement, bundle, aside = evaluation.placement, evaluation.bundle, evaluation.aside
    merged, applied = evaluation.merged, bundle.policies if bundle else ()
    warnings: Sequence[str] = ()
    if bundle is not None:
        warnings = merged.warnings if merged else ()
        if aside.ended:
            warnings = [*warnings, *_expired_exceptions(aside)]
        if policies.varied and None in (received.replica.position, received.replica.replicas):
            warnings = [*warnings, *_of_last_shares(received, applied, policies)]
    operations: Sequence[Operation] = ()
    left_out: Mapping[str, Sequence[str]] = {}
    if evaluation.result != "rejected":
        content: dict[str, object] = {"leftAlone": evaluation.reason}
        if bundle is not None:
            credit = provenance.credits_of(bundle.policies, bundle.settings, placement)
            content = {"policies": credit}
            if removers := [
                setting.policy for setting in bundle.of(AllowedSetting) if setting.remove
            ]:
                taken = merged.removed if merged else {}
                if removed := stamp.removed_texts(received.original, taken, removers):
                    content["removed"] = removed
            if fallbacks := _fallbacks(received, bundle, placement):
                content["fallback"] = fallbacks
            if left_out := _left_out(received, merged):
                content["leftOut"] = left_out
        if received.arrival.sampled:
            content["turns"] = sorted(
                policies.turns(received.replica.replicas, received.arrival.namespace)
            )
        set_hash = policies.hash_in(received.arrival.namespace)
        text = stamp.write_stamp(content, set_hash, aside.by_name)
        annotations = {**placement.annotations, names.PLACEMENT: text}
        if received.arrival.history is None and annotations.pop(names.HISTORY, None) is not None:
            what = "removed; only Fairlead's controller may write it"
            warnings = [*warnings, warning(f"annotation {names.HISTORY}: {what}")]
        placement = placement._replace(annotations=annotations)
        operations = patch.operations(received.arrival.pod, received.original, placement)
    return Decision(
        evaluation.result,
        reason=evaluation.reason,
        patch=operations,
        warnings=warnings,
        policies=applied,
        identity=received.identity,
        placement=placement,
        trace=merged.trace if merged else (),
        audited=evaluation.audited,
        set_aside=aside,
        left_out=left_out,
    )


def _left_out(received: ReceivedPod, merged: Merged | None) -> Mapping[str, Sequence[str]]:
    """Return by policy the labels that it does not set, as the owner's selector is not read."""
    selector = received.arrival.selector
    fields_by_policy: dict[str, list[str]] = {}
    if merged and selector and selector.unread:
        for entry in merged.trace:
            if entry.outcome == "skipped" and field_of(entry.field).selected:
                fields_by_policy.setdefault(entry.policy, []).append(entry.field)
    return fields_by_policy


def _fallbacks(
    received: ReceivedPod, bundle: Bundle, placement: PodPlacement
) -> Mapping[str, str | int | None]:
    """Return the classes that the pod requires until it falls back, each with the seconds that it
    waits before that (None if it does not), and those that it no longer requires, with the time
    until when."""
    fallback_by_class: dict[str, str | int | None] = {}
    for setting in bundle.of(CapacitySetting):
        rule, name, history = setting.fallback, setting.capacity.name, received.arrival.history
        if rule is None or not setting.holds_in(placement):
            continue
        end = history and rule.lasts_until(name, history)
        waits = None if rule.pending is None else round(rule.pending.total_seconds())
        fallback_by_class[name] = to_second(end) if end else waits
    return fallback_by_class


def _reason(rejections: Sequence[str]) -> str:
    """Return all rejections as one message, cut to a length that is readable in a terminal."""
    text = "; ".join(dict.fromkeys(rejections))
    return f"fairlead: {cut(text, _REASON_LIMIT)}"


def adds_labels(received: ReceivedPod, policies: PolicySet) -> bool:
    """Return whether a policy that matches, also under Audit, sets a label that the pod lacks."""
    if not policies.sets_labels:
        return False
    labels = received.original.labels
    positions, _ = select_policies(received, policies)
    return any(
        isinstance(setting, MemberSetting) and setting.row.selected and setting.key not in labels
        for at in positions
        for setting in policies.policies[at].settings
    )


def counts_ordinals(received: ReceivedPod, owner: Owner, policies: PolicySet) -> bool:
    """Return whether a split that matches counts a StatefulSet's pod by its ordinal."""
    identity, labels = received.identity, received.original.labels
    if not policies.varied or identity.replica_index is not None or not identity.marked_itself:
        return False
    if owner.kind != STATEFUL_SET or names.POD_INDEX not in labels:
        return False
    positions, _ = select_policies(received, policies)
    return any(policies.policies[at].shares for at in positions)


def subject_of(
    arrival: Arrival, placement: PodPlacement, identity: Identity, policies: PolicySet
) -> subject.Subject:
    """Return the inputs of the policies' conditions, limited to those that a policy tests."""
    spec, space = arrival.pod["spec"], arrival.namespace_labels
    return subject.subject_of(
        arrival.namespace,
        space,
        placement.labels,
        identity,
        spec,
        policies.tested,
        placement.annotations,
    )


def _requests(placement: PodPlacement, policies: PolicySet) -> Sequence[Request]:
    text = placement.annotations.get(names.CAPACITY)
    return capacity_request.parse(text, policies.classes) if text else ()


def select_policies(received: ReceivedPod, policies: PolicySet) -> tuple[tuple[int, ...], SetAside]:
    """Return the positions of the policies that apply, and what exceptions set aside.

    For a pod that keeps its placement, these are only policies with requirements.
    """
    if not received.held:
        return (), NOTHING
    arrival, listed = received.arrival, policies.policies
    subject = subject_of(arrival, received.original, received.identity, policies)
    matched, aside = policies.matching(subject), NOTHING
    if policies.exceptions:
        called = [listed[at].name for at in matched]
        aside = policies.exceptions.set_aside(called, subject, arrival.now)
        set_aside = aside.policies
        matched = tuple([at for at in matched if listed[at].name not in set_aside])
    if received.keeps:
        matched = tuple([at for at in matched if listed[at].requires])
    return matched, aside


def _of_last_shares(
    received: ReceivedPod, applied: Sequence[str], policies: PolicySet
) -> Iterator[str]:
    """Yield a warning for each policy whose split gives the pod its last share for want of its
    index, or of the number of replicas of the role."""
    replica, selector = received.replica, received.arrival.selector
    for at in sorted(policies.varied):
        policy = policies.policies[at]
        last = policy.share(replica) == len(policy.shares) - 1
        if policy.name not in applied or not policy.shares or not last:
            continue
        why = ""
        if replica.position is None:
            why = "its system gives the pod no index"
            if selector and selector.unread and received.original.labels.get(names.POD_INDEX):
                why = f"{selector.owner} is not read"
        elif replica.replicas is None and needs_replicas(policy.shares):
            why = f"the pod has no label {names.REPLICAS}"
        if why:
            yield warning(f"policy {policy.name}: the pod gets the last share: {why}")


def _expired_exceptions(aside: SetAside) -> Iterator[str]:
    """Yield a warning for each expired exception that would have set a policy aside."""
    for exception, policies in aside.ended:
        which = "policy" if len(policies) == 1 else "policies"
        yield warning(
            f"exception {exception.name} ended at {exception.end}: it would have set aside "
            f"{which} {', '.join(policies)}"
        )
