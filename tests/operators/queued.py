"""What people send to Kueue's queues: jobs, pods, and workloads whose pods wait at its gate."""

from __future__ import annotations

from collections.abc import Mapping

from tests.cluster.manifests import Json, job_spec, pod, template, workload
from tests.objects import an_object
from webhook import names


def job(
    queue: str,
    annotations: Mapping[str, str] | None = None,
    *,
    name: str = "train",
    priority: str = "",
    pods: int = 1,
    **fields: object,
) -> Json:
    """A Job as its author writes it, of so many pods in a row, which last a second each.

    `priority` is a WorkloadPriorityClass of Kueue.
    """
    spec = {**job_spec(), "completions": pods}
    spec["template"]["metadata"]["annotations"] = dict(annotations or {})
    spec["template"]["spec"] |= fields
    asking(spec["template"])
    labels = {names.KUEUE_QUEUE: queue}
    if priority:
        labels[f"{names.KUEUE_PREFIX}priority-class"] = priority
    return an_object("batch/v1", "Job", {"name": name, "labels": labels}, spec)


def plain(queue: str) -> Json:
    """A pod without a job, for a queue."""
    return asking(pod("p", labels={names.RUN: "r", names.KUEUE_QUEUE: queue}))


def served(kind: str, queue: str, name: str = "web", **annotations: str) -> Json:
    """A Deployment or StatefulSet of two pods, with these annotations, for a queue."""
    pods = asking(template())
    pods["metadata"]["annotations"] = annotations
    made = workload(kind, name, pods, replicas=2)
    made["metadata"]["labels"] = {names.KUEUE_QUEUE: queue}
    return made


def asking(made: Json) -> Json:
    """A pod, or a template of one, that asks for something that the queues have a quota of."""
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    return made
