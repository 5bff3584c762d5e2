"""The pod templates of any object, a Run's among them, and their errors."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.errors import InvalidRun, UnreadableText
from webhook.placement.fallback import History, parse_events
from webhook.pod_schema.field_checks import MAX_FAULTS
from webhook.policy.findings import path_text
from webhook.run import template_faults as of_runs
from webhook.run.backends.engine_object import delegated_object
from webhook.run.model.intervals import parse_intervals
from webhook.run.plan import plan
from webhook.run.run_documents import run_of
from webhook.sources import SHIPPED
from webhook.sources.kind_model import UNKNOWN
from webhook.workloads.object import ANSWERED, Object
from webhook.workloads.template import BuiltTemplate, PodTemplate, ReplicaAdditions, at
from webhook.workloads.template_search import pod_templates
from webhook.workloads.trainjob import runtime_path
from webhook.workloads.workload_faults import is_judged, template_faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from webhook.api_paths import ObjectPath
    from webhook.placement.shapes import JsonObject
    from webhook.pod_schema.field_checks import Fault
    from webhook.policy.findings import Path
    from webhook.run.plan import Plan
    from webhook.sources.table import SourceTable

_LABELS: Final[Path] = ("spec", "template", "metadata", "labels")


def templates_of(
    source: Object,
    among: Sequence[Object] = (),
    sources: SourceTable = SHIPPED,
    *,
    namespace: str = "",
) -> list[PodTemplate]:
    """Return the object's pod templates; none if it creates no pods.

    A Run has those of its plan, or of the object that it becomes on another engine. `among` are
    objects beside it, to which it may refer; `namespace` is for a Run that names none. Raises
    InvalidRun.
    """
    if not source.is_own_run:
        return pod_templates(source, among, sources)
    run = run_of(source.value, source.namespace or namespace)
    if run.spec.delegated:
        return pod_templates(replace(source, value=delegated_object(run)), sources=sources)
    return planned_templates(source, plan(run))


def planned_templates(source: Object, plan: Plan) -> list[PodTemplate]:
    """Return a Run's pod templates: for each role, and for each replica with its own overrides."""
    return [
        PodTemplate(
            source,
            ("spec", "replicas", role),
            role,
            len(numbers),
            partial(_replica, plan, role, numbers),
            BuiltTemplate(_pod(plan, role, numbers[0]), _LABELS),
            numbers=numbers if len(numbers) < count else None,
        )
        for role, count in plan.gang.counts.items()
        for numbers in _alike(plan, role, count)
    ]


def _alike(plan: Plan, role: str, count: int) -> Iterator[Sequence[int]]:
    """Yield the replicas without overrides, then each of the others."""
    special = [index for index in range(count) if (role, index) in plan.special]
    if usual := [index for index in range(count) if (role, index) not in plan.special]:
        yield usual
    yield from ([index] for index in special)


def _replica(plan: Plan, role: str, numbers: Sequence[int], at: int) -> ReplicaAdditions:
    pod = _pod(plan, role, numbers[at])
    metadata = pod["metadata"]
    owners = metadata.get("ownerReferences") or [None]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return ReplicaAdditions(labels, annotations, owners[0], pod=pod)


def _pod(plan: Plan, role: str, index: int) -> JsonObject:
    """Return a pod as the webhook gets it; of a Deployment, as its ReplicaSet creates it."""
    if not plan.run.spec.serving:
        return plan.pod(role, index, 0)
    template = plan.deployment()["spec"]["template"]
    prefix = {"generateName": f"{plan.run.name}-", "namespace": plan.run.namespace}
    metadata = template["metadata"]
    labels = {**metadata.get("labels", {}), "pod-template-hash": UNKNOWN}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**prefix, **metadata, "labels": labels},
        "spec": template["spec"],
    }


def history_of_replica(template: PodTemplate, index: int, now: datetime | None) -> History | None:
    """Return the history with which the controller would create a replica of a live Run now."""
    [number] = template.numbers_of([index])
    return history_in(template.source, template.part, number, now)


def history_in(source: Object, role: str, number: int, now: datetime | None) -> History | None:
    """Return the history of a replica that a live Run has, as of now."""
    if now is None or not source.is_own_run:
        return None
    entries = at(source.value, ("status", "replicas", role, "history")) or ()
    for entry in entries:
        if number in parse_intervals(entry["indexes"]):
            with suppress(UnreadableText):
                return History(now, parse_events(entry["events"]))
    return None


def queued_templates(
    workload: dict[str, Any], sources: SourceTable = SHIPPED, *beside: JsonObject
) -> list[PodTemplate]:
    """Return the pod templates of a workload that is written; `beside` are what it refers to.

    Kueue starts workloads in its queues, and may give their pods a flavor's tolerations: pods have
    its scheduling gate until then, in a suspended Job too. Raises InvalidRun.
    """
    if not isinstance(workload.get("kind"), str):
        return []
    templates = templates_of(Object(ANSWERED, workload), _objects(beside), sources)
    # The Jobs of a CronJob have the labels of its jobTemplate.
    about = (at(workload, (*path, "metadata", "labels")) for path in ((), ("spec", "jobTemplate")))
    if any(isinstance(labels, dict) and labels.get(names.KUEUE_QUEUE) for labels in about):
        return [replace(template, made=partial(_queued, template)) for template in templates]
    return templates


def _queued(template: PodTemplate, index: int) -> ReplicaAdditions:
    """Add Kueue's gate, but to a pod that Kueue admitted, or whose shape is wrong."""
    made, pod = template.made(index), template.pod(index)
    metadata, spec = pod.get("metadata"), pod.get("spec")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    admitted = isinstance(labels, dict) and names.KUEUE_PODSET in labels
    if admitted or not isinstance(spec, dict):
        return made._replace(pod=pod)
    gates = spec.get("schedulingGates") or []
    if not isinstance(gates, list):
        return made._replace(pod=pod)
    gated = {**spec, "schedulingGates": [*gates, {"name": names.KUEUE_ADMISSION_GATE}]}
    return made._replace(pod={**pod, "spec": gated})


def faults_of(
    workload: dict[str, Any], sources: SourceTable = SHIPPED, *beside: JsonObject
) -> list[str]:
    """Return errors in the templates of a workload by the pod schema, each with its path.

    None for kinds whose templates the API server validates itself, and for a Run without a valid
    plan, which is reported already.
    """
    source = Object(ANSWERED, workload)
    faults: Iterable[Fault]
    if source.is_own_run:
        try:
            faults = run_faults(source)
        except InvalidRun:
            return []
    else:
        every = (
            fault
            for template in pod_templates(source, _objects(beside), sources)
            if not is_judged(template)
            for fault in template_faults(template, sources)
        )
        faults = islice(every, MAX_FAULTS)
    return [f"{path_text(fault.path)}: {fault.message}" for fault in faults]


def run_faults(source: Object) -> Sequence[Fault]:
    """Return the faults of a Run's templates and pods. Raises InvalidRun."""
    run = run_of(source.value, source.namespace)
    return of_runs.delegated_faults(run) if run.spec.delegated else of_runs.faults(plan(run))


def refers_to(workload: dict[str, Any]) -> ObjectPath | None:
    """Return the path in the API of the runtime of a TrainJob; None for other kinds."""
    return runtime_path(Object(ANSWERED, workload))


def _objects(values: Iterable[JsonObject]) -> list[Object]:
    return [Object(ANSWERED, value) for value in values]
