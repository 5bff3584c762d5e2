"""Kinds that make pods: where their templates are, and what is added to the pods.

`webhook.workloads` uses it to find the pods of an object. Fields are named by paths:
`spec.replicas` starts at the object, `.replicas` at the entry of the list or mapping that `each`
names, or at the object without `each`. Texts have placeholders in braces for facts of a replica and
paths; `{.groupName|position}` takes the first that is present and neither empty nor 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Final, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

# Facts that a text may use, with their descriptions.
FACTS: Final[Mapping[str, str]] = {
    "name": "the object's name",
    "key": "the entry's key, in lower case, where `each` names a mapping",
    "position": "the entry's position, from 0",
    "part": "the text of `part`",
    "index": "the replica's index, from 0",
    "ordinal": "the index, counted from `first`",
    "number": "the replica's index, from 1",
    "group": "the index of the replica's group, where `count.times` makes groups",
    "member": "the replica's index within its group",
    "rank": "the replica's index within its group, from 1",
    "groups": "how many groups the entry has",
    "allGroups": "how many groups all entries have",
    "globalGroup": "the index of the group among those of all entries",
    "unknown": "a value that only the controller knows, such as a hash or a uid",
}
UNKNOWN: Final = "(known only after creation)"
"""The value of the fact `unknown`. No policy can name it: labels have no such values."""
BY_INDEX: Final = frozenset(
    {"index", "ordinal", "number", "group", "member", "rank", "globalGroup"}
)
"""The facts that differ between replicas of one template."""
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")


class Field(NamedTuple):
    """The path of a field, from the object or from the entry of `each`."""

    of_entry: bool
    path: tuple[str, ...]


Choice: TypeAlias = Field | str
"""An alternative in a placeholder: a field, a fact, or a literal number."""
Text: TypeAlias = tuple[str | tuple[Choice, ...], ...]
"""A text in pieces: literals and placeholders."""


class Condition(NamedTuple):
    """A condition on a replica.

    fact:   "part", "without", "index" or "field"
    among:  the permitted values; None for a field: it is present
    field:  the field, if that is the fact
    absent: True if the condition also holds without the field
    """

    fact: str
    among: tuple[str | int, ...] | None = None
    field: Field | None = None
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Addition:
    """Metadata that a controller adds to each replica for which all of `when` holds."""

    when: tuple[Condition, ...] = ()
    labels: Mapping[str, Text] = field(default_factory=dict)
    annotations: Mapping[str, Text] = field(default_factory=dict)
    labels_from: Field | None = None


class Like(NamedTuple):
    """Another object that the object creates, whose kind creates the pods.

    spec:     the field with its spec, if its kind is fixed
    object:   the field with the whole object, if its author writes any kind there
    metadata: the field with its metadata, beside `spec`
    """

    name: Text
    group: str = ""
    kind: str = ""
    spec: Field | None = None
    object: Field | None = None
    metadata: Field | None = None


class Build(NamedTuple):
    """A pod template that the controller makes of several fields.

    template:    the field with a pod template to start from
    spec:        instead of it, the field with a pod's spec
    labels:      fields with labels; later ones replace earlier ones
    annotations: fields with annotations
    default:     fields of the pod's spec, if the start has none: the first that is not empty
    set:         fields of the pod's spec, which replace those of the start
    add:         fields of the pod's spec: mappings and lists that are added to those before
    containers:  fields with a container or a list of them, which come last
    container:   the name of containers without one
    """

    template: Field | None = None
    spec: Field | None = None
    labels: tuple[Field, ...] = ()
    annotations: tuple[Field, ...] = ()
    default: Mapping[str, tuple[Field, ...]] = {}
    set: Mapping[str, tuple[Field, ...]] = {}
    add: Mapping[str, tuple[Field, ...]] = {}
    containers: tuple[Field, ...] = ()
    container: str = "main"


@dataclass(frozen=True, slots=True)
class Pods:
    """Pods of one kind of object that differ only by part and index.

    template: the path of the pod template; without a path the object itself is the pod
    like:     instead of a template, the kind that creates these pods
    build:    instead of a template, the fields from which the controller makes one
    when:     conditions on the object, or on the entry of `each`
    any_of:   fields of which one is present
    each:     a list or mapping with a template in each entry
    part:     the name of these pods within the object
    count:    fields with the count; the first that has a number is used, else `default`
    least:    fields with the smallest count; the first that has a number is used
    most:     fields with the largest count; the first that has a number is used
    times:    fields whose product multiplies the count: each unit of the count is a group
    over:     fields whose product divides that product, without a remainder
    less:     what is subtracted from that product; without a rest there are no pods
    per_node: instead of a count: one pod per node
    first:    the field with the ordinal of the first replica
    owned:    the object is the controller of its pods
    bare:     the pod gets none of the template's metadata
    unmarked: what to do if these pods are to belong to a run, which no mark shows
    """

    template: Field | None = None
    like: Like | None = None
    build: Build | None = None
    when: tuple[Condition, ...] = ()
    any_of: tuple[Field, ...] = ()
    each: Field | None = None  # as in the API
    part: Text = ()
    count: tuple[Field, ...] = ()
    default: int = 1
    least: tuple[Field, ...] = ()
    most: tuple[Field, ...] = ()
    times: tuple[Field, ...] = ()
    over: tuple[Field, ...] = ()
    less: int = 0
    per_node: bool = False
    first: Field | None = None
    owned: bool = False
    bare: bool = False
    unmarked: str = ""
    adds: tuple[Addition, ...] = ()


@dataclass(frozen=True, slots=True)
class PodKind:
    """A kind that creates pods.

    versions: the versions that are described; if empty, all others
    resource: its resource, if authors of such objects are warned about the future pods
    claims:   lists of claims or volumes, for each of which its controller adds a volume to the pods
    only_mounted: a pod gets volumes only for the claims that one of its containers mounts
    reusable: an object creates no pods, but others create them from it
    code:     the module for what this file cannot express
    not_read: fields that describe or change pods, and are not read; users are told
    pods:     empty if its pods are not predictable
    """

    group: str
    kind: str
    versions: tuple[str, ...] = ()
    resource: str = ""
    claims: tuple[Field, ...] = ()
    only_mounted: bool = False
    reusable: bool = False
    code: str = ""
    not_read: tuple[Field, ...] = ()
    pods: tuple[Pods, ...] = ()


def pod_kind(raw: Mapping[str, Any]) -> PodKind:
    kind: PodKind = _object(PodKind, raw)
    return kind


def parse_field(text: str) -> Field:
    """Parse a path: `spec.replicas`, `.replicas`, or `.` for all of it. Raises ValueError."""
    of_entry = text.startswith(".")
    path = tuple(text.removeprefix(".").split(".")) if text != "." else ()
    if not all(map(str.isidentifier, path)):
        raise ValueError(f"{text!r} is not a path: want fields joined by dots, as spec.replicas")
    return Field(of_entry, path)


def parse_text(text: str) -> Text:
    """Parse a text with placeholders. Raises ValueError for an unknown placeholder."""
    pieces = _PLACEHOLDER.split(text)
    return tuple(
        _choices(piece) if position % 2 else piece
        for position, piece in enumerate(pieces)
        if piece or position % 2
    )


def _choices(text: str) -> tuple[Choice, ...]:
    return tuple(map(_choice, text.split("|")))


def _choice(text: str) -> Choice:
    if text in FACTS or text.isdigit():
        return text
    if "." in text:
        return parse_field(text)
    raise ValueError(
        f"{{{text}}} means nothing: want a path such as spec.name, a number, or one of "
        f"{', '.join(FACTS)}"
    )


def _condition(raw: Mapping[str, Any]) -> Condition:
    if "field" not in raw:
        ((fact, values),) = raw.items()
        return Condition(fact, tuple(values))
    among = raw.get("in")
    return Condition(
        "field",
        None if among is None else tuple(among),
        parse_field(raw["field"]),
        raw.get("orAbsent", False),
    )


def _pods(raw: Mapping[str, Any]) -> Pods:
    count = {key: value for key, value in raw.get("count", {}).items() if key != "from"}
    counted = {**count, "count": raw.get("count", {}).get("from", ())}
    pods: Pods = _object(Pods, {**raw, **counted, "bare": raw.get("dropMetadata", False)})
    return pods


# What is not made by the names and types of its fields.
_PARSERS: Final[Mapping[Any, Callable[[Any], Any]]] = {
    Condition: _condition,
    Field: parse_field,
    Pods: _pods,
    Text: parse_text,
}


@cache
def _maker(wanted: Any) -> Callable[[Any], Any]:
    if wanted in _PARSERS:
        return _PARSERS[wanted]
    inner, origin = get_args(wanted), get_origin(wanted)
    if not inner:
        return partial(_object, wanted) if get_type_hints(wanted) else lambda raw: raw
    make = _maker(inner[0])
    if origin is tuple:
        return lambda raw: tuple(map(make, raw))
    if origin is Mapping:
        make_value = _maker(inner[1])
        return lambda raw: {key: make_value(value) for key, value in raw.items()}
    return make  # or None


def _object(kind: type, raw: Mapping[str, Any]) -> Any:
    fields = _makers(kind)
    return kind(**{fields[key][0]: fields[key][1](raw[key]) for key in fields.keys() & raw.keys()})


@cache
def _makers(kind: type) -> Mapping[str, tuple[str, Callable[[Any], Any]]]:
    """Return by the name of a field in files its own name, and what makes its value."""
    return {
        re.sub("_(.)", lambda match: match[1].upper(), name): (name, _maker(wanted))
        for name, wanted in get_type_hints(kind).items()
    }
