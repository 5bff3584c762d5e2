"""The pod templates of Ray's kinds, with what KubeRay adds to its pods.

Source: kuberay, labelPod and BuildPod of ray-operator/controllers/ray/common/pod.go. The cluster
that a RayJob or a RayService makes has a name that ends at random; xxxxx stands for that. The pod
that submits a RayJob is as before KubeRay 1.7, which gave it marks.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from webhook.workloads.core_kinds import job_labels
from webhook.workloads.template import Made, PodTemplate, at, count_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.policy.findings import Path
    from webhook.workloads.object import Object

_HEAD_GROUP: Final = "headgroup"
_SERVE: Final = "ray.io/serve"


def ray_cluster(source: Object) -> Iterator[PodTemplate]:
    """A RayCluster: its head, and its worker groups."""
    yield from _cluster(source, ("spec",), source.name)


def ray_job(source: Object) -> Iterator[PodTemplate]:
    """A RayJob: the cluster that it makes; the pod that submits, if it has a template."""
    yield from _cluster(source, ("spec", "rayClusterSpec"), f"{source.name}-xxxxx")
    submitter: Path = ("spec", "submitterPodTemplate")
    if at(source.value, submitter):
        made = Made(job_labels(source.name))
        yield PodTemplate(source, submitter, "submitter", made=lambda _: made)


def ray_service(source: Object) -> Iterator[PodTemplate]:
    """A RayService: the cluster that it makes."""
    path: Path = ("spec", "rayClusterConfig")
    yield from _cluster(source, path, f"{source.name}-xxxxx", serves=True)


def _cluster(
    source: Object, spec: Path, cluster: str, *, serves: bool = False
) -> Iterator[PodTemplate]:
    head: Path = (*spec, "headGroupSpec", "template")
    if at(source.value, head):
        # A head gets no traffic until its proxy is healthy.
        serve = {_SERVE: "false"} if serves else {}
        made = partial(_made, cluster, "head", _HEAD_GROUP, serve)
        yield PodTemplate(source, head, "head", made=made)
    groups = at(source.value, (*spec, "workerGroupSpecs"))
    for position in range(len(groups) if isinstance(groups, list) else 0):
        path: Path = (*spec, "workerGroupSpecs", position)
        name = str(at(source.value, (*path, "groupName")) or position)
        least = count_at(source.value, (*path, "minReplicas"), 0)
        replicas = count_at(source.value, (*path, "replicas"), least)
        count = replicas * count_at(source.value, (*path, "numOfHosts"))
        made = partial(_made, cluster, "worker", name, {_SERVE: "true"} if serves else {})
        yield PodTemplate(source, (*path, "template"), f"worker {name}", count, made)


def _made(cluster: str, node_type: str, group: str, serve: Mapping[str, str], _index: int) -> Made:
    return Made(
        {
            **serve,
            "ray.io/is-ray-node": "yes",
            "ray.io/cluster": cluster,
            "ray.io/node-type": node_type,
            "ray.io/group": group,
            "ray.io/identifier": f"{cluster}-{node_type}",
            "app.kubernetes.io/name": "kuberay",
            "app.kubernetes.io/created-by": "kuberay-operator",
        }
    )


KINDS: Final = {
    ("ray.io", "RayCluster"): ray_cluster,
    ("ray.io", "RayJob"): ray_job,
    ("ray.io", "RayService"): ray_service,
}
