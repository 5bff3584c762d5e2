"""A value of a Polyaxonfile that knows where it was written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from webhook.policy import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.policy.findings import Path
    from webhook.policy.scalars import ScalarValue

Value: TypeAlias = "ScalarValue | tuple[Item, ...] | Mapping[str, Item]"


class Origin(NamedTuple):
    """Where a value stands: its file, its place and its key's, the path from the document's root.

    A mapping or a list stands where its key does, for there the eye looks for it.
    """

    file: str
    place: nodes.Place
    key: nodes.Place
    path: Path = ()


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """A value: a scalar, a tuple of items, or items by key. `text` is a scalar as written."""

    value: Value
    origin: Origin
    text: str = ""

    @property
    def entries(self) -> Mapping[str, Item]:
        """The items by key; none if it is no mapping."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def elements(self) -> tuple[Item, ...]:
        """The items of a list; none if it is no list."""
        return self.value if isinstance(self.value, tuple) else ()

    @property
    def is_empty(self) -> bool:
        """Null, or with nothing in it: what Polyaxon takes for not given."""
        return self.value is None or self.value in ("", (), {})

    @property
    def written(self) -> str:
        """A scalar as text: as it was written, so that `on` and `010` stay what they look like."""
        return self.value if isinstance(self.value, str) else self.text

    def holding(self, value: Value) -> Item:
        """Another value, of this one's origin."""
        scalar = not isinstance(value, tuple | dict)
        return replace(self, value=value, text=str(value) if scalar else "")

    def saying(self, text: str) -> Item:
        """Another text, of this one's origin."""
        return replace(self, value=text, text=text)

    def walk(self) -> Iterator[Item]:
        """This one, and all that is in it."""
        yield self
        for child in (*self.elements, *self.entries.values()):
            yield from child.walk()


def read(node: nodes.Node, file: str) -> Item:
    """A document's tree as items."""
    return _read(node, Origin(file, node.place, node.place))


def _read(node: nodes.Node, origin: Origin) -> Item:
    match node:
        case nodes.Scalar():
            return Item(node.value, origin, node.text)
        case nodes.Sequence():
            return Item(
                tuple(
                    _read(child, Origin(origin.file, child.place, child.place, (*origin.path, n)))
                    for n, child in enumerate(node.items)
                ),
                origin,
            )
        case nodes.Mapping():
            return Item(
                {
                    name: _read(child, _below(origin, name, key, child))
                    for name, (key, child) in node.entries.items()
                },
                origin,
            )


def _below(origin: Origin, name: str, key: nodes.Scalar, child: nodes.Node) -> Origin:
    inline = isinstance(child, nodes.Scalar) and child.text
    place = child.place if inline else key.place
    return Origin(origin.file, place, key.place, (*origin.path, name))


def plain(item: Item) -> Any:
    """The value without its origin: dictionaries, lists and scalars."""
    if isinstance(item.value, dict):
        return {key: plain(child) for key, child in item.value.items()}
    if isinstance(item.value, tuple):
        return [plain(child) for child in item.value]
    return item.value


def written(item: Item, key: str) -> str:
    """The text of a mapping's field, or ""."""
    field = item.entries.get(key)
    return "" if field is None else field.written
