"""Finds the pod templates of any object: by its kind, or if that is unknown, by their shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.workloads.by_kind import known_templates
from webhook.workloads.template import PodTemplate, count_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path
    from webhook.workloads.object import Object

# Steps of a path that say nothing of what a pod is for.
_PLAIN_STEPS: Final = frozenset({"spec", "template", "jobTemplate", "podTemplate", "jobSpec"})
_NAMES: Final = ("name", "groupName")


def pod_templates(source: Object) -> list[PodTemplate]:
    """The object's pod templates; none if it makes no pods.

    A template that a known kind should have and has not is left out.
    """
    known = known_templates(source)
    return list(_by_shape(source, source.value, ())) if known is None else known


def _by_shape(source: Object, value: Any, path: Path) -> Iterator[PodTemplate]:
    """Every mapping from here down whose spec has containers."""
    if isinstance(value, list):
        for position, item in enumerate(value):
            yield from _by_shape(source, item, (*path, position))
    elif isinstance(value, dict):
        if _is_template(value):
            yield PodTemplate(source, path, _part(source, path), _count(source, path))
            return
        for key, child in value.items():
            if path or key not in ("metadata", "status"):
                yield from _by_shape(source, child, (*path, key))


def _is_template(value: JsonObject) -> bool:
    spec = value.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    return (
        isinstance(containers, list)
        and bool(containers)
        and all(isinstance(each, dict) and "name" in each for each in containers)
    )


def _part(source: Object, path: Path) -> str:
    """What the pods are called: by a name beside the template, or by the way to it."""
    holder: Any = source.value
    named = ""
    for step in path:
        if isinstance(step, str) and step not in _PLAIN_STEPS:
            named = step
        holder = holder[step]
        beside = holder if isinstance(holder, dict) else {}
        named = next((beside[k] for k in _NAMES if isinstance(beside.get(k), str)), named)
    return named


def _count(source: Object, path: Path) -> int:
    """The replicas beside the template, or in it."""
    beside = count_at(source.value, (*path[:-1], "replicas"))
    return count_at(source.value, (*path, "replicas"), beside)
