"""The pod templates of Kubernetes' own kinds, with what each controller adds to its pods.

Source: the controllers in k8s.io/kubernetes/pkg/controller, v1.36. Labels whose value is made at
random (hashes, uids) are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.workloads.template import Made, PodTemplate, at, count_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.policy.findings import Path
    from webhook.workloads.object import Object
    from webhook.workloads.template import Maker

_TEMPLATE: Final = ("spec", "template")


def pod(source: Object) -> Iterator[PodTemplate]:
    """A bare pod, or one that a controller has made: it comes as it is."""
    yield PodTemplate(source, ())


def replicated(source: Object) -> Iterator[PodTemplate]:
    """Deployment, ReplicaSet, ReplicationController: every replica is like the others."""
    yield PodTemplate(source, _TEMPLATE, count=count_at(source.value, ("spec", "replicas")))


def stateful_set(source: Object) -> Iterator[PodTemplate]:
    """StatefulSet: each pod carries its name and index."""
    start = count_at(source.value, ("spec", "ordinals", "start"), 0)

    def made(index: int) -> Made:
        ordinal = start + index
        return Made(
            {
                "apps.kubernetes.io/pod-index": str(ordinal),
                "statefulset.kubernetes.io/pod-name": f"{source.name}-{ordinal}",
            }
        )

    count = count_at(source.value, ("spec", "replicas"))
    yield PodTemplate(source, _TEMPLATE, count=count, made=made)


def daemon_set(source: Object) -> Iterator[PodTemplate]:
    """DaemonSet: one pod a node, owned by it: defaults and overrides leave it alone."""
    owner = {
        "apiVersion": source.value.get("apiVersion", "apps/v1"),
        "kind": source.kind,
        "name": source.name,
        "controller": True,
    }
    yield PodTemplate(source, _TEMPLATE, count=None, made=lambda _: Made(owner=owner))


def job(source: Object) -> Iterator[PodTemplate]:
    """Job: the pods carry its name, and if it is Indexed, their index."""
    yield PodTemplate(
        source,
        _TEMPLATE,
        count=job_count(source, ("spec",)),
        made=job_maker(source, ("spec",), source.name),
    )


def cron_job(source: Object) -> Iterator[PodTemplate]:
    """CronJob: its Jobs are named by the minute, which nobody knows beforehand."""
    spec: Path = ("spec", "jobTemplate", "spec")
    made = job_maker(source, spec, f"{source.name}-00000000")
    yield PodTemplate(source, (*spec, "template"), count=job_count(source, spec), made=made)


def pod_template(source: Object) -> Iterator[PodTemplate]:
    """PodTemplate: whoever uses it adds what nobody knows here."""
    yield PodTemplate(source, ("template",))


def job_count(source: Object, spec: Path) -> int:
    """How many pods a Job makes, retries aside: its completions, else its parallelism."""
    parallelism = count_at(source.value, (*spec, "parallelism"))
    return count_at(source.value, (*spec, "completions"), parallelism)


def job_maker(source: Object, spec: Path, name: str) -> Maker:
    """What the Job controller adds to the pods of a Job of this name, described at `spec`."""
    indexed = at(source.value, (*spec, "completionMode")) == "Indexed"

    def made(index: int) -> Made:
        number = numbered(index) if indexed else {}
        return Made({**job_labels(name), **number}, number)

    return made


def job_labels(name: str) -> dict[str, str]:
    """The labels by which a Job knows its pods; by the older one, too."""
    return {"batch.kubernetes.io/job-name": name, "job-name": name}


def numbered(index: int) -> dict[str, str]:
    """What the pod at `index` of an Indexed Job carries, as a label and as an annotation."""
    return {"batch.kubernetes.io/job-completion-index": str(index)}


KINDS: Final = {
    ("", "Pod"): pod,
    ("", "PodTemplate"): pod_template,
    ("", "ReplicationController"): replicated,
    ("apps", "Deployment"): replicated,
    ("apps", "ReplicaSet"): replicated,
    ("apps", "StatefulSet"): stateful_set,
    ("apps", "DaemonSet"): daemon_set,
    ("batch", "Job"): job,
    ("batch", "CronJob"): cron_job,
}
