"""Write values and small operations in CEL."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Check(NamedTuple):
    """A validation: the CEL that must be true, and the error message."""

    expression: str
    message: str


class Piece(NamedTuple):
    """A part of the policies: variables by name, lists of JSONPatch operations, and checks.

    A variable may use those before it; of two pieces the later one may use the earlier one's.
    """

    variables: Mapping[str, str] = {}
    operations: Sequence[str] = ()
    checks: Sequence[Check] = ()


def text(value: str | int) -> str:
    """Return a string or a number.

    JSON and CEL have the same escapes, except surrogates, which are not needed.
    """
    return json.dumps(value, ensure_ascii=False)


def texts(values: Iterable[str | int]) -> str:
    """Return a list of strings, or of numbers."""
    return f"[{', '.join(map(text, values))}]"


def data(value: Any) -> str:
    """Return a JSON value. Inner values are dyn(), because CEL requires elements of one type."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{text(key)}: {_inner(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_inner, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _inner(value: Any) -> str:
    return f"dyn({data(value)})"


def var(name: str) -> str:
    """Return a variable of the policy."""
    return f"variables.{name}"


def policy(position: int) -> str:
    """Return CEL for whether the policy at this position matches the pod."""
    return var(f"p{position}")


def every(conditions: Iterable[str]) -> str:
    """Return CEL for whether all of the conditions hold."""
    return " && ".join(conditions) or "true"


def some(conditions: Iterable[str]) -> str:
    """Return CEL for whether one of the conditions holds."""
    operands = list(conditions)
    return f"({' || '.join(operands)})" if operands else "false"


def flat(lists: Iterable[str]) -> str:
    """Return CEL for one list of several."""
    expressions = list(lists)
    return f"[{', '.join(expressions)}].flatten()" if expressions else "[]"


def list_if(condition: str, items: str) -> str:
    """Return the list if the condition holds, else none."""
    return f"({condition} ? {items} : [])"


def add(path: str, value: str) -> str:
    """Return an operation; the path is CEL."""
    return f'JSONPatch{{op: "add", path: {path}, value: {value}}}'


def replace(path: str, value: str) -> str:
    """Return an operation; the path is CEL."""
    return f'JSONPatch{{op: "replace", path: {path}, value: {value}}}'


def remove(path: str) -> str:
    """Return an operation; the path is CEL."""
    return f'JSONPatch{{op: "remove", path: {path}}}'


def entry(key: str, value: Any) -> str:
    """Return a list of one member of an object, as `members` takes it."""
    return f'[dyn({{"key": dyn({text(key)}), "value": {_inner(value)}}})]'


def members(path: str, entries: str) -> str:
    """Operations that set members of the object at the path, which is plain text."""
    pointer = f"{text(f'{path}/')} + jsonpatch.escapeKey(m.key)"
    return f"{entries}.map(m, {add(pointer, 'm.value')})"


def parent(presence: str, wanted: str, path: str, empty: str) -> str:
    """Return an operation that creates an object or a list if it is needed and missing."""
    return f"({wanted} && !({presence}) ? [{add(text(path), empty)}] : [])"
