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
# API groups of Kubernetes' own, all of whose kinds that make pods are known.
_OWN: Final = ("", "apps", "batch", "policy", "autoscaling", "extensions")
_OWN_ENDING: Final = ".k8s.io"


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
        elif not _is_own(group):
            unknown[each.kind] = None
    lines = [_line(kind, found) for kind, found in made.items()]
    if unknown:
        kinds = ", ".join(unknown)
        lines.append(f"whether {kinds} makes pods is not known: there is no pod template in it")
    return lines


def _is_own(group: str) -> bool:
    return group in _OWN or group.endswith(_OWN_ENDING) or group == names.GROUP


def _line(kind: str, found: Sequence[Object]) -> str:
    first = found[0]
    group = str(first.value.get("apiVersion") or "").rpartition("/")[0]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    which = f"{first.title}{more}"
    if (group, kind) in KINDS:
        return f"{kind} makes pods; there is no pod template where it should be: {which}"
    return f"{kind} makes pods; its templates are not read: {which}"
