"""Results as documents for programs: JSON in camel case, and objects as kubectl takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def as_one(objects: Sequence[Any]) -> Any:
    """Objects as the one document that kubectl takes and prints in JSON."""
    return objects[0] if len(objects) == 1 else as_list(objects)


def as_list(objects: Sequence[Any]) -> dict[str, Any]:
    """Objects as a List, also where there is one."""
    return {"apiVersion": "v1", "kind": "List", "items": objects}


def as_document(result: Any) -> Any:
    """Return a result as JSON: objects have the fields of dataclasses and NamedTuples, in camel
    case.
    """
    names = getattr(result, "_fields", None) or getattr(result, "__dataclass_fields__", None)
    if names is not None:
        from pydantic.alias_generators import to_camel

        result = {to_camel(name): getattr(result, name) for name in names}
    if isinstance(result, dict):
        return {key: as_document(each) for key, each in result.items()}
    if isinstance(result, (list, tuple)):
        return [as_document(each) for each in result]
    return result
