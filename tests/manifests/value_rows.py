"""A row of the chart's values, and what rows become: values.yaml, its schema, and the places.

The chart's template has one rule for all rows: a value that equals its default changes nothing,
because the objects have the default already. Any other value goes to the row's places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import yaml

from tests.manifests.value_schemas import Json, definitions, with_nulls

# The pods of all objects: those of the programs and the pages, and those of doctor.
_PODS: Final = (("Deployment", "spec/template/"), ("CronJob", "spec/jobTemplate/spec/template/"))
How = Literal["set", "merge", "append"]


@dataclass(frozen=True)
class Place:
    """Where a value goes in objects.

    kind, name: patterns of the objects, which match as a whole
    at: the keys on the way, with slashes. In a list: an element's name, its number, or * for all.
    how: `set` writes the value, or removes the field if the value is empty; `merge` adds its keys
        to a mapping; `append` adds to a list
    field: the field of the value that is meant; empty: the value
    item: what to write, if it is not the value; %v stands for the value
    """

    kind: str
    at: str
    how: How = "set"
    name: str = ".*"
    field: str = ""
    item: object = None


@dataclass(frozen=True)
class Value:
    """One value: its path with dots, what it does, its JSON schema, its default, and its places.

    Without places the chart's template has a rule of its own for it.
    """

    path: str
    about: str
    schema: Json
    default: Any
    places: tuple[Place, ...] = ()


def on_pods(at: str, how: How = "set") -> tuple[Place, ...]:
    """The places in the templates of all pods."""
    return tuple(Place(kind, f"{path}{at}", how) for kind, path in _PODS)


def on_deployment(
    name: str,
    at: str,
    how: How = "set",
    *,
    item: object = None,
) -> Place:
    """The place in one Deployment; what begins with pod/ or container/ is of its pods."""
    pod = "spec/template/spec/"
    at = at.replace("container/", f"{pod}containers/*/", 1).replace("pod/", pod, 1)
    return Place("Deployment", at, how, name, item=item)


def narrowing(kind: str, at: str, *, name: str = ".*") -> tuple[Place, ...]:
    """The places of a label selector that is required beside one that is there."""
    return (
        Place(kind, f"{at}/matchLabels", "merge", name, field="matchLabels"),
        Place(kind, f"{at}/matchExpressions", "append", name, field="matchExpressions"),
    )


def places(values: Sequence[Value]) -> list[Json]:
    """The rows that the chart's template reads, in the order in which it applies them."""
    return [
        {
            "value": value.path,
            "default": value.default,
            **{key: found for key, found in asdict(place).items() if found not in ("", None)},
        }
        for value in values
        for place in value.places
    ]


def values_text(values: Sequence[Value]) -> str:
    """values.yaml: each value under its description."""
    lines = ["# Made by `make manifests` from tests/manifests/chart_values.py; do not edit."]
    open_group = ""
    for value in values:
        group, _, key = value.path.rpartition(".")
        if group and group != open_group:
            lines.append(f"{group}:")
        open_group = group
        indent = "  " if group else ""
        lines.append(f"{indent}# {value.about}")
        dumped = yaml.safe_dump({key: value.default}, sort_keys=True, width=90)
        lines += [f"{indent}{line}" for line in dumped.splitlines()]
    return "\n".join(lines) + "\n"


def values_schema(values: Sequence[Value]) -> Json:
    """values.schema.json: no key that is not in the table."""
    schema = _closed({"$schema": "http://json-schema.org/draft-07/schema#", "title": "fairlead"})
    for value in values:
        group, _, key = value.path.rpartition(".")
        into = schema["properties"]
        if group:
            into = into.setdefault(group, _closed({}))["properties"]
        into[key] = {"description": value.about, **_or_default(value)}
    # values.yaml has them all, so only a null takes one away.
    for each in (schema, *schema["properties"].values()):
        if "properties" in each and "description" not in each:
            each["required"] = list(each["properties"])
    schema = with_nulls(schema)
    # Helm gives every chart this key.
    schema["properties"]["global"] = {"type": "object"}
    schema["definitions"] = definitions(schema["properties"])
    return schema


def described(schema: Json, values: Json) -> Iterator[tuple[str, Any, str]]:
    """The path, the default and the description of each value, from the chart's two files."""
    for key, each in schema["properties"].items():
        if "description" in each:
            yield key, values[key], each["description"]
        elif key in values:
            for path, default, about in described(each, values[key]):
                yield f"{key}.{path}", default, about


def _or_default(value: Value) -> Json:
    """The schema of a value, by which its default is valid too: an empty text is no choice."""
    choices = value.schema.get("enum")
    if choices and value.default not in choices:
        return {**value.schema, "enum": [value.default, *choices]}
    # An older draft ignores what stands beside a reference.
    return {"type": "object", "allOf": [value.schema]} if "$ref" in value.schema else value.schema


def _closed(more: Json) -> Json:
    return {**more, "type": "object", "additionalProperties": False, "properties": {}}
