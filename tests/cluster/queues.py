"""What an admin of Kueue creates: flavors of the sandbox's nodes, and queues for them."""

from __future__ import annotations

from typing import Any, Final

from tests.cluster.manifests import Json

POOL: Final = "cloud.google.com/gke-nodepool"
# Of the flavors, only that of on-demand nodes has it.
SYSTEM: Final = "kubernetes.io/os"
GPU_TOLERATION: Final = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
# A queue in a namespace is called as the cluster's queue is that it leads to.
QUEUES: Final = {"either": ("gpu", "on-demand"), "gpu": ("gpu",), "hosts": ("gpu-hosts",)}
_CPU: Final = "cpu"


def of_admins() -> list[Json]:
    """Flavors and cluster-wide queues; the one of `hosts` chooses hosts, too."""
    levels = [{"nodeLabel": POOL}, {"nodeLabel": "kubernetes.io/hostname"}]
    gpu: Json = {"nodeLabels": {POOL: "gpu"}, "tolerations": [GPU_TOLERATION]}
    return [
        _kueue("Topology", "pools", {"levels": levels}),
        _kueue("ResourceFlavor", "gpu", gpu),
        _kueue("ResourceFlavor", "gpu-hosts", {**gpu, "topologyName": "pools"}),
        _kueue("ResourceFlavor", "on-demand", {"nodeLabels": {POOL: "on-demand", SYSTEM: "linux"}}),
        *(_cluster_queue(name, flavors) for name, flavors in QUEUES.items()),
    ]


def of_namespaces() -> list[Json]:
    """The queues of one namespace."""
    return [_kueue("LocalQueue", name, {"clusterQueue": name}) for name in QUEUES]


def _cluster_queue(name: str, flavors: tuple[str, ...]) -> Json:
    """Kueue tries the flavors in their order."""
    quotas = [
        {"name": flavor, "resources": [{"name": _CPU, "nominalQuota": "100"}]} for flavor in flavors
    ]
    group = {"coveredResources": [_CPU], "flavors": quotas}
    return _kueue("ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": [group]})


def _kueue(kind: str, name: str, spec: dict[str, Any]) -> Json:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
