"""The pods of a TrainJob, which are those of the JobSet that Trainer makes from its runtime.

Source: kubeflow/trainer 2.1, pkg/runtime/core/trainingruntime.go, the plugins for plain ML, torch
and MPI, and builder.go of the plugin jobset; `runtimePatches` as in 2.3.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.api_paths import CollectionPath
from webhook.errors import InvalidName
from webhook.policy.findings import path_text
from webhook.workloads.by_kind import group_of, templates_of_known_kind
from webhook.workloads.object import Object
from webhook.workloads.template import BuiltTemplate, at, count_problem, number_of_pods

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.api_paths import ObjectPath
    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path
    from webhook.sources.table import SourceTable
    from webhook.workloads.template import PodTemplate

_GROUP: Final = "trainer.kubeflow.org"
_RUNTIMES: Final = ("ClusterTrainingRuntime", "TrainingRuntime")
_STEP: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
_TEMPLATE: Final = ("template", "spec", "template")
_LABELS_AT: Final = ("spec", "podTemplateOverrides", 0, "metadata", "labels")


def is_train_job(source: Object) -> bool:
    return (group_of(source), source.kind) == (_GROUP, "TrainJob")


def runtime_title(source: Object) -> str:
    kind, name = _reference(source)
    return f"{kind}/{name}"


def runtime_path(source: Object) -> ObjectPath | None:
    """Return the path of its runtime in the API; None for other kinds and for invalid names."""
    kind, name = _reference(source)
    if not is_train_job(source) or kind not in _RUNTIMES:
        return None
    resource = f"{kind.lower()}s"
    namespace = source.namespace if kind == _RUNTIMES[1] else None
    try:
        return CollectionPath(str(source.value["apiVersion"]), resource, namespace).path_of(name)
    except InvalidName:
        return None


def templates_of_train_job(
    source: Object, among: Sequence[Object], sources: SourceTable
) -> list[PodTemplate]:
    """Return its pod templates; none if its runtime is not among the objects."""
    runtime = _find_runtime(source, among)
    if runtime is None:
        return []
    metadata = {"name": source.name, "namespace": source.namespace}
    value = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata,
        "spec": _jobset_spec(source.value, runtime.value),
    }
    return [
        replace(
            template,
            source=source,
            path=("spec", "runtimeRef"),
            miscounted=_miscounted(source, runtime),
            built=BuiltTemplate(template.template, _LABELS_AT),
        )
        for template in templates_of_known_kind(Object(source.file, value), sources) or []
    ]


def _miscounted(source: Object, runtime: Object) -> tuple[tuple[Path, str], ...]:
    """Return path and message of a number of nodes that is none, of the job or its runtime."""
    trainer_path, shared = ("spec", "trainer", "numNodes"), ("spec", "mlPolicy", "numNodes")
    problems: list[tuple[Path, str]] = [
        (trainer_path, count_problem(at(source.value, trainer_path)))
    ]
    if message := count_problem(at(runtime.value, shared)):
        text = f"{path_text(shared)} of {runtime.title} {message}"
        problems.append((("spec", "runtimeRef"), text))
    return tuple((path, message) for path, message in problems if message)


def _reference(source: Object) -> tuple[str, str]:
    kind = at(source.value, ("spec", "runtimeRef", "kind"))
    return str(kind or _RUNTIMES[0]), str(at(source.value, ("spec", "runtimeRef", "name")))


def _find_runtime(source: Object, among: Sequence[Object]) -> Object | None:
    wanted = _reference(source)
    for candidate in among:
        if group_of(candidate) == _GROUP and (candidate.kind, candidate.name) == wanted:
            shared = (
                candidate.kind == _RUNTIMES[0] or not candidate.namespace or not source.namespace
            )
            if shared or candidate.namespace == source.namespace:
                return candidate
    return None


def _jobset_spec(train_job: JsonObject, runtime: JsonObject) -> JsonObject:
    spec: Any = copy.deepcopy(at(runtime, ("spec", "template", "spec")))
    jobs = at(spec, ("replicatedJobs",))
    if not isinstance(spec, dict) or not isinstance(jobs, list):
        return {}
    for job in jobs:
        if isinstance(job, dict) and isinstance(at(job, _TEMPLATE), dict):
            _set_count(job, train_job, runtime)
            _set_resources(job, train_job)
            for patch in _patches(train_job, job.get("name")):
                job["template"]["spec"]["template"] = _merged(at(job, _TEMPLATE), patch)
    return spec


def _step_of(job: JsonObject) -> Any:
    return at(job, ("template", "metadata", "labels", _STEP))


def _set_count(job: JsonObject, train_job: JsonObject, runtime: JsonObject) -> None:
    """Each job of a step runs once; of the trainer, with the nodes that the TrainJob wants."""
    policy = at(runtime, ("spec", "mlPolicy"))
    wanted = at(train_job, ("spec", "trainer", "numNodes"))
    mpi = at(policy, ("mpi",))
    count = None
    if _step_of(job) is not None:
        job["replicas"] = 1
    if _step_of(job) == "trainer":
        given = None if mpi is not None else wanted
        count = given or (at(policy, ("numNodes",)) or 1 if policy is not None else None)
    if mpi is not None and wanted and job.get("name") == "node":
        count = max(wanted - 1, 1) if at(mpi, ("runLauncherAsNode",)) else wanted
    count = number_of_pods(count)
    if count is not None:
        job["template"]["spec"]["parallelism"] = count
        job["template"]["spec"]["completions"] = count


def _set_resources(job: JsonObject, train_job: JsonObject) -> None:
    resources = at(train_job, ("spec", "trainer", "resourcesPerNode"))
    containers = at(job, (*_TEMPLATE, "spec", "containers"))
    if resources and isinstance(containers, list) and _step_of(job) == "trainer":
        for container in containers:
            if isinstance(container, dict) and container.get("name") == "node":
                container["resources"] = resources


def _patches(train_job: JsonObject, job: Any) -> Iterator[JsonObject]:
    for patch in _items(train_job, ("spec", "podTemplateOverrides")):
        if any(at(target, ("name",)) == job for target in _items(patch, ("targetJobs",))):
            yield patch
    jobs = ("trainingRuntimeSpec", "template", "spec", "replicatedJobs")
    for patch in _items(train_job, ("spec", "runtimePatches")):
        for patched in _items(patch, jobs):
            if at(patched, ("name",)) == job and isinstance(
                template := at(patched, _TEMPLATE), dict
            ):
                yield template


def _items(value: Any, path: tuple[str, ...]) -> list[Any]:
    items = at(value, path)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _merged(template: Any, patch: JsonObject) -> JsonObject:
    """Return the template with the patch's metadata and placement, by a strategic merge.

    Containers and volumes are left as they are: a patch may add variables and mounts only.
    """
    spec = {
        key: value
        for key, value in (patch.get("spec") or {}).items()
        if key not in ("containers", "initContainers", "volumes")
    }
    metadata = {
        key: value
        for key, value in (patch.get("metadata") or {}).items()
        if key in ("labels", "annotations")
    }
    result: JsonObject = _merge(template, {"metadata": metadata, "spec": spec})
    return result


def _merge(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: _merge(old.get(key), value) for key, value in new.items()}}
    return new
