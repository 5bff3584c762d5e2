"""Kinds that make pods: where their templates are, and what is added to the pods.

`webhook.workloads` uses it to find the pods of an object. Fields are named by paths:
`spec.replicas` starts at the object, `.replicas` at the entry of the list or mapping that `each`
names, or at the object without `each`. Texts have placeholders in braces for facts of a replica and
paths; `{.groupName|position}` takes the first that is present and neither empty nor 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    times:    fields whose product multiplies the count: each unit of the count is a group
    over:     fields whose product divides that product, without a remainder
    less:     what is subtracted from that product; without a rest there are no pods
    per_node: instead of a count: one pod per node
    first:    the field with the ordinal of the first replica
    owned:    the object is the controller of its pods
    bare:     the pod gets none of the template's metadata
    unmarked: what to do if these pods are to belong to a run, which no mark shows
    """

    template: Field | None
    like: Like | None = None
    build: Build | None = None
    when: tuple[Condition, ...] = ()
    any_of: tuple[Field, ...] = ()
    each: Field | None = None
    part: Text = ()
    count: tuple[Field, ...] = ()
    default: int = 1
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
    """Return a kind from the plain values of a file."""
    return PodKind(
        group=raw["group"],
        kind=raw["kind"],
        versions=tuple(raw.get("versions", ())),
        resource=raw.get("resource", ""),
        claims=_fields(raw, "claims"),
        only_mounted=raw.get("onlyMounted", False),
        reusable=raw.get("reusable", False),
        code=raw.get("code", ""),
        not_read=_fields(raw, "notRead"),
        pods=tuple(map(_pods, raw.get("pods", ()))),
    )


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


def _fields(raw: Mapping[str, Any], name: str) -> tuple[Field, ...]:
    return tuple(map(parse_field, raw.get(name, ())))


def _field(raw: Mapping[str, Any], name: str) -> Field | None:
    return parse_field(raw[name]) if name in raw else None


def _pods(raw: Mapping[str, Any]) -> Pods:
    count = raw.get("count", {})
    return Pods(
        template=_field(raw, "template"),
        like=_like(raw["like"]) if "like" in raw else None,
        build=_build(raw["build"]) if "build" in raw else None,
        when=tuple(map(_condition, raw.get("when", ()))),
        any_of=_fields(raw, "anyOf"),
        each=_field(raw, "each"),
        part=parse_text(raw.get("part", "")),
        count=_fields(count, "from"),
        default=count.get("default", 1),
        times=_fields(count, "times"),
        over=_fields(count, "over"),
        less=count.get("less", 0),
        per_node=count.get("perNode", False),
        first=_field(raw, "first"),
        owned=raw.get("owned", False),
        bare=raw.get("dropMetadata", False),
        unmarked=raw.get("unmarked", ""),
        adds=tuple(map(_addition, raw.get("adds", ()))),
    )


def _like(raw: Mapping[str, Any]) -> Like:
    return Like(
        name=parse_text(raw["name"]),
        group=raw.get("group", ""),
        kind=raw.get("kind", ""),
        spec=_field(raw, "spec"),
        object=_field(raw, "object"),
        metadata=_field(raw, "metadata"),
    )


def _build(raw: Mapping[str, Any]) -> Build:
    return Build(
        template=_field(raw, "template"),
        spec=_field(raw, "spec"),
        labels=_fields(raw, "labels"),
        annotations=_fields(raw, "annotations"),
        default=_sources(raw, "default"),
        set=_sources(raw, "set"),
        add=_sources(raw, "add"),
        containers=_fields(raw, "containers"),
        container=raw.get("container", "main"),
    )


def _sources(raw: Mapping[str, Any], name: str) -> Mapping[str, tuple[Field, ...]]:
    return {key: tuple(map(parse_field, fields)) for key, fields in raw.get(name, {}).items()}


def _addition(raw: Mapping[str, Any]) -> Addition:
    return Addition(
        when=tuple(map(_condition, raw.get("when", ()))),
        labels=_texts(raw, "labels"),
        annotations=_texts(raw, "annotations"),
        labels_from=_field(raw, "labelsFrom"),
    )


def _texts(raw: Mapping[str, Any], name: str) -> Mapping[str, Text]:
    return {key: parse_text(text) for key, text in raw.get(name, {}).items()}


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
