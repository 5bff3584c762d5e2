"""The pod templates of JobSets, and of the runtimes of Kubeflow Trainer, which are JobSets.

Source: jobset, labelAndAnnotateObject and coordinatorEndpoint of
pkg/controllers/jobset_controller.go.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from webhook.replicas import (
    JOB_INDEX,
    JOBSET_COORDINATOR,
    JOBSET_NAME,
    REPLICATED_JOB,
    REPLICATED_JOB_REPLICAS,
)
from webhook.workloads.core_kinds import job_labels, numbered
from webhook.workloads.template import Made, PodTemplate, at, count_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.policy.findings import Path
    from webhook.workloads.object import Object

_JOBSET: Final = "jobset.sigs.k8s.io"


def job_set(source: Object) -> Iterator[PodTemplate]:
    """A JobSet: one template a replicated job, which makes some Jobs of some pods each."""
    yield from _replicated_jobs(source, ("spec",), source.name)


def training_runtime(source: Object) -> Iterator[PodTemplate]:
    """A runtime of Trainer: the JobSet that a TrainJob by the name of trainjob would become."""
    yield from _replicated_jobs(source, ("spec", "template", "spec"), "trainjob")


def _replicated_jobs(source: Object, spec: Path, name: str) -> Iterator[PodTemplate]:
    listed = at(source.value, (*spec, "replicatedJobs"))
    jobs = range(len(listed) if isinstance(listed, list) else 0)
    paths: list[Path] = [(*spec, "replicatedJobs", position) for position in jobs]
    counts = [count_at(source.value, (*path, "replicas")) for path in paths]
    shared = {
        JOBSET_NAME: name,
        f"{_JOBSET}/global-replicas": str(sum(counts)),
        f"{_JOBSET}/restart-attempt": "0",
        **_coordinator(source, spec, name),
    }
    for position, path in enumerate(paths):
        job: Path = (*path, "template", "spec")
        part = str(at(source.value, (*path, "name")) or "")
        pods = count_at(source.value, (*job, "parallelism"))
        replicas = counts[position]
        labels = {**shared, REPLICATED_JOB: part, REPLICATED_JOB_REPLICAS: str(replicas)}
        # JobSet makes a Job Indexed that does not say otherwise.
        indexed = at(source.value, (*job, "completionMode")) in (None, "Indexed")
        made = partial(_replica, labels, f"{name}-{part}", sum(counts[:position]), pods, indexed)
        yield PodTemplate(source, (*job, "template"), part, replicas * pods, made)


def _coordinator(source: Object, spec: Path, name: str) -> Mapping[str, str]:
    leader = at(source.value, (*spec, "coordinator"))
    if not isinstance(leader, dict):
        return {}
    subdomain = at(source.value, (*spec, "network", "subdomain")) or name
    pod = "-".join(str(leader.get(key, 0)) for key in ("replicatedJob", "jobIndex", "podIndex"))
    return {JOBSET_COORDINATOR: f"{name}-{pod}.{subdomain}"}


def _replica(
    labels: Mapping[str, str], prefix: str, before: int, pods: int, indexed: bool, index: int
) -> Made:
    """The pod at `index` among all pods of a replicated job, whose Jobs have `pods` each."""
    job, pod = divmod(index, max(pods, 1))
    own = {**labels, JOB_INDEX: str(job), f"{_JOBSET}/job-global-index": str(before + job)}
    number = numbered(pod) if indexed else {}
    return Made({**own, **job_labels(f"{prefix}-{job}"), **number}, {**own, **number})


KINDS: Final = {
    ("jobset.x-k8s.io", "JobSet"): job_set,
    ("trainer.kubeflow.org", "TrainingRuntime"): training_runtime,
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"): training_runtime,
}
