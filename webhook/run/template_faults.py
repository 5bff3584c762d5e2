"""Check a Run's templates and resulting pods against the pod schema."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.errors import InvalidRun
from webhook.pod_schema import field_checks, object_rules, template_rules, text_rules
from webhook.pod_schema.field_checks import MAX_FAULTS
from webhook.run import mistakes
from webhook.run.plan import plan
from webhook.run.queue import queue_of
from webhook.run.template import DIRECTIVE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.placement.shapes import JsonObject
    from webhook.pod_schema.field_checks import Fault, Path
    from webhook.run.model import Run
    from webhook.run.plan import Plan

_TEMPLATE: Final = ("spec", "template")
_SPEC: Final = "PodSpec"


def written_faults(run: Run) -> Iterator[Fault]:
    """Yield the faults and likely mistakes of each template, with paths from the Run's root."""
    for at, template in _templates(run):
        for fault in field_checks.faults(template, whole=False):
            yield fault._replace(path=(*at, *fault.path))
        yield from mistakes.written_mistakes(template, at)
    for role, replica in (run.spec.replicas or {}).items():
        if replica.resources:
            resources = replica.resources.model_dump(by_alias=True, exclude_none=True)
            at = ("spec", "replicas", role, "resources")
            yield from mistakes.resource_mistakes(resources, at)


def faults(planned: Plan) -> list[Fault]:
    """Return `written_faults`, and faults of the resulting pods at the nearest path in the Run."""
    run = planned.run
    run_faults = [*written_faults(run)]
    fault_paths = {fault.path for fault in run_faults}
    for role, pod in _pods(planned):
        spec = pod["spec"]
        beside = template_rules.metadata_faults(pod["metadata"], spec)
        lasting = template_rules.lasting_faults(spec, "Deployment") if run.spec.serving else ()
        of_spec = (*field_checks.faults(spec, _SPEC), *template_rules.faults(spec))
        for fault in (*of_spec, *beside, *lasting):
            path = _origin(run, role, spec, fault.path)
            if path not in fault_paths and fault.severity == "error":
                fault_paths.add(path)
                run_faults.append(fault._replace(path=path))
    run_faults += _variable_faults(planned)
    return [*run_faults, *_metadata_faults(run), *_service_name_faults(run), *_gang_faults(run)]


def _variable_faults(planned: Plan) -> Iterator[Fault]:
    """Yield a warning for each variable of the framework that the Run sets itself."""
    run = planned.run
    fault_paths: set[Path] = set()
    for role in planned.templates:
        spec = planned.pod(role, 0, 0)["spec"]
        for at, name in mistakes.replaced_variables(planned, role):
            path = _origin(run, role, spec, at)
            if path not in fault_paths:
                fault_paths.add(path)
                setter = run.spec.framework or "the controller"
                text = f"{setter} sets {name} for each replica, and this value replaces it in all"
                yield field_checks.Fault(path, f"{text}; leave it out", "warning")


def delegated_faults(run: Run) -> list[Fault]:
    """As `faults`, of a Run whose pods another engine creates.

    Its templates are those of the same Run on the native backend. If that has no plan, only the
    templates as written are checked.
    """
    native = run.spec.model_copy(update={"backend": "native"})
    try:
        planned = plan(run.model_copy(update={"spec": native}))
    except InvalidRun:
        return [*written_faults(run)]
    return faults(planned)


def _service_name_faults(run: Run) -> Iterator[Fault]:
    """Yield a fault for the name of the API server's Service, which every cluster has."""
    if (run.namespace, run.name) == ("default", "kubernetes"):
        text = (
            "is the name of the API server's own Service, and the run needs a Service of its name; "
            "rename it"
        )
        yield field_checks.Fault(("metadata", "name"), text)


def _gang_faults(run: Run) -> Iterator[Fault]:
    """Yield a fault for a start that a queue would make, which the API server cannot see."""
    if run.spec.gang is not None and queue_of(run):
        text = (
            f"Kueue starts a run with the label {names.KUEUE_QUEUE} all at once, by quota for all "
            "of its pods; remove gang, or the label"
        )
        yield field_checks.Fault(("spec", "gang"), text)


def _metadata_faults(run: Run) -> Iterator[Fault]:
    """Yield faults in labels and annotations of templates and environments."""
    for at, template in _templates(run):
        metadata = template.get("metadata")
        written_metadata = metadata if isinstance(metadata, dict) else {}
        yield from object_rules.label_faults(
            written_metadata.get("labels"), (*at, "metadata", "labels")
        )
        path = (*at, "metadata", "annotations")
        yield from text_rules.annotation_faults(written_metadata.get("annotations"), path)
    replicas = run.spec.replicas or {}
    for at, environment in (
        (("spec",), run.spec.environment),
        *((("spec", "replicas", role), replica.environment) for role, replica in replicas.items()),
    ):
        annotations = environment.annotations if environment else None
        yield from text_rules.annotation_faults(annotations, (*at, "environment", "annotations"))


def _templates(run: Run) -> Iterator[tuple[Path, JsonObject]]:
    yield _TEMPLATE, run.spec.template
    for role, replica in (run.spec.replicas or {}).items():
        if replica.template:
            yield ("spec", "replicas", role, "template"), replica.template


def _pods(plan: Plan) -> Iterator[tuple[str, JsonObject]]:
    """Yield a pod of each kind, or its template, with its role."""
    if plan.run.spec.serving:
        yield next(iter(plan.templates)), plan.deployment()["spec"]["template"]
        return
    for role, replica in plan.run.spec.roles.items():
        yield role, plan.pod(role, 0, 0)
        # The model validates all other overrides of single replicas.
        indexes = {
            entry.resources.model_dump_json(): entry.index
            for entry in replica.by_index or ()
            if entry.resources is not None
        }
        for index in islice(indexes.values(), MAX_FAULTS):
            yield role, plan.pod(role, index, 0)


def _origin(run: Run, role: str, spec: JsonObject, path: Path) -> Path:
    """Return the Run's path for a path in a pod's spec; else that of its role or template."""
    replica = (run.spec.replicas or {}).get(role)
    role_path: Path = ("spec", "replicas", role)
    if replica and replica.resources and path[:1] == ("containers",) and "resources" in path:
        return (*role_path, *path[2:])
    if replica and replica.template:
        written_path = _find_written(replica.template.get("spec"), spec, path)
        if written_path is not None:
            return (*role_path, "template", "spec", *written_path)
    written_path = _find_written(run.spec.template.get("spec"), spec, path)
    if written_path is not None:
        return (*_TEMPLATE, "spec", *written_path)
    return role_path if replica else _TEMPLATE


def _find_written(raw: Any, made: Any, path: Path) -> Path | None:
    """Return the path in a template of the value at `path` of a pod; None if it is not there.

    For a missing field, this is the path of the mapping that lacks it.
    """
    result: list[str | int] = []
    for position, step in enumerate(path):
        last = position == len(path) - 1
        if isinstance(made, list) and isinstance(step, int) and isinstance(raw, list):
            here = next((n for n, item in enumerate(raw) if _same(item, made[step])), None)
            if here is None:
                return None
            result.append(here)
            raw, made = raw[here], made[step]
        elif isinstance(raw, dict) and isinstance(made, dict) and step in raw:
            result.append(step)
            raw, made = raw[step], made.get(step)
        elif last and isinstance(raw, dict) and raw and step not in (made or {}):
            result.append(step)
        else:
            return None
    return tuple(result)


def _same(written: Any, made: Any) -> bool:
    """Return True if a list item of a template is the pod's item, by merge key."""
    if not isinstance(written, dict) or not isinstance(made, dict) or DIRECTIVE in written:
        return bool(written == made)
    for key in ("mountPath", "devicePath", "containerPort", "name"):
        if key in made:
            return bool(written.get(key) == made[key])
    return bool(written == made)
