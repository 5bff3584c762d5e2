"""Errors of pydantic in our own sentences: the value seen, the values allowed, the cure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from webhook.policy.scalars import Disputed
from webhook.strict import OWN_ERROR, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_core import ErrorDetails

NULL: Final = "is null; give a value, or remove the field"

_WANTED: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}
_QUOTED_VALUE: Final = re.compile(r"'([^']*)'")


def sentence(error: ErrorDetails, written: str | None = None) -> str:
    """What is wrong, without the place. `written` is the scalar's text as it stands in the file."""
    kind, seen = error["type"], error["input"]
    if kind.startswith(OWN_ERROR):
        return error["msg"]
    if kind == "missing":
        return "is required"
    if seen is None:
        return NULL
    if kind in _WANTED:
        return _other_type(kind, seen, written)
    known = _KNOWN.get(kind)
    return known(error.get("ctx", {}), seen, written) if known else error["msg"]


def _noun(seen: object) -> str:
    match seen:
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "a mapping"
    return "something else"


def _other_type(kind: str, seen: object, written: str | None) -> str:
    wanted = _WANTED[kind]
    text = written if written is not None else str(seen)
    match seen:
        case list() | dict():
            return f"want {wanted}, not {_noun(seen)}"
        case Disputed() if kind == "string_type":
            return f"{text} can be read as {seen.meaning}; quote it: {text!r}"
        case Disputed():
            plainly = "in decimal" if kind == "int_type" else "true or false"
            return f"{text} can be read as text or as {seen.meaning}; write it {plainly}"
        case str() if kind == "int_type" and re.fullmatch(r"-?[0-9]+", seen, re.ASCII):
            return f"want {wanted}, not text; remove the quotes around {shown(seen)}"
        case str() if kind == "bool_type" and seen.lower() in ("true", "false"):
            return f"want {wanted}, not text; remove the quotes around {shown(seen)}"
    if kind == "string_type":
        return f"want text, and {_cut(text)} is {_noun(seen)}; quote it: {shown(text)}"
    return f"want {wanted}, not {shown(text)}"


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"


def _literal(context: dict[str, Any], seen: object, written: str | None) -> str:
    allowed = ", ".join(_QUOTED_VALUE.findall(context["expected"]))
    if isinstance(seen, list | dict):
        return f"want one of {allowed}, not {_noun(seen)}"
    return f"{shown(written if written is not None else seen)} is not one of {allowed}"


def _too_few(context: dict[str, Any], seen: object, _: str | None) -> str:
    least = context["min_length"]
    if not seen:
        return f"is empty; give at least {least} item, or remove the field"
    return f"want at least {least} items, not {context['actual_length']}"


_KNOWN: Final[dict[str, Callable[[dict[str, Any], object, str | None], str]]] = {
    "literal_error": _literal,
    "too_short": _too_few,
    "too_long": lambda context, *_: (
        f"want at most {context['max_length']} item(s), not {context['actual_length']}"
    ),
    "string_too_short": lambda *_: "is empty; give a value, or remove the field",
    "string_too_long": lambda context, *_: f"want at most {context['max_length']} characters",
    "greater_than_equal": lambda context, seen, _: (
        f"{seen} is too small; the least is {context['ge']}"
    ),
    "less_than_equal": lambda context, seen, _: f"{seen} is too large; the most is {context['le']}",
}
