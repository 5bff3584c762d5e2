"""Values of a Polyaxonfile with their place in it, and a reader of mappings of such values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pydantic.alias_generators import to_camel

from webhook.convert.polyaxon.values import want_mapping
from webhook.policy import yaml_tree
from webhook.strict import guess

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.convert.polyaxon.draft import Notes
    from webhook.policy.findings import Path
    from webhook.policy.yaml_tree import ScalarValue

Value: TypeAlias = "ScalarValue | tuple[Item, ...] | Mapping[str, Item]"


class Origin(NamedTuple):
    """The place of a value: file, line and column of value and key, path from the root.

    A mapping or a list has the place of its key.
    """

    file: str
    place: yaml_tree.Place
    key: yaml_tree.Place
    path: Path = ()


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """A value: a scalar, a tuple of items, or items by key. `text` is a scalar as written."""

    value: Value
    origin: Origin
    text: str = ""

    @property
    def entries(self) -> Mapping[str, Item]:
        """The items by key; none if it is not a mapping."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def elements(self) -> tuple[Item, ...]:
        """The items of a list; none if it is not a list."""
        return self.value if isinstance(self.value, tuple) else ()

    @property
    def is_empty(self) -> bool:
        """True for null and empty values, which Polyaxon treats as missing."""
        return self.value is None or self.value in ("", (), {})

    @property
    def as_text(self) -> str:
        """A scalar as it was written, so that `on` and `010` are not converted."""
        return self.value if isinstance(self.value, str) else self.text

    def with_value(self, value: Value) -> Item:
        """Return another value with this origin."""
        scalar = not isinstance(value, tuple | dict)
        return replace(self, value=value, text=str(value) if scalar else "")

    def with_text(self, text: str) -> Item:
        """Return another text with this origin."""
        return replace(self, value=text, text=text)

    def walk(self) -> Iterator[Item]:
        """Yield this item and all items in it."""
        yield self
        for child in (*self.elements, *self.entries.values()):
            yield from child.walk()


def to_item(node: yaml_tree.Node, file: str) -> Item:
    """Convert a document's tree to items."""
    return _to_item(node, Origin(file, node.place, node.place))


def _to_item(node: yaml_tree.Node, origin: Origin) -> Item:
    match node:
        case yaml_tree.Scalar():
            return Item(node.value, origin, node.text)
        case yaml_tree.Sequence():
            return Item(
                tuple(
                    _to_item(
                        child, Origin(origin.file, child.place, child.place, (*origin.path, n))
                    )
                    for n, child in enumerate(node.items)
                ),
                origin,
            )
        case yaml_tree.Mapping():
            return Item(
                {
                    name: _to_item(child, _below(origin, name, key, child))
                    for name, (key, child) in node.entries.items()
                },
                origin,
            )


def _below(origin: Origin, name: str, key: yaml_tree.Scalar, child: yaml_tree.Node) -> Origin:
    inline = isinstance(child, yaml_tree.Scalar) and child.text
    place = child.place if inline else key.place
    return Origin(origin.file, place, key.place, (*origin.path, name))


def plain(item: Item) -> Any:
    """Return the value without its origin: dictionaries, lists and scalars."""
    if isinstance(item.value, dict):
        return {key: plain(child) for key, child in item.value.items()}
    if isinstance(item.value, tuple):
        return [plain(child) for child in item.value]
    return item.value


def text_of(item: Item, key: str) -> str:
    """Return the text of a mapping's field, or ""."""
    field = item.entries.get(key)
    return "" if field is None else field.as_text


class Section:
    """A mapping, read field by field.

    Fields are named in snake case. The file may have camel case too, as in both schemas; `camel`
    decides which of the two suggestions show. A null field counts as missing. `close` reports
    fields that were not read, because Polyaxon's schemas are strict.
    """

    def __init__(self, item: Item, notes: Notes, *, camel: bool = False) -> None:
        self.item = item
        self.notes = notes
        self._camel = camel
        self._known: list[str] = []
        self._rest = dict(want_mapping(item, notes))

    def take(self, name: str) -> Item | None:
        """Return the field of this name, or None, and mark it as read."""
        self._known.append(to_camel(name) if self._camel else name)
        found = None
        for spelling in dict.fromkeys((name, to_camel(name))):
            item = self._rest.pop(spelling, None)
            if item is not None and found is not None:
                first = found.origin.path[-1]
                self.notes.error(item, f"is {first} once more; keep one of the two", key=True)
            found = found or item
        return None if found is None or found.value is None else found

    def non_empty(self, name: str) -> Item | None:
        """Return the field as `take` does; an empty one counts as missing, too."""
        item = self.take(name)
        return None if item is None or item.is_empty else item

    def leave(self, reasons: Mapping[str, str]) -> None:
        """Warn about fields that Fairlead leaves out, with reasons and alternatives."""
        for name, reason in reasons.items():
            if item := self.non_empty(name):
                self.notes.warning(item, reason)

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Report errors for fields that a Run cannot have."""
        for name, reason in reasons.items():
            if item := self.non_empty(name):
                self.notes.error(item, reason, key=True)

    def ignore(self, *names: str) -> None:
        """Mark fields as read without a warning."""
        for name in names:
            self.take(name)

    def close(self) -> None:
        """Report errors for unknown fields."""
        known = tuple(dict.fromkeys(self._known))
        for key, item in self._rest.items():
            hint = guess(key, known) or f"; the fields are {', '.join(known)}"
            self.notes.error(item, f"there is no such field{hint}", key=True)
        self._rest.clear()
