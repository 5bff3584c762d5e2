"""Where the API server has the objects of a kind: the tests' way past kubectl."""

from __future__ import annotations

from typing import Any, Final

from webhook import names

Json = dict[str, Any]
_REGISTRATION: Final = "admissionregistration.k8s.io/v1"
# API groups and versions by resource; what is not here is of the core's v1.
_GROUPS: Final = {
    "daemonsets": "apps/v1",
    "deployments": "apps/v1",
    "replicasets": "apps/v1",
    "statefulsets": "apps/v1",
    "jobs": "batch/v1",
    "cronjobs": "batch/v1",
    **dict.fromkeys(
        ("tfjobs", "pytorchjobs", "paddlejobs", "xgboostjobs", "jaxjobs"), "kubeflow.org/v1"
    ),
    "mpijobs": "kubeflow.org/v2beta1",
    "jobsets": "jobset.x-k8s.io/v1alpha2",
    "daskjobs": "kubernetes.dask.org/v1",
    **dict.fromkeys(("workloads", "localqueues"), "kueue.x-k8s.io/v1beta2"),
    "leases": "coordination.k8s.io/v1",
    "endpointslices": "discovery.k8s.io/v1",
    "customresourcedefinitions": "apiextensions.k8s.io/v1",
    "priorityclasses": "scheduling.k8s.io/v1",
    "runtimeclasses": "node.k8s.io/v1",
    "deviceclasses": "resource.k8s.io/v1",
    "mutatingwebhookconfigurations": _REGISTRATION,
    "validatingwebhookconfigurations": _REGISTRATION,
    "validatingadmissionpolicies": _REGISTRATION,
    "validatingadmissionpolicybindings": _REGISTRATION,
    **dict.fromkeys(
        ("roles", "rolebindings", "clusterroles", "clusterrolebindings"),
        "rbac.authorization.k8s.io/v1",
    ),
    **dict.fromkeys(
        (
            names.RUNS,
            *names.POLICY_RESOURCES.values(),
        ),
        names.API_VERSION,
    ),
}
_CLUSTER_SCOPED: Final = {
    "namespaces",
    "nodes",
    "customresourcedefinitions",
    "priorityclasses",
    "runtimeclasses",
    "deviceclasses",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "clusterroles",
    "clusterrolebindings",
    *names.POLICY_RESOURCES.values(),
}


def path(resource: str, name: str = "", *, namespace: str = "", version: str = "") -> str:
    """Return the path of a resource's collection, or of one object in it.

    `namespace` does not count for what is in none; without it the collection is of all.
    """
    group = version or _GROUPS.get(resource, "v1")
    parts = ["apis" if "/" in group else "api", group]
    if namespace and resource not in _CLUSTER_SCOPED:
        parts += ["namespaces", namespace]
    parts += [resource, *([name] if name else [])]
    return "/" + "/".join(parts)


def home(manifest: Json, namespace: str) -> str:
    """Return the path of the collection that a manifest is created in."""
    inside = manifest["metadata"].get("namespace", namespace)
    return path(_plural(manifest["kind"]), namespace=inside, version=manifest["apiVersion"])


def _plural(kind: str) -> str:
    lower = kind.lower()
    if lower.endswith("y"):
        return f"{lower[:-1]}ies"
    return f"{lower}es" if lower.endswith("s") else f"{lower}s"
