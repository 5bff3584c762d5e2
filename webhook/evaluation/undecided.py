"""What decides about a pod and is not known, in one wording for commands and policy tests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.decision.engine import decide
from webhook.evaluation.plugins import with_more_tolerations
from webhook.evaluation.surveys import Unknown
from webhook.placement.plugin_tolerations import RESTRICTION, AnnotatedLabels
from webhook.placement.pod import parse_pod
from webhook.placement.shapes import as_object
from webhook.policy.subject import ADDED_VOLUME, AUTOMOUNT
from webhook.workloads.stored_pod import is_stored

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.decision.arrival import Arrival, Cluster
    from webhook.evaluation.evaluation import Evaluation
    from webhook.evaluation.replicas import Replicas


def undecided(evaluation: Evaluation) -> Iterator[Unknown]:
    """Yield what decides whether the pod is admitted and with which warnings, and is not known."""
    world, arrival = evaluation.world, evaluation.arrival
    if unread := evaluation.priority.unread:
        yield Unknown(
            f"the API server compares the pod's priority and preemptionPolicy with {unread}, which "
            "is not read",
            unread,
            f"{unread} is not read",
        )
    if evaluation.decision.result in ("not-a-run", "not-sent"):
        return
    if name := evaluation.unread_class:
        what = f"RuntimeClass {name}"
        yield Unknown(
            f"the API server first adds the nodeSelector and tolerations of {what}, which is not "
            "read",
            what,
            f"{what} is not read",
        )
        return
    if owner := evaluation.unread_selector:
        yield Unknown(
            f"a label of a policy may take the pod out of the selector of {owner}, which is not "
            "read",
            owner,
            f"the selector of {owner} is not read",
        )
    if "volumes" in world.policies.tested and _token_decides(evaluation):
        yield Unknown(
            f"the API server adds a volume of type {ADDED_VOLUME}, by which policies match, unless "
            "the pod's ServiceAccount says automountServiceAccountToken: false, and it is not read",
            short=f"policies match by the volume of type {ADDED_VOLUME} that the API server may "
            "add",
            remedy="write automountServiceAccountToken into the pod",
        )
    names_of_plugins = [
        name
        for name, tolerations in evaluation.possible_tolerations.items()
        if name not in world.plugins.running
        and _differs(
            evaluation, arrival._replace(pod=with_more_tolerations(arrival.pod, tolerations))
        )
    ]
    if names_of_plugins:
        yield Unknown(
            f"the API server may run the plugin {', '.join(names_of_plugins)}, whose tolerations "
            "policies judge"
        )
    spec = arrival.pod["spec"]
    if not spec.get("tolerations"):
        return
    if evaluation.namespace_unread and world.plugins.running.get(RESTRICTION, True):
        space = AnnotatedLabels.giving(arrival.namespace_labels, spec["tolerations"])
        if _differs(evaluation, arrival._replace(namespace_labels=space)):
            yield Unknown(
                f"policies judge the pod's tolerations, and those of an annotation of namespace "
                f"{arrival.namespace}, which is not read, are not its author's",
                f"Namespace {arrival.namespace}",
            )
    if world.plugins.flavors is None:
        flavor = {
            "nodeLabels": as_object(spec.get("nodeSelector")),
            "tolerations": spec["tolerations"],
        }
        cluster = world.known_cluster
        if _differs(evaluation, arrival, replace(cluster, flavors=[{"spec": flavor}])):
            yield Unknown(
                "policies judge the pod's tolerations, and those of a ResourceFlavor of Kueue, "
                "which is not read, are not its author's",
                "ResourceFlavors",
            )


def _token_decides(evaluation: Evaluation) -> bool:
    """Return whether other policies match the pod with the volume of a token, which it may get."""
    arrival, decision, spec = (
        evaluation.arrival,
        evaluation.decision,
        evaluation.arrival.pod["spec"],
    )
    if is_stored(arrival.pod) or spec.get(AUTOMOUNT) is not None:
        return False
    pod = {**arrival.pod, "spec": {**spec, AUTOMOUNT: True}}
    other = decide(
        arrival._replace(pod=pod), evaluation.world.policies, evaluation.world.known_cluster
    )
    return (other.policies, other.set_aside, other.audited) != (
        decision.policies,
        decision.set_aside,
        decision.audited,
    )


def undecided_selector(replicas: Replicas) -> Unknown | None:
    """Return what is not known of the selector by which pods are counted that get a further label;
    None if no label is in doubt."""
    template, placement = replicas.template, replicas.evaluation.placement
    pod_labels = parse_pod(replicas.arrival.pod).labels
    labels = placement.labels if placement else pod_labels
    added = [(key, str(value)) for key, value in labels.items() if key not in pod_labels]
    kind, spec = template.source.kind, as_object(template.source.value.get("spec"))
    inner = template.inner_selector
    broken = [*filter(None, (inner.broken_by(*label) for label in added))] if inner else []
    if added and template.selector and not spec.get("selector") and kind != "Job":
        why = f"the {kind} has none"
    elif broken:
        why = f"the one beside the template has {broken[0]}"
    else:
        return None
    return Unknown(
        "a label of a policy may take the pods out of the selector by which they are counted: "
        f"{why}",
        short=f"the selector by which its pods are counted is not known: {why}",
        remedy="write a selector that the label meets, or leave the label out",
    )


def _differs(evaluation: Evaluation, arrival: Arrival, cluster: Cluster | None = None) -> bool:
    """Return whether the decision is another one with this."""
    world = evaluation.world
    other = decide(arrival, world.policies, cluster or world.known_cluster)
    decision = evaluation.decision
    return (other.allowed, other.warnings) != (decision.allowed, decision.warnings)
