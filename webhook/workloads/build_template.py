"""Read fields of an object by the paths of `kind_model`, and make the pod template of a `Build`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from webhook.sources.kind_model import UNKNOWN
from webhook.workloads.template import BuiltTemplate, at, count_at, count_problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path
    from webhook.sources.kind_model import Build, Choice, Field, Text
    from webhook.sources.table import SourceTable
    from webhook.workloads.object import Object


def built_template(view: ObjectView, build: Build) -> BuiltTemplate | None:
    """Return the template that the controller makes; None if what it starts from is absent."""
    start: Any = {}
    if begin := build.template or build.spec:
        start = view.value(begin)
        if not isinstance(start, dict):
            return None
    value = {"spec": _spec(view, build, start)}
    if metadata := _metadata(view, build, start):
        value = {"metadata": metadata, **value}
    begins = view.path(build.template) if build.template else None
    return BuiltTemplate(
        value,
        view.path(build.labels[-1]) if build.labels else (*(begins or ()), "metadata", "labels"),
        begins,
        partial(_write, view, build, value),
        partial(_path_of, view, build),
    )


def _spec(view: ObjectView, build: Build, start: JsonObject) -> JsonObject:
    written_spec = start.get("spec") if build.template else start
    spec: JsonObject = dict(written_spec) if isinstance(written_spec, dict) else {}
    for name, fields in build.default.items():
        if not spec.get(name) and (value := _first(view, fields)):
            spec[name] = value
    for name, fields in build.set.items():
        if value := _first(view, fields):
            spec[name] = value
    for name, fields in build.add.items():
        for field in fields:
            if value := _sum(spec.get(name), view.value(field)):
                spec[name] = value
    containers = [
        {"name": build.container, **container}
        for field in build.containers
        for container in _listed(view.value(field))
        if isinstance(container, dict)
    ]
    if containers or not spec.get("containers"):
        every = [*_listed(spec.get("containers")), *containers]
        spec["containers"] = every or [{"name": build.container}]
    return spec


def _metadata(view: ObjectView, build: Build, start: JsonObject) -> JsonObject:
    written_metadata = start.get("metadata") if build.template else None
    metadata: JsonObject = dict(written_metadata) if isinstance(written_metadata, dict) else {}
    for key, fields in (("labels", build.labels), ("annotations", build.annotations)):
        for field in fields:
            metadata[key] = _sum(metadata.get(key), view.value(field))
        if key in metadata and metadata[key] is None:
            del metadata[key]
    return metadata


def _write(
    view: ObjectView, build: Build, before: JsonObject, value: JsonObject, after: JsonObject
) -> None:
    """Write the difference of two templates into an object; what has no field is left out."""
    for name in {**before["spec"], **after["spec"]}:
        old, new = before["spec"].get(name), after["spec"].get(name)
        if old == new:
            continue
        path = _path_of(view, build, name)
        if path is not None:
            added = name in build.add
            _put(value, path, _sum(at(value, path), _difference(old, new)) if added else new)
    start = (*view.path(build.template), "metadata") if build.template else ()
    for key, fields in (("labels", build.labels), ("annotations", build.annotations)):
        old, new = (template.get("metadata", {}).get(key) or {} for template in (before, after))
        changed = {name: text for name, text in new.items() if old.get(name) != text}
        if changed and (fields or start):
            path = view.path(fields[-1]) if fields else (*start, key)
            _put(value, path, {**(at(value, path) or {}), **changed})


def _path_of(view: ObjectView, build: Build, name: str) -> Path | None:
    """Return the path of the object's own field for a field of the pod's spec; None without one."""
    if name in build.add:
        return view.path(build.add[name][-1])
    if name in build.set:
        return view.path(build.set[name][0])
    if build.template:
        return (*view.path(build.template), "spec", name)
    return (*view.path(build.spec), name) if build.spec else None


def _put(value: JsonObject, path: Path, new: Any) -> None:
    """Set a value at a path, or remove it if it is None; mappings on the way are made."""
    holder: Any = value
    for step in path[:-1]:
        if isinstance(holder, dict) and holder.get(step) is None:
            holder[step] = {}
        holder = at(holder, (step,))
    if not isinstance(holder, dict):
        return  # of another shape, which the API server refuses
    if new is None:
        holder.pop(path[-1], None)
    else:
        holder[path[-1]] = new


def _first(view: ObjectView, fields: Sequence[Field]) -> Any:
    return next((value for field in fields if (value := view.value(field))), None)


def _sum(base: Any, other: Any) -> Any:
    """Return two mappings or lists as one; the later value of a key counts."""
    if isinstance(base, dict) and isinstance(other, dict):
        return {**base, **other}
    if isinstance(base, list) and isinstance(other, list):
        return [*base, *(item for item in other if item not in base)]
    return base if other is None else other


def _difference(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {key: value for key, value in new.items() if old.get(key) != value}
    if isinstance(old, list) and isinstance(new, list):
        return [item for item in new if item not in old]
    return new


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


@dataclass(frozen=True, slots=True)
class ObjectView:
    """An object, or one that it creates: its name, the paths of its parts, and an entry in it.

    sources: the table in which the kinds of created objects are found
    """

    source: Object
    name: str
    sources: SourceTable
    spec: Path = ("spec",)
    metadata: Path = ("metadata",)
    entry: Path = ()

    def path(self, field: Field) -> Path:
        """Return the path of a field from the root of the object."""
        if field.of_entry:
            return (*self.entry, *field.path)
        first, *rest = field.path
        start = {"spec": self.spec, "metadata": self.metadata}.get(first, (first,))
        return (*start, *rest)

    def value(self, field: Field) -> Any:
        return at(self.source.value, self.path(field))

    def number(self, fields: Sequence[Field], default: int = 1) -> int:
        for field in reversed(fields):
            default = count_at(self.source.value, self.path(field), default)
        return default

    def miscounted(self, fields: Sequence[Field]) -> Iterator[tuple[Path, str]]:
        """Yield path and message of each field with another value than a number of pods."""
        for field in fields:
            if message := count_problem(self.value(field)):
                yield self.path(field), message

    def fill(self, text: Text, facts: Mapping[str, Any]) -> str:
        """Return a text with its placeholders replaced."""
        return "".join(
            piece if isinstance(piece, str) else self._choose(piece, facts) for piece in text
        )

    def _choose(self, choices: Sequence[Choice], facts: Mapping[str, Any]) -> str:
        value: Any = None
        for choice in choices:
            if choice == "unknown":
                return UNKNOWN
            value = facts.get(choice, choice) if isinstance(choice, str) else self.value(choice)
            if value:
                break
        return "" if value is None else str(value)
