"""The input of a comparison: two policy sets, pods, and facts about the cluster.

Pods and facts are read from a cluster here, and from files in question.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import CollectionPath
from webhook.errors import InvalidRun
from webhook.evaluation.templates import templates_of
from webhook.evaluation.world import labels_of
from webhook.identity import identify
from webhook.questions.live.live_objects import Discovery, as_object
from webhook.run.controller_reference import controller_of
from webhook.workloads.by_kind import KINDS
from webhook.workloads.object import ANSWERED, Object, from_answer
from webhook.workloads.stored_pod import as_admitted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.kube.client import Client
    from webhook.sources.table import SourceTable
    from webhook.workloads.template import PodTemplate

_OVER: Final = frozenset({*names.TERMINAL_PHASES, "Complete", "Completed"})
# The fields of a container that a decision reads.
_OF_CONTAINERS: Final = ("name", "resources")
_OF_METADATA: Final = ("name", "namespace", "labels", "annotations", "ownerReferences")
# Without pods, which are listed separately, and without templates of other objects.
MAKERS: Final = frozenset(
    {key for key, kinds in KINDS.items() if not any(kind.reusable for kind in kinds)}
    - {("", "Pod")}
    | {(names.GROUP, names.RUN_KIND)}
)


@dataclass(frozen=True, slots=True)
class Pods:
    """The templates of pods, and all live pods.

    unknown: lines about what is not known, or was left out, and why
    notes:   lines about what else the comparison assumes
    """

    makers: Sequence[PodTemplate]
    unknown: Sequence[str] = ()
    notes: Sequence[str] = ()
    live: Sequence[Object] = ()


async def read_pods(
    client: Client,
    namespace: str,
    labels_by_namespace: Mapping[str, Mapping[str, str]],
    sources: SourceTable,
) -> Pods:
    """Templates of workloads, and live pods of runs that no workload represents.

    Of this namespace or of all. A workload represents the pods and workloads that it creates,
    because its template has what its author wrote, and a live pod also has what policies set.
    Leaves out pods without a run, and objects that have ended or are being deleted.
    `labels_by_namespace` has labels by namespace. Raises ClusterError.
    """
    path = CollectionPath("v1", "pods", namespace or None)
    listed = await client.list(path, lambda pod: relevant_pod(pod, labels_by_namespace, sources))
    live = [from_answer("v1", "Pod", pod) for pod in listed.items if pod]
    workloads: list[Object] = []
    for kind in await Discovery(client).by_groups(MAKERS):
        workloads += (await client.list(kind.path(namespace), partial(as_object, kind))).items
    uids = {workload.metadata.get("uid") for workload in workloads}
    makers = [
        template
        for pod in live
        if owner_of(pod) not in uids
        for template in templates_of(pod, live, sources)
    ]
    unknown: list[str] = []
    for workload in workloads:
        if _is_over(workload.value) or owner_of(workload) in uids:
            continue
        try:
            makers += templates_of(workload, [workload], sources)
        except InvalidRun as error:
            unknown.append(f"{workload.title} in {workload.namespace} is left out: {error}")
    return Pods(makers, unknown, live=live)


def is_live(template: PodTemplate) -> bool:
    return template.is_pod and template.source.file == ANSWERED


def relevant_pod(
    pod: dict[str, Any], labels_by_namespace: Mapping[str, Mapping[str, str]], sources: SourceTable
) -> dict[str, Any] | None:
    """Return the parts of a live pod that a decision reads, as at its creation; None if not
    relevant.

    The node, and the labels that the pod has from it, would hide the effect of policies.
    """
    admitted = as_admitted(pod)
    metadata, spec = admitted["metadata"], admitted["spec"]
    annotations = metadata.get("annotations") or {}
    labels = labels_of(metadata["namespace"], labels_by_namespace)
    if (
        _is_over(pod)
        or names.MIRROR_POD in annotations
        or identify(metadata.get("labels") or {}, annotations, labels, sources) is None
    ):
        return None
    kept = {**spec}
    for key in ("containers", "initContainers"):
        if key in kept:
            kept[key] = [_picked(container, _OF_CONTAINERS) for container in kept[key]]
    kept.pop("ephemeralContainers", None)
    return {"metadata": _picked(metadata, _OF_METADATA), "spec": kept}


def _picked(value: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value[key] for key in keys if key in value}


def _is_over(value: Mapping[str, Any]) -> bool:
    """Return whether it is being deleted, or has ended by its status.

    The status has a phase (pods, Runs), a condition (Jobs and similar kinds), or Ray's field.
    """
    if value["metadata"].get("deletionTimestamp"):
        return True
    status = value.get("status") or {}
    conditions = status.get("conditions") or ()
    return (
        status.get("phase") in _OVER
        or status.get("jobDeploymentStatus") in _OVER
        or any(
            condition.get("type") in _OVER and condition.get("status") == "True"
            for condition in conditions
        )
    )


def owner_of(pod: Object) -> str | None:
    owner = controller_of(pod.value)
    return str(owner.get("uid")) if owner else None
