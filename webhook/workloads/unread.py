"""Kinds that make pods of something else than a pod template, and kinds that nobody here knows.

Policies apply to their pods as to any others; what becomes of them is not known beforehand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.workloads.find import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.workloads.object import Object

_MAKERS: Final[Mapping[str, Sequence[str]]] = {
    "sparkoperator.k8s.io": ("SparkApplication", "ScheduledSparkApplication", "SparkConnect"),
    "trainer.kubeflow.org": ("TrainJob",),
    "kubeflow.org": ("Experiment", "ScheduledWorkflow"),
    "argoproj.io": ("Workflow", "CronWorkflow", "WorkflowTemplate", "ClusterWorkflowTemplate"),
    "tekton.dev": ("Task", "TaskRun", "Pipeline", "PipelineRun"),
    "serving.kserve.io": (
        *("InferenceService", "InferenceGraph", "LLMInferenceService"),
        *("ServingRuntime", "ClusterServingRuntime"),
    ),
    "serving.knative.dev": ("Service", "Configuration"),
    "flink.apache.org": ("FlinkDeployment",),
    "kubernetes.dask.org": ("DaskJob", "DaskCluster", "DaskWorkerGroup"),
    "nuclio.io": ("NuclioFunction",),
    "machinelearning.seldon.io": ("SeldonDeployment",),
    "monitoring.coreos.com": ("Prometheus", "Alertmanager", "ThanosRuler"),
}
# API groups of Kubernetes' own, and others that often stand beside workloads: all of their kinds
# that make pods are in the tables.
_NO_OTHERS: Final = frozenset(
    {
        *("", "apps", "batch", "policy", "autoscaling", "extensions", names.GROUP),
        *("monitoring.coreos.com", "cert-manager.io", "external-secrets.io", "kyverno.io"),
        *("kueue.x-k8s.io", "scheduling.volcano.sh", "karpenter.sh", "route.openshift.io"),
        *("networking.istio.io", "security.istio.io"),
    }
)
_OF_KUBERNETES: Final = ".k8s.io"


def unread(objects: Iterable[Object]) -> list[str]:
    """A line for each kind among objects of which no pod template is found, and one for all others.

    None for kinds that are known to make no pods.
    """
    made: dict[str, list[Object]] = {}
    unknown: dict[str, None] = {}
    for each in objects:
        group = str(each.value.get("apiVersion") or "").rpartition("/")[0]
        if (group, each.kind) in KINDS or each.kind in _MAKERS.get(group, ()):
            made.setdefault(each.kind, []).append(each)
        elif group not in _NO_OTHERS and not group.endswith(_OF_KUBERNETES):
            unknown[each.kind] = None
    lines = [_line(kind, found) for kind, found in made.items()]
    if unknown:
        kinds = ", ".join(unknown)
        lines.append(f"whether {kinds} makes pods is not known: there is no pod template in it")
    return lines


def _line(kind: str, found: Sequence[Object]) -> str:
    first = found[0]
    group = str(first.value.get("apiVersion") or "").rpartition("/")[0]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    which = f"{first.title}{more}"
    if (group, kind) in KINDS:
        return f"{kind} makes pods; there is no pod template where it should be: {which}"
    return f"{kind} makes pods; its templates are not read: {which}"
