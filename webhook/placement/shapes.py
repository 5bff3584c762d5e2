"""Types of the Kubernetes JSON that placement works on, and reading what may be none of them.

They stay plain dictionaries, as the API server sent them, so that a field or an operator that
Fairlead does not know passes through untouched. Source: k8s.io/api/core/v1 types.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterator

Json: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Any]


def as_object(value: Json) -> JsonObject:
    """Return the value, or an empty object for what is none."""
    return value if isinstance(value, dict) else {}


def objects_in(value: Json) -> Iterator[JsonObject]:
    """Yield the objects of a list; nothing for what is none."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


class Taint(TypedDict, total=False):
    """v1.Taint: `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str
    effect: str


class Toleration(TypedDict, total=False):
    """v1.Toleration: no `operator` means Equal, no `effect` means all effects."""

    key: str
    operator: str
    value: str
    effect: str
    tolerationSeconds: int


class Requirement(TypedDict, total=False):
    """v1.NodeSelectorRequirement: one expression on a label (or field) of a node."""

    key: str
    operator: str
    values: list[str]


class Term(TypedDict, total=False):
    """v1.NodeSelectorTerm: its requirements are ANDed; without any it matches no node."""

    matchExpressions: list[Requirement]
    matchFields: list[Requirement]


class PreferredTerm(TypedDict):
    """v1.PreferredSchedulingTerm."""

    weight: int
    preference: Term
