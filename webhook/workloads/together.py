"""Which objects create pods that run at one time, how many of them, and how many of those begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.placement.shapes import objects_in
from webhook.workloads.by_kind import group_of
from webhook.workloads.template import at, count_at, number_of_pods

if TYPE_CHECKING:
    from collections.abc import Collection

    from webhook.workloads.object import Object
    from webhook.workloads.template import PodTemplate

# API groups of kinds whose pods run together: Runs, Jobs, JobSets, LeaderWorkerSets, the kinds of
# Kubeflow.
_GROUPS: Final = frozenset(
    (
        *(names.GROUP, "batch", "jobset.x-k8s.io", "leaderworkerset.x-k8s.io"),
        *("kubeflow.org", "trainer.kubeflow.org"),
    )
)
# The part of a TrainJob whose pods run before the others.
_INITIALIZER: Final = "-initializer"
# Of Jobs, completions are counted, and fewer may run at one time.
_JOBS: Final = ("Job", "CronJob")
# With how many pods an elastic run begins.
_MINIMA: Final = (
    ("spec", "pytorch", "elastic", "minReplicas"),
    ("spec", "elasticPolicy", "minReplicas"),
)


def run_together(source: Object, parts: Collection[str]) -> bool:
    """Return whether the object's pods run at one time: not those of steps, nor of jobs that wait
    for others to end. `parts` are those of its templates."""
    for job in objects_in(at(source.value, ("spec", "replicatedJobs"))):
        if any(before.get("status") == "Complete" for before in objects_in(job.get("dependsOn"))):
            return False
    if any(part.endswith(_INITIALIZER) for part in parts):
        return False
    # The Run of a plan has no apiVersion.
    return source.kind == names.RUN_KIND or group_of(source) in _GROUPS


def at_one_time(template: PodTemplate) -> int:
    """Return how many of the template's pods run at one time: of a Job `parallelism`, and no more
    than there are completions."""
    count = template.count or 0
    job = at(template.source.value, template.path[:-1]) if template.path else None
    parallel = count_at(job, ("parallelism",))
    if template.source.kind in _JOBS:
        return min(count, parallel)
    completions = number_of_pods(at(job, ("completions",)))
    if template.source.kind == "JobSet" and parallel and completions is not None:
        # It counts parallelism for each Job, of which each runs no more than it has completions.
        return count // parallel * min(parallel, completions)
    return count


def least_that_begin(source: Object, asked: int) -> int:
    """Return with how many of so many pods an elastic run begins; all for others."""
    for path in _MINIMA:
        least = number_of_pods(at(source.value, path))
        if least is not None:
            return min(least, asked)
    return asked
