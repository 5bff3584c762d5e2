"""What an admin of Kueue creates: flavors of the sandbox's nodes, and queues for them."""

from __future__ import annotations

from typing import Any, Final

from tests.cluster.manifests import Json
from tests.objects import an_object
from tests.operators import checks

POOL: Final = "cloud.google.com/gke-nodepool"
# Of the flavors, only that of on-demand nodes has it.
SYSTEM: Final = "kubernetes.io/os"
GPU_TOLERATION: Final = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
# A queue in a namespace is called as the cluster's queue is that it leads to.
QUEUES: Final = {
    "either": ("gpu", "on-demand"),
    "gpu": ("gpu",),
    "short": ("short",),
    "hosts": ("gpu-hosts",),
    "one": ("gpu", "on-demand"),
    "checked": ("anywhere",),
}
# A class of workloads, before which those of `one` give way.
URGENT: Final = "urgent"
_MORE: Final[dict[str, Json]] = {
    "one": {
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "flavorFungibility": {"whenCanPreempt": "MayStopSearch"},
    },
    "checked": {"admissionChecksStrategy": {"admissionChecks": [{"name": checks.CHECK}]}},
}
API: Final = "kueue.x-k8s.io/v1beta2"
_CPU: Final = "cpu"


def of_admins() -> list[Json]:
    """Flavors and cluster-wide queues.

    The one of `hosts` chooses hosts, too; that of `one` has space for one pod on each flavor, and
    wants the first flavor for urgent ones; that of `checked` asks a check, and has no selector.
    """
    levels = [{"nodeLabel": POOL}, {"nodeLabel": "kubernetes.io/hostname"}]
    gpu: Json = {"nodeLabels": {POOL: "gpu"}, "tolerations": [GPU_TOLERATION]}
    return [
        _kueue("Topology", "pools", {"levels": levels}),
        _kueue("ResourceFlavor", "gpu", gpu),
        short_flavor(),
        _kueue("ResourceFlavor", "gpu-hosts", {**gpu, "topologyName": "pools"}),
        _kueue("ResourceFlavor", "on-demand", {"nodeLabels": {POOL: "on-demand", SYSTEM: "linux"}}),
        _kueue("ResourceFlavor", "anywhere", {}),
        an_object(API, "WorkloadPriorityClass", URGENT, value=1),
        checks.MANIFEST,
        *(_cluster_queue(name, flavors) for name, flavors in QUEUES.items()),
    ]


def short_flavor() -> Json:
    """That of the queue `short`, which a test deletes."""
    return _kueue("ResourceFlavor", "short", {"nodeLabels": {POOL: "on-demand"}})


def of_namespaces() -> list[Json]:
    """The queues of one namespace."""
    return [_kueue("LocalQueue", name, {"clusterQueue": name}) for name in QUEUES]


def _cluster_queue(name: str, flavors: tuple[str, ...]) -> Json:
    """Kueue tries the flavors in their order."""
    quota = "1" if name == "one" else "100"
    quotas = [
        {"name": flavor, "resources": [{"name": _CPU, "nominalQuota": quota}]} for flavor in flavors
    ]
    group = {"coveredResources": [_CPU], "flavors": quotas}
    return _kueue(
        "ClusterQueue",
        name,
        {"namespaceSelector": {}, "resourceGroups": [group], **_MORE.get(name, {})},
    )


def _kueue(kind: str, name: str, spec: dict[str, Any]) -> Json:
    return an_object(API, kind, name, spec)
