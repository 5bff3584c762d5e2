"""YAML trees with line and column, and the types of their plain scalars."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.policy.findings import Path

# Line and column in a file, both from 1.
Place: TypeAlias = tuple[int, int]


@dataclass(slots=True)
class Scalar:
    """A leaf. `text` is what was written, without its quotes, if it was `quoted`."""

    place: Place
    value: ScalarValue
    text: str
    quoted: bool = False
    size: int = 1
    height: int = 0


@dataclass(slots=True)
class Sequence:
    """A list of nodes."""

    place: Place
    items: list[Node] = field(default_factory=list)
    # How many values there are from here down, and how deep, with aliases written out.
    size: int = 1
    height: int = 0


@dataclass(slots=True)
class Mapping:
    """A mapping with the node of every key. Of a key that comes twice, the first is kept."""

    place: Place
    entries: dict[str, tuple[Scalar, Node]] = field(default_factory=dict)
    size: int = 1
    height: int = 0


Node: TypeAlias = Scalar | Sequence | Mapping


def value(node: Node, scalar: Callable[[ScalarValue], Any] = lambda content: content) -> Any:
    """Return the node as plain values: dictionaries, lists, and scalars of
    `webhook.policy.scalars`, each as `scalar` converts it.
    """
    match node:
        case Scalar():
            return scalar(node.value)
        case Sequence():
            return [value(item, scalar) for item in node.items]
        case Mapping():
            return {key: value(child, scalar) for key, (_, child) in node.entries.items()}


def find(node: Node, path: Path) -> Node | None:
    """Return the node at a path, or None if there is none."""
    for step in path:
        match node:
            case Mapping() if step in node.entries:
                node = node.entries[str(step)][1]
            case Sequence() if isinstance(step, int) and 0 <= step < len(node.items):
                node = node.items[step]
            case _:
                return None
    return node


def locate(node: Node, path: Path, *, at_key: bool = False) -> Place:
    """Return the place of a path's value; for a missing one, that of the nearest parent.

    A mapping or list below a key has the place of the key, where a reader looks for it. With
    `at_key`, a scalar has the place of its key too.
    """
    place = node.place
    for step in path:
        match node:
            case Mapping() if step in node.entries:
                key, node = node.entries[str(step)]
                inline = isinstance(node, Scalar) and node.text and not at_key
                place = node.place if inline else key.place
            case Sequence() if isinstance(step, int) and 0 <= step < len(node.items):
                node = node.items[step]
                place = node.place
            case _:
                break
    return place


def walk(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    """Yield every node from here down with its path; what an alias repeats comes once for each
    time."""
    yield path, node
    match node:
        case Sequence():
            for index, item in enumerate(node.items):
                yield from walk(item, (*path, index))
        case Mapping():
            for key, (_, child) in node.entries.items():
                yield from walk(child, (*path, key))
        case _:
            pass


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
    """Return the value of an unquoted scalar. Dates are text, as kubectl has them."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if text in _OLD_BOOL:
        return Disputed(text, "a boolean")
    return _number(text) if text[0] in "+-.0123456789" else text


def _number(text: str) -> ScalarValue:
    """Return the value of a text that begins as a number does."""
    if len(text) > _MAX_NUMBER:
        return Disputed(text, "a number") if text.strip("+-.eE_0123456789") == "" else text
    if _INT.fullmatch(text):
        return int(text)
    if _DISPUTED_NUMBER.fullmatch(text):
        return Disputed(text, "a number")
    if _FLOAT.fullmatch(text):
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text
