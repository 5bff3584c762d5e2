"""What decides about a pod and is not known, in one wording for commands and policy tests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.decision.engine import decide
from webhook.evaluation.plugins import with_more_tolerations
from webhook.evaluation.surveys import Unknown
from webhook.placement.plugin_tolerations import RESTRICTION, AnnotatedLabels
from webhook.placement.shapes import as_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.decision.arrival import Arrival, Cluster
    from webhook.evaluation.world import Evaluation


def undecided(found: Evaluation) -> Iterator[Unknown]:
    """Yield what decides whether the pod is admitted and with which warnings, and is not known."""
    world, arrival = found.world, found.arrival
    if unread := found.priority.unread:
        yield Unknown(
            f"the API server compares the pod's priority and preemptionPolicy with {unread}, which "
            "is not read",
            unread,
            f"{unread} is not read",
        )
    if found.decision.result in ("not-a-run", "not-sent"):
        return
    if name := found.unread_class:
        what = f"RuntimeClass {name}"
        yield Unknown(
            f"the API server first adds the nodeSelector and tolerations of {what}, which is not "
            "read",
            what,
            f"{what} is not read",
        )
        return
    if owner := found.unread_selector:
        yield Unknown(
            f"a label of a policy may take the pod out of the selector of {owner}, which is not "
            "read",
            owner,
            f"the selector of {owner} is not read",
        )
    names_of_plugins = [
        name
        for name, tolerations in found.possible_tolerations.items()
        if name not in world.plugins.running
        and _differs(found, arrival._replace(pod=with_more_tolerations(arrival.pod, tolerations)))
    ]
    if names_of_plugins:
        yield Unknown(
            f"the API server may run the plugin {', '.join(names_of_plugins)}, whose tolerations "
            "policies judge"
        )
    spec = arrival.pod["spec"]
    if not spec.get("tolerations"):
        return
    if found.namespace_unread and world.plugins.running.get(RESTRICTION, True):
        space = AnnotatedLabels.giving(arrival.namespace_labels, spec["tolerations"])
        if _differs(found, arrival._replace(namespace_labels=space)):
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
        if _differs(found, arrival, replace(cluster, flavors=[{"spec": flavor}])):
            yield Unknown(
                "policies judge the pod's tolerations, and those of a ResourceFlavor of Kueue, "
                "which is not read, are not its author's",
                "ResourceFlavors",
            )


def _differs(found: Evaluation, arrival: Arrival, cluster: Cluster | None = None) -> bool:
    """Return whether the decision is another one with this."""
    world = found.world
    other = decide(arrival, world.policies, cluster or world.known_cluster)
    own = found.decision
    return (other.allowed, other.warnings) != (own.allowed, own.warnings)
