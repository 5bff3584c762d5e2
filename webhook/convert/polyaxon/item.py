"""A value of a Polyaxonfile that knows where it was written, and a mapping of such values."""

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
    """The place of a value: file, line and column of it and of its key, path from the root.

    A mapping or a list has the place of its key, where a reader looks for it.
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
        """Null, or with nothing in it: what Polyaxon takes for not given."""
        return self.value is None or self.value in ("", (), {})

    @property
    def as_text(self) -> str:
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


def to_item(node: yaml_tree.Node, file: str) -> Item:
    """A document's tree as items."""
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
    """The value without its origin: dictionaries, lists and scalars."""
    if isinstance(item.value, dict):
        return {key: plain(child) for key, child in item.value.items()}
    if isinstance(item.value, tuple):
        return [plain(child) for child in item.value]
    return item.value


def text_of(item: Item, key: str) -> str:
    """The text of a mapping's field, or ""."""
    field = item.entries.get(key)
    return "" if field is None else field.as_text


class Section:
    """A mapping, read field by field.

    Fields are named in snake case, and the file may have camel case too, as both schemas had;
    `camel` decides which of the two spellings hints show. A null field counts as unset. `close`
    reports unknown fields: Polyaxon's schemas are strict.
    """

    def __init__(self, item: Item, notes: Notes, *, camel: bool = False) -> None:
        self.item = item
        self.notes = notes
        self._camel = camel
        self._known: list[str] = []
        self._rest = dict(want_mapping(item, notes))

    def take(self, name: str) -> Item | None:
        """The field of this name, or None; from then on it is known."""
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
        """The same; what is empty counts as left out too."""
        item = self.take(name)
        return None if item is None or item.is_empty else item

    def leave(self, reasons: Mapping[str, str]) -> None:
        """Warns of fields that have no meaning here: why, and what to do instead."""
        for name, reason in reasons.items():
            if item := self.non_empty(name):
                self.notes.warning(item, reason)

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Errors for fields with which no Run can be made."""
        for name, reason in reasons.items():
            if item := self.non_empty(name):
                self.notes.error(item, reason, key=True)

    def ignore(self, *names: str) -> None:
        """Fields that need no word."""
        for name in names:
            self.take(name)

    def close(self) -> None:
        """Errors for unknown fields."""
        known = tuple(dict.fromkeys(self._known))
        for key, item in self._rest.items():
            hint = guess(key, known) or f"; the fields are {', '.join(known)}"
            self.notes.error(item, f"there is no such field{hint}", key=True)
        self._rest.clear()
