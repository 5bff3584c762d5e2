"""Checks of pods: a dry run, pods without a placement, DaemonSets in marked namespaces."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.decision.arrival import Cluster, spares_daemon_sets
from webhook.errors import InvalidPod
from webhook.evaluation.plugins import UNREAD
from webhook.evaluation.world import World
from webhook.installation.doctor.cluster_state import (
    Finding,
    ReadKind,
    check,
    error,
    not_checked,
    note,
    warning,
)
from webhook.installation.rollout import describe_port
from webhook.shortening import first_few
from webhook.workloads.object import Object
from webhook.workloads.template_search import pod_templates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.installation.doctor.cluster_state import ClusterState

    Json = Mapping[str, Any]
    from webhook.policy.policy_set import PolicySet

# How many names of pods are reported for each namespace.
_NAMED: Final = 3


@check("end to end", ReadKind.POD_RULES, ReadKind.PROBE)
def end_to_end(state: ClusterState) -> Iterator[Finding]:
    """Check that a pod of a run, created by dry run, comes back with a stamp."""
    probe = state.probe
    if probe is None or probe.stamped or probe.was_prevented or state.configuration is None:
        return
    if probe.was_answered:
        yield warning(
            f"a policy rejects a plain pod of a run in {probe.namespace}: {probe.words}",
            "if this is not intended: fairlead explain shows which policy, and why",
        )
    elif probe.failed:
        yield error(
            f"the API server does not reach the webhook: {probe.words}",
            "see the findings about pods, endpoints and certificates. From a private "
            f"control plane a firewall must let it through to {_address(state)}",
        )
    elif probe.invalid:
        yield error(
            f"the API server refuses a plain pod of a run in {probe.namespace}, as policies and "
            f"other webhooks change it: {probe.words}",
            "fairlead preview -f POD --policies cluster --dry-run=server names the policy",
        )
    elif all(entry.get("rules") for entry in state.entries):
        yield error(
            f"a pod of a run in {probe.namespace} comes back without a stamp",
            "do the selectors of the webhook configuration take it? kubectl get "
            "mutatingwebhookconfiguration fairlead -o yaml",
        )
    else:
        yield not_checked("the webhook is disabled")


def _address(state: ClusterState) -> str:
    """Return what the API server connects to, as a rule of a firewall has it."""
    deployment = state.deployments.get(names.WEBHOOK)
    port = describe_port(deployment["spec"]["template"], "https") if deployment else "the port"
    return state.url or f"{port} of the webhook's pods"


@check("unplaced pods", ReadKind.NAMESPACES, ReadKind.PODS_OF_RUNS, ReadKind.DEFINITIONS)
def unplaced(state: ClusterState) -> Iterator[Finding]:
    """No pod of a run is without a stamp."""
    since = state.installed
    by_namespace: dict[str, list[str]] = defaultdict(list)
    older = []
    for pod in state.unplaced:
        if pod.created < since:
            older.append(f"{pod.namespace}/{pod.name}")
        else:
            by_namespace[pod.namespace].append(pod.name)
    if older:
        pods = "1 pod of a run is" if len(older) == 1 else f"{len(older)} pods of runs are"
        yield note(
            f"{pods} older than Fairlead's installation, without a stamp: "
            f"{first_few(sorted(older), _NAMED)}",
            "none, if they are to stay as they are; else delete them: controllers create theirs "
            "again, others are to be applied again",
        )
    for namespace, pod_names in sorted(by_namespace.items()):
        shown = first_few(sorted(pod_names), _NAMED)
        pods = (
            "1 pod of a run has" if len(pod_names) == 1 else f"{len(pod_names)} pods of runs have"
        )
        yield error(
            f"in {namespace} {pods} no stamp: {shown}. No policy was applied to them: the "
            "webhook did not answer, was disabled, its configuration was gone or selected fewer "
            "pods, or they were labelled later",
            "delete them: controllers create theirs again, others are to be applied again; a "
            "placement cannot be added",
        )


# Where a node finds its network (CNI) and its drivers of storage (CSI).
_DRIVERS: Final = {
    "/etc/cni": "network",
    "/opt/cni": "network",
    "/var/lib/cni": "network",
    "/var/lib/kubelet/plugins": "storage",
}
_UNMARK: Final = f"`kubectl label namespace {{}} {names.PLACE}-`"
_KEEP_LABEL: Final = f"{names.DAEMON_SETS}={names.DAEMON_SETS_KEEP}"


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
    policies = state.compiled
    for daemon_set in state.daemon_sets:
        metadata = daemon_set["metadata"]
        namespace, title = metadata["namespace"], f"{metadata['namespace']}/{metadata['name']}"
        if driver := _driver(daemon_set):
            yield warning(
                f"DaemonSet {title} is a driver of the nodes' {driver}, and {names.PLACE}: all has "
                "its pods wait for the webhook, which may need that driver itself",
                _UNMARK.format(namespace),
            )
        spared = spares_daemon_sets(state.namespaces[namespace])
        for reason in _unmet(state, daemon_set, policies) if policies else ():
            if spared:
                yield note(
                    f"DaemonSet {title} does not meet a requirement, which does not apply because "
                    f"its namespace has {_KEEP_LABEL}: {reason}",
                    f"`kubectl label namespace {namespace} {names.DAEMON_SETS}-`",
                )
            else:
                yield warning(
                    f"DaemonSet {title} does not meet a requirement, which rejects its pods or "
                    f"keeps them off nodes: {reason}",
                    "fix its template; or, if the cluster needs it so: "
                    f"`kubectl label namespace {namespace} {_KEEP_LABEL}`",
                )


def _unmet(state: ClusterState, daemon_set: Json, policies: PolicySet) -> Iterator[str]:
    """Yield why requirements reject its pods, or on how many of its nodes they are not met.

    Nothing for a template that is marked itself: its author asked for it.
    """
    whole = {"apiVersion": "apps/v1", "kind": "DaemonSet", **daemon_set}
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
            namespace = daemon_set["metadata"]["namespace"]
            evaluation = world.evaluate(template.pod(0), namespace, led=False)
            identity = evaluation.decision.identity
            if identity and not identity.marked_itself:
                yield from evaluation.unmet


def _driver(daemon_set: Json) -> str:
    """Return what the DaemonSet is a driver of: network or storage; empty if neither."""
    for volume in daemon_set["spec"]["template"]["spec"].get("volumes") or ():
        path = str((volume.get("hostPath") or {}).get("path", ""))
        for folder, what in _DRIVERS.items():
            if path == folder or path.startswith((f"{folder}/", f"{folder}_")):
                return what
    return ""
