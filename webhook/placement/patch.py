"""JSON Patch (RFC 6902) from a pod and its new placement.

Only placement fields are ever touched, by construction: the operations are made from the fields of
PodPlacement and from nothing else.
"""

from __future__ import annotations

from itertools import compress
from operator import is_not
from typing import TYPE_CHECKING, Any, Final, TypedDict

from webhook.placement.fields import OF_PODS, Shape
from webhook.placement.pod import AFFINITY_LISTS, REQUIRED, PodPlacement

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.placement.fields import Field
    from webhook.placement.shapes import JsonObject


class _Remove(TypedDict):
    op: str
    path: str


class Operation(_Remove, total=False):
    """One operation: `add` (which also replaces a member), `remove`; `path` is a JSON Pointer."""

    value: Any


# The fields that a policy may change, by their positions in PodPlacement; affinity has two.
_PATCHED: Final = {
    at: field
    for at, attribute in enumerate(PodPlacement._fields)
    for field in OF_PODS
    if field.attribute == attribute and field.by_policies
}
_POSITIONS: Final = range(len(PodPlacement._fields))


def pointer(token: str) -> str:
    """Return a member's name as a JSON Pointer token (RFC 6901, section 3)."""
    return token.replace("~", "~0").replace("/", "~1")


def operations(pod: JsonObject, old: PodPlacement, new: PodPlacement) -> list[Operation]:
    """Return the operations that change `pod` from placement `old` to placement `new`.

    Empty if nothing changes. A missing parent is added whole.
    """
    result: list[Operation] = []
    # Few fields change, and the others are the same objects.
    for at in compress(_POSITIONS, map(is_not, old, new)):
        field = _PATCHED.get(at)
        if field is not None and new[at] != old[at]:
            _WRITERS[field.shape](result, field, pod[field.holder], old[at], new[at])
    if new.required is not old.required or new.lists is not old.lists:
        spec: JsonObject = pod["spec"]
        affinity: JsonObject = spec.get("affinity") or {}
        _members(result, "/spec", spec, "affinity", affinity, affinity_of(affinity, new))
    return result


def _members(
    result: list[Operation],
    parent: str,
    holder: JsonObject,
    name: str,
    old: JsonObject,
    new: JsonObject,
) -> None:
    """Operations for one object, member by member, or whole if it is missing."""
    if new is old or new == old:
        return
    path = f"{parent}/{pointer(name)}"
    if not isinstance(holder.get(name), dict):
        result.append({"op": "add", "path": path, "value": new})
        return
    for key, value in new.items():
        if key not in old or old[key] != value:
            if isinstance(value, dict) and isinstance(old.get(key), dict):
                _members(result, path, old, key, old[key], value)
            else:
                result.append({"op": "add", "path": f"{path}/{pointer(key)}", "value": value})
    result.extend(
        {"op": "remove", "path": f"{path}/{pointer(key)}"} for key in old if key not in new
    )


def _map(
    result: list[Operation], field: Field, holder: JsonObject, old: JsonObject, new: JsonObject
) -> None:
    _members(result, f"/{field.holder}", holder, field.name, old, new)


def _scalar(
    result: list[Operation], field: Field, holder: JsonObject, _old: str | int, new: str | int
) -> None:
    """Set one value; fields derived from the old one are removed, to be derived again."""
    result.append({"op": "add", "path": field.path, "value": new})
    derived = [name for name in field.derived if name in holder]
    result.extend({"op": "remove", "path": f"/{field.holder}/{name}"} for name in derived)


def _list(
    result: list[Operation], field: Field, holder: JsonObject, old: list[Any], new: list[Any]
) -> None:
    """Operations for one list: append if it only grows at its end, else replace."""
    path = field.path
    if old and len(new) > len(old) and new[: len(old)] == old:
        result.extend({"op": "add", "path": f"{path}/-", "value": item} for item in new[len(old) :])
    elif not new and field.name in holder:
        result.append({"op": "remove", "path": path})
    else:
        result.append({"op": "add", "path": path, "value": new})


_WRITERS: Final[dict[Shape, Callable[..., None]]] = {
    Shape.MAP: _map,
    Shape.LIST: _list,
    Shape.SCALAR: _scalar,
}


def affinity_of(before: JsonObject, placement: PodPlacement) -> JsonObject:
    """Return the pod's affinity object with the placement's terms and lists."""
    after = {
        key: dict(value) if isinstance(value, dict) else value for key, value in before.items()
    }
    if placement.required is not None:
        node_affinity = _holder(after, "nodeAffinity")
        required = dict(node_affinity.get(REQUIRED) or {})
        required["nodeSelectorTerms"] = placement.required
        node_affinity[REQUIRED] = required
    for name, entries in placement.lists.items():
        kind, key = AFFINITY_LISTS[name]
        _holder(after, kind)[key] = entries
    return after


def _holder(affinity: JsonObject, kind: str) -> JsonObject:
    if not isinstance(affinity.get(kind), dict):
        affinity[kind] = {}
    holder: JsonObject = affinity[kind]
    return holder
