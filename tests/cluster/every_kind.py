"""A workload of each kind whose controller is Kubernetes' own, around a pod's spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.cluster.manifests import Json, pod, workload
from tests.objects import an_object
from webhook import names

LABELS = {names.RUN: "r", "team": "a", "app": "app"}


def made_of(spec: Json, labels: Mapping[str, str] = LABELS, **fields: object) -> Json:
    """A template of pods with this spec, and more of its fields."""
    return {"metadata": {"labels": labels}, "spec": {**spec, **fields}}


def a_job(spec: Json, **fields: object) -> Json:
    return an_object(
        "batch/v1", "Job", "job", {"template": made_of(spec, restartPolicy="Never"), **fields}
    )


def indexed_job(spec: Json) -> Json:
    return a_job(spec, completionMode="Indexed", completions=2, parallelism=2)


def cron_job(spec: Json) -> Json:
    """A CronJob of Jobs that are not Indexed, one at a time."""
    fields = {"schedule": "@every 1s", "concurrencyPolicy": "Forbid"}
    jobs = {"jobTemplate": {"spec": a_job(spec)["spec"]}}
    return an_object("batch/v1", "CronJob", "nightly", {**fields, **jobs})


def controlled(spec: Json) -> Json:
    fields = {"selector": {"app": "app"}, "replicas": 2, "template": made_of(spec)}
    return an_object("v1", "ReplicationController", "controlled", fields)


def of_apps(kind: str, **fields: object) -> Callable[[Json], Json]:
    """What makes one of the kinds of apps/v1."""
    return lambda spec: workload(kind, kind.lower(), made_of(spec), **fields)


EVERY_KIND: Mapping[str, Callable[[Json], Json]] = {
    "pod": lambda spec: pod("solo", labels=LABELS, **spec),
    "job": indexed_job,
    "cronjob": cron_job,
    "deployment": of_apps("Deployment", replicas=2),
    "replicaset": of_apps("ReplicaSet", replicas=2),
    "statefulset": of_apps("StatefulSet", replicas=2, serviceName="s"),
    "daemonset": of_apps("DaemonSet"),
    "replicationcontroller": controlled,
}
