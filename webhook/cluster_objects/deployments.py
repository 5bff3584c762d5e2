"""How far the rollout of a Deployment is, by its status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    Json = Mapping[str, Any]


def missing_pods(deployment: Json) -> str:
    """Return what is missing until all pods are new and available; "" if nothing is.

    The rules are those of `kubectl rollout status` (k8s.io/kubectl, DeploymentStatusViewer).
    """
    name = deployment["metadata"]["name"]
    wanted = deployment["spec"].get("replicas", 1)
    status = deployment.get("status") or {}
    if status.get("observedGeneration", 0) < deployment["metadata"].get("generation", 0):
        return f"Deployment {name} has not been observed yet"
    updated = status.get("updatedReplicas", 0)
    if updated < wanted:
        return f"Deployment {name} has {updated} of {wanted} new pods"
    if status.get("replicas", 0) > updated:
        return f"Deployment {name} has {status['replicas'] - updated} old pods still"
    available = status.get("availableReplicas", 0)
    if available < wanted:
        return f"Deployment {name} has {available} of {wanted} pods available"
    return ""
