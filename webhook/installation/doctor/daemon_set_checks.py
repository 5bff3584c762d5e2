"""Checks of DaemonSets in namespaces that are placed as a whole."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.admission.arrival import Cluster
from webhook.errors import InvalidDocuments, InvalidPod
from webhook.evaluation.plugins import UNREAD
from webhook.evaluation.world import World
from webhook.installation.doctor.cluster_state import Finding, ReadKind, check, warning
from webhook.judgement.set_judgement import load_objects
from webhook.policy.load import load
from webhook.workloads.object import Object
from webhook.workloads.template_search import pod_templates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.installation.doctor.cluster_state import ClusterState
    from webhook.policy.policy_set import PolicySet

    Json = Mapping[str, Any]

# Where a node finds its network (CNI) and its drivers of storage (CSI).
_DRIVERS: Final = {
    "/etc/cni": "network",
    "/opt/cni": "network",
    "/var/lib/cni": "network",
    "/var/lib/kubelet/plugins": "storage",
}
_UNMARK: Final = f"kubectl label namespace {{}} {names.PLACE}-"


@check(
    "agents",
    ReadKind.DEPLOYMENTS,
    ReadKind.NAMESPACES,
    ReadKind.DAEMON_SETS,
    ReadKind.NODES,
    ReadKind.POLICIES,
)
def agents(state: ClusterState) -> Iterator[Finding]:
    """Drivers that must not wait for the webhook, and pods that do not meet requirements."""
    policies = _policies(state)
    for each in state.daemon_sets:
        metadata = each["metadata"]
        namespace, title = metadata["namespace"], f"{metadata['namespace']}/{metadata['name']}"
        if driver := _driver(each):
            yield warning(
                f"DaemonSet {title} is a driver of the nodes' {driver}, and {names.PLACE}: all has "
                "its pods wait for the webhook, which may need that driver itself",
                _UNMARK.format(namespace),
            )
        for reason in _unmet(state, each, policies) if policies else ():
            yield warning(
                f"DaemonSet {title} is left alone, because only its namespace marks it, but "
                f"does not meet a requirement: {reason}",
                f"label its template {names.RUN} to enforce the requirement; or fix the template",
            )


def _policies(state: ClusterState) -> PolicySet | None:
    """Return the policy set; None if it is unknown or does not compile, which another check
    reports.
    """
    try:
        read = load_objects if state.policies_from_cluster else load
        return None if state.policies is None else read(state.policies).policies
    except InvalidDocuments:
        return None


def _unmet(state: ClusterState, found: Json, policies: PolicySet) -> Iterator[str]:
    """Yield why requirements would reject its pods, or on how many of its nodes they are not
    met."""
    whole = {"apiVersion": "apps/v1", "kind": "DaemonSet", **found}
    world = World(
        policies,
        Cluster(),
        state.namespaces,
        state.now,
        None,
        None,
        UNREAD,
        state.nodes,
        None,
        None,
    )
    for template in pod_templates(Object("the cluster", whole)):
        with suppress(InvalidPod):  # the API server rejects it too
            namespace = found["metadata"]["namespace"]
            yield from world.evaluate(template.pod(0), namespace, led=False).unmet


def _driver(found: Json) -> str:
    """Return what the DaemonSet is a driver of: network or storage; empty if neither."""
    for volume in found["spec"]["template"]["spec"].get("volumes") or ():
        path = str((volume.get("hostPath") or {}).get("path", ""))
        for folder, what in _DRIVERS.items():
            if path == folder or path.startswith((f"{folder}/", f"{folder}_")):
                return what
    return ""
