"""Trees of YAML nodes that know their line and column, and the values and places in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.policy.findings import Path
    from webhook.policy.scalars import ScalarValue

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


def value(node: Node) -> Any:
    """The node as plain values: dictionaries, lists, and scalars of `webhook.policy.scalars`."""
    match node:
        case Scalar():
            return node.value
        case Sequence():
            return [value(item) for item in node.items]
        case Mapping():
            return {key: value(child) for key, (_, child) in node.entries.items()}


def find(node: Node, path: Path) -> Node | None:
    """The node at a path, or None if there is none."""
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
    """Where a path's value stands; what is not there is looked for in the nearest parent.

    A mapping or list below a key is found at the key, where the eye looks for it. `at_key` gives
    the key's place for a scalar too.
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
    """Every node from here down with its path; what an alias repeats comes once for each time."""
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
