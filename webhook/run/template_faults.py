"""What the pod schema says against a Run's templates, and against the pods that come of them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from webhook.pod_schema import fields, rules
from webhook.pod_schema.fields import MOST
from webhook.run.template import DIRECTIVE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.placement.shapes import JsonObject
    from webhook.pod_schema.fields import Fault, Path
    from webhook.run.model import Run
    from webhook.run.plan import Plan

_TEMPLATE: Final = ("spec", "template")
_SPEC: Final = "PodSpec"


def written_faults(run: Run) -> Iterator[Fault]:
    """Faults of the fields of each template as it is written, the paths from the Run's root."""
    for at, template in _templates(run):
        for each in fields.faults(template, whole=False):
            yield each._replace(path=(*at, *each.path))


def faults(plan: Plan) -> list[Fault]:
    """The same, and what is wrong with the pods, each where the Run says it or next to it."""
    run = plan.run
    found = [*written_faults(run)]
    told = {each.path for each in found}
    for role, spec in _pods(plan):
        for each in (*fields.faults(spec, _SPEC), *rules.faults(spec)):
            path = _origin(run, role, spec, each.path)
            if path not in told and each.severity == "error":
                told.add(path)
                found.append(each._replace(path=path))
    return found


def _templates(run: Run) -> Iterator[tuple[Path, JsonObject]]:
    yield _TEMPLATE, run.spec.template
    for role, replica in (run.spec.replicas or {}).items():
        if replica.template:
            yield ("spec", "replicas", role, "template"), replica.template


def _pods(plan: Plan) -> Iterator[tuple[str, JsonObject]]:
    """The spec of a pod of each kind, and its role."""
    if plan.run.spec.serving:
        yield next(iter(plan.moulds)), plan.deployment()["spec"]["template"]["spec"]
        return
    for role, replica in plan.run.spec.roles.items():
        yield role, plan.pod(role, 0, 0)["spec"]
        # Of what single replicas have of their own, the model judges all but resources.
        asked = {
            entry.resources.model_dump_json(): entry.index
            for entry in replica.by_index or ()
            if entry.resources is not None
        }
        for index in islice(asked.values(), MOST):
            yield role, plan.pod(role, index, 0)["spec"]


def _origin(run: Run, role: str, spec: JsonObject, path: Path) -> Path:
    """Where the Run says what stands at a path of a pod's spec; else its role, or its template."""
    replica = (run.spec.replicas or {}).get(role)
    own: Path = ("spec", "replicas", role)
    if replica and replica.resources and path[:1] == ("containers",) and "resources" in path:
        return (*own, *path[2:])
    if replica and replica.template:
        found = _written(replica.template.get("spec"), spec, path)
        if found is not None:
            return (*own, "template", "spec", *found)
    found = _written(run.spec.template.get("spec"), spec, path)
    if found is not None:
        return (*_TEMPLATE, "spec", *found)
    return own if replica else _TEMPLATE


def _written(raw: Any, made: Any, path: Path) -> Path | None:
    """The path in a template of what is at `path` of a pod; None if it does not say it.

    What is missing is where the mapping is that it is missing of.
    """
    result: list[str | int] = []
    for position, step in enumerate(path):
        last = position == len(path) - 1
        if isinstance(made, list) and isinstance(step, int) and isinstance(raw, list):
            here = next((n for n, each in enumerate(raw) if _same(each, made[step])), None)
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
    """Whether an entry of a list in a template is that of the pod's: by what merges it."""
    if not isinstance(written, dict) or not isinstance(made, dict) or DIRECTIVE in written:
        return bool(written == made)
    for key in ("mountPath", "devicePath", "containerPort", "name"):
        if key in made:
            return bool(written.get(key) == made[key])
    return bool(written == made)
