"""Checks of pods: one of a run by dry run, and those that slipped by."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from webhook.installation.doctor.findings import Finding, error, note, warning
from webhook.policy.findings import first_few

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.installation.doctor.cluster_state import ClusterState

# How many names of pods are told for each namespace.
_NAMED: Final = 3


def end_to_end(seen: ClusterState) -> Iterator[Finding]:
    """A pod of a run, created by dry run, comes back with a stamp."""
    probe = seen.probe
    if probe is None or probe.stamped or seen.configuration is None:
        return
    if probe.answered:
        yield warning(
            f"a policy refuses a plain pod of a run in {probe.namespace}: {probe.words}",
            "is that meant? fairlead explain tells which policy, and why",
        )
    elif probe.failed:
        yield error(
            f"the API server does not reach the webhook: {probe.words}",
            "see what is said of pods, endpoints and certificates. From a private control plane a "
            "firewall must let it through to port 8443 of the nodes",
        )
    elif probe.words:
        yield warning(
            f"a pod of a run cannot be tried in {probe.namespace}: {probe.words}",
            "fairlead doctor --namespace NAME tries it elsewhere",
        )
    elif all(each.get("rules") for each in seen.entries):
        yield error(
            f"a pod of a run in {probe.namespace} comes back without a stamp",
            "do the selectors of the webhook configuration take it? kubectl get "
            "mutatingwebhookconfiguration fairlead -o yaml",
        )


def unplaced(seen: ClusterState) -> Iterator[Finding]:
    """No pod of a run is without a stamp."""
    by_namespace: dict[str, list[str]] = defaultdict(list)
    older = [f"{pod.namespace}/{pod.name}" for pod in seen.unplaced if pod.older]
    if older:
        pods = "1 pod of a run is" if len(older) == 1 else f"{len(older)} pods of runs are"
        yield note(
            f"{pods} older than the webhook configuration, without a stamp: "
            f"{first_few(sorted(older), _NAMED)}",
            "none, if they were there before Fairlead; if the configuration was gone for a time: "
            "delete them: controllers create theirs again, others are to be applied again",
        )
    for pod in seen.unplaced:
        if not pod.older:
            by_namespace[pod.namespace].append(pod.name)
    for namespace, found in sorted(by_namespace.items()):
        told = first_few(sorted(found), _NAMED)
        pods = "1 pod of a run has" if len(found) == 1 else f"{len(found)} pods of runs have"
        yield warning(
            f"in {namespace} {pods} no stamp: {told}. No policy was applied to them: the "
            "webhook did not answer, was disabled, or they were labelled later",
            "delete them: controllers create theirs again, others are to be applied again; a "
            "placement cannot be added",
        )
