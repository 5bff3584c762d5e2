"""What a file says of a kind that makes pods: where its templates are, and what is added to them.

`webhook.workloads` finds the pods of an object by it. Fields are named by paths: `spec.replicas`
starts at the object, `.replicas` at the entry of the list or the mapping that `each` names, or at
the object if there is none. Texts have placeholders in braces: facts of a replica, and paths;
`{.groupName|position}` takes the first that is there and is neither empty nor 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

# Facts that a text may name, and what they are.
FACTS: Final[Mapping[str, str]] = {
    "name": "the object's name",
    "key": "the entry's key, in lower case, where `each` names a mapping",
    "position": "the entry's position, from 0",
    "part": "the text of `part`",
    "index": "the replica's index, from 0",
    "ordinal": "the index, counted from `first`",
    "group": "the index of the replica's group, where `count.times` makes groups",
    "member": "the replica's index within its group",
    "groups": "how many groups the entry has",
    "allGroups": "how many groups all entries have",
    "globalGroup": "the index of the group among those of all entries",
}
BY_INDEX: Final = frozenset({"index", "ordinal", "group", "member", "globalGroup"})
"""Those of them that differ between replicas of one template."""
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")


class Field(NamedTuple):
    """The path of a field, from the object or from the entry of `each`."""

    of_entry: bool
    path: tuple[str, ...]


Choice: TypeAlias = Field | str
"""What stands between the bars of a placeholder: a field, or a fact, or a number as it is."""
Text: TypeAlias = tuple[str | tuple[Choice, ...], ...]
"""A text, in pieces: what is written as it stands, and placeholders."""


class Condition(NamedTuple):
    """What must hold of a replica.

    fact:   "part", "without", "index" or "field"
    among:  the values, of which it is one; of a field None: it is there
    field:  which field, if that is the fact
    absent: it holds without the field, too
    """

    fact: str
    among: tuple[str | int, ...] | None = None
    field: Field | None = None
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Addition:
    """What a controller adds to the metadata of each replica of which all of `when` holds."""

    when: tuple[Condition, ...] = ()
    labels: Mapping[str, Text] = field(default_factory=dict)
    annotations: Mapping[str, Text] = field(default_factory=dict)
    labels_from: Field | None = None


class Like(NamedTuple):
    """Another kind, of which the object makes one: by that name, with the spec at that field."""

    group: str
    kind: str
    spec: Field
    name: Text


@dataclass(frozen=True, slots=True)
class Pods:
    """Pods of one kind of object that are alike, but for their part and their index.

    template: where the pod template is; without a path the object is itself the pod
    like:     instead of a template, the kind whose pods these are
    each:     a list or a mapping, each entry of which has a template
    part:     what the pods are called
    count:    fields with the count, of which the first that has a number counts; else `default`
    times:    fields by whose product it is multiplied: each of the count is a group
    per_node: instead of a count: one pod a node
    first:    the field with the ordinal of the first replica
    owned:    the object is named as the controller of its pods
    bare:     nothing of the template's metadata reaches the pod
    """

    template: Field | None
    like: Like | None = None
    each: Field | None = None
    part: Text = ()
    count: tuple[Field, ...] = ()
    default: int = 1
    times: tuple[Field, ...] = ()
    per_node: bool = False
    first: Field | None = None
    owned: bool = False
    bare: bool = False
    adds: tuple[Addition, ...] = ()


@dataclass(frozen=True, slots=True)
class PodKind:
    """A kind that makes pods.

    versions: those of its versions that are meant; all others, if there are none
    resource: its resource, if whoever writes one is told what its pods will meet
    through:  the resources that stand between an object and its pods, in this order
    claims:   lists of claims that its controller mounts under their names
    reusable: an object makes no pods, others make them by it
    code:     the module that reads what this file cannot say
    pods:     none if its pods are not known beforehand
    """

    group: str
    kind: str
    versions: tuple[str, ...] = ()
    resource: str = ""
    through: tuple[str, ...] = ()
    claims: tuple[Field, ...] = ()
    reusable: bool = False
    code: str = ""
    pods: tuple[Pods, ...] = ()


def pod_kind(raw: Mapping[str, Any]) -> PodKind:
    """A kind, from the plain values of a file."""
    return PodKind(
        group=raw["group"],
        kind=raw["kind"],
        versions=tuple(raw.get("versions", ())),
        resource=raw.get("resource", ""),
        through=tuple(raw.get("through", ())),
        claims=_fields(raw, "claims"),
        reusable=raw.get("reusable", False),
        code=raw.get("code", ""),
        pods=tuple(map(_pods, raw.get("pods", ()))),
    )


def parse_field(text: str) -> Field:
    """A path: `spec.replicas`, `.replicas`, or `.` for all of it. Raises ValueError."""
    of_entry = text.startswith(".")
    path = tuple(text.removeprefix(".").split(".")) if text != "." else ()
    if not all(map(str.isidentifier, path)):
        raise ValueError(f"{text!r} is not a path: want fields joined by dots, as spec.replicas")
    return Field(of_entry, path)


def parse_text(text: str) -> Text:
    """A text with placeholders. Raises ValueError for a placeholder that means nothing."""
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
        each=_field(raw, "each"),
        part=parse_text(raw.get("part", "")),
        count=_fields(count, "from"),
        default=count.get("default", 1),
        times=_fields(count, "times"),
        per_node=count.get("perNode", False),
        first=_field(raw, "first"),
        owned=raw.get("owned", False),
        bare=raw.get("dropMetadata", False),
        adds=tuple(map(_addition, raw.get("adds", ()))),
    )


def _like(raw: Mapping[str, Any]) -> Like:
    return Like(raw["group"], raw["kind"], parse_field(raw["spec"]), parse_text(raw["name"]))


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
