"""Results as documents for programs: JSON in camel case, and objects as kubectl takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

# The version of what commands print for programs. No API server knows it.
REPORTS: Final = "output.fairlead.dev/v1alpha1"


def as_one(objects: Sequence[Any]) -> Any:
    """Objects as the one document that kubectl takes and prints in JSON."""
    return objects[0] if len(objects) == 1 else as_list(objects)


def as_list(objects: Sequence[Any]) -> dict[str, Any]:
    """Objects as a List, also where there is one."""
    return {"apiVersion": "v1", "kind": "List", "items": objects}


def as_report(kind: str, result: Any) -> dict[str, Any]:
    """Return a result as one object with apiVersion and kind, by which programs know its fields."""
    return {"apiVersion": REPORTS, "kind": kind, **_members(result)}


def as_finding(problem: object, severity: str = "error") -> dict[str, Any]:
    """Return a problem as the member of a report's `findings`: severity, message, and its place.

    problem: a Finding or another dataclass or NamedTuple with these fields, or a line of text
    """
    if isinstance(problem, str):
        return {"severity": severity, "message": problem}
    document: dict[str, Any] = as_document(problem)
    return document


def as_document(result: Any) -> Any:
    """Return a result as JSON: objects have the fields of dataclasses and NamedTuples, in camel
    case.
    """
    result = _members(result)
    if isinstance(result, dict):
        return {key: as_document(value) for key, value in result.items()}
    if isinstance(result, (list, tuple)):
        return [as_document(value) for value in result]
    return result


def _members(result: Any) -> Any:
    """Return the fields of a dataclass or NamedTuple by name; anything else as it is."""
    names = getattr(result, "_fields", None) or getattr(result, "__dataclass_fields__", None)
    if names is None:
        return result
    from pydantic.alias_generators import to_camel

    return {to_camel(name): getattr(result, name) for name in names}
