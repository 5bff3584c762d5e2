"""What a plain scalar of YAML is: text, a number, a boolean, or something that readers dispute."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Disputed:
    """A scalar that one reader of YAML takes for text and another for a boolean or a number.

    `yes`, `on`, `010`, `0x1F`, `1_000`: kubectl follows YAML 1.1, many editors and libraries 1.2.
    No field takes one: quoted it is text, and written plainly it is what is meant.
    """

    text: str
    meaning: str


ScalarValue: TypeAlias = str | int | float | bool | Disputed | None

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_OLD_BOOL: Final = frozenset(
    form
    for word in ("y", "n", "yes", "no", "on", "off")
    for form in (word, word.capitalize(), word.upper())
)
_INT: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)", re.ASCII)
_FLOAT: Final = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    re.ASCII,
)
# Leading zeros, underscores and other bases: YAML 1.1, 1.2 and their readers disagree on each.
_DISPUTED_NUMBER: Final = re.compile(
    r"[-+]?(0[0-9_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|0b[01_]+|[0-9][0-9]*_[0-9_]*(\.[0-9_]*)?)", re.ASCII
)
# No document means a longer number, and Python refuses to read the longest.
_MAX_NUMBER: Final = 64


def plain(text: str) -> ScalarValue:
    """The value of an unquoted scalar. Dates are text, as kubectl has them."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if text in _OLD_BOOL:
        return Disputed(text, "a boolean")
    return _number(text) if text[0] in "+-.0123456789" else text


def _number(text: str) -> ScalarValue:
    """The value of a text that begins as a number does."""
    if len(text) > _MAX_NUMBER:
        return Disputed(text, "a number") if text.strip("+-.eE_0123456789") == "" else text
    if _INT.fullmatch(text):
        return int(text)
    if _DISPUTED_NUMBER.fullmatch(text):
        return Disputed(text, "a number")
    if _FLOAT.fullmatch(text):
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text
