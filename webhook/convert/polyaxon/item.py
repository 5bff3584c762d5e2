"""Values of a Polyaxonfile with their place in it, and their conversion by tables of fields."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from pydantic.alias_generators import to_camel

from webhook.policy import yaml_tree
from webhook.policy.yaml_tree import Disputed
from webhook.strict import guess, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from webhook.convert.polyaxon.draft import Notes
    from webhook.policy.findings import Path
    from webhook.policy.yaml_tree import ScalarValue

Value: TypeAlias = "ScalarValue | tuple[Item, ...] | Mapping[str, Item]"
# As in Polyaxon, a number may be in quotes, because a template produces text.
_WHOLE: Final = re.compile(r"[0-9]{1,12}")
_NUMBER: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")


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
    def present(self) -> Mapping[str, Item]:
        return {key: item for key, item in self.entries.items() if item.value is not None}

    @property
    def is_empty(self) -> bool:
        """True for null and empty values, which Polyaxon treats as missing."""
        return self.value is None or self.value in ("", (), {})

    @property
    def as_text(self) -> str:
        """A scalar as it was written, so that `on` and `010` are not converted."""
        return self.value if isinstance(self.value, str) else self.text

    def find(self, *path: str | int) -> Item:
        """Return the item at a path below; NOTHING if there is none."""
        item = self
        for step in path:
            if isinstance(step, str):
                item = item.entries.get(step, NOTHING)
            else:
                inside = -len(item.elements) <= step < len(item.elements)
                item = item.elements[step] if inside else NOTHING
        return item

    def with_value(self, value: Value) -> Item:
        scalar = not isinstance(value, tuple | dict)
        return replace(self, value=value, text=str(value) if scalar else "")

    def with_text(self, text: str) -> Item:
        return replace(self, value=text, text=text)

    def walk(self) -> Iterator[Item]:
        yield self
        for child in (*self.elements, *self.entries.values()):
            yield from child.walk()


NOTHING: Final = Item(None, Origin("", (1, 1), (1, 1)))


def to_item(node: yaml_tree.Node, file: str) -> Item:
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


class Refused(str):
    """The reason why a Run cannot have a field."""

    __slots__ = ()


# The conversion of one field: a function, the reason why it is left out with a warning, or why it
# is an error.
FieldReader: TypeAlias = "Callable[[Item, Notes], Any] | str"


def given(item: Item, _: Notes) -> Item:
    return item


def ignored(_item: Item, _notes: Notes) -> None:
    """Leave the field out without a warning."""


def even_empty(item: Item, _: Notes) -> Item:
    """Return the value as it is; an empty one does not count as missing."""
    return item


def read(
    item: Item, notes: Notes, table: Mapping[str, FieldReader], *, camel: bool = True
) -> dict[str, Any]:
    """Return the fields of a mapping that are not empty, converted, by their names in camel case.

    The table has the names in snake case. The file may have camel case too, as in both schemas;
    `camel` decides which of the two suggestions show. A null field counts as missing. A field that
    is not in the table is an error, because Polyaxon's schemas are strict.
    """
    rest, values = dict(want_mapping(item, notes)), {}
    for name, reader in table.items():
        field = None
        for entry in [
            rest.pop(key) for key in dict.fromkeys((name, to_camel(name))) if key in rest
        ]:
            if field is not None:
                first = field.origin.path[-1]
                notes.error(entry, f"is {first} once more; keep one of the two", key=True)
            field = field or entry
        if field is None or field.value is None or (field.is_empty and reader is not even_empty):
            continue
        if isinstance(reader, Refused):
            notes.error(field, reader, key=True)
        elif isinstance(reader, str):
            notes.warning(field, reader)
        elif (value := reader(field, notes)) is not None:
            values[to_camel(name)] = value
    field_names = tuple(dict.fromkeys(to_camel(name) if camel else name for name in table))
    for key, entry in rest.items():
        hint = guess(key, field_names) or f"; the fields are {', '.join(field_names)}"
        notes.error(entry, f"there is no such field{hint}", key=True)
    return values


def want_mapping(item: Item, notes: Notes) -> Mapping[str, Item]:
    """Return the items by key; none after an error."""
    if not isinstance(item.value, dict) and item.value is not None:
        notes.error(item, f"want a mapping, not {noun(item)}")
    return item.entries


def camel(item: Item, _: Notes | None = None) -> Item:
    """Return a mapping with its keys in camel case; other values unchanged."""
    if not isinstance(item.value, dict):
        return item
    return item.with_value({to_camel(key): value for key, value in item.value.items()})


def camel_list(item: Item, notes: Notes) -> Item:
    return item.with_value(tuple(map(camel, want_list(item, notes))))


def want_list(item: Item, notes: Notes) -> tuple[Item, ...]:
    """Return the items of a list; none after an error."""
    if not isinstance(item.value, tuple) and item.value is not None:
        notes.error(item, f"want a list, not {noun(item)}")
    return item.elements


def want_text(item: Item, notes: Notes) -> str | None:
    """Return a scalar as it was written, also numbers and booleans."""
    if isinstance(item.value, dict | tuple) or item.value is None:
        notes.error(item, f"want text, not {noun(item)}")
        return None
    return item.as_text


def want_texts(item: Item, notes: Notes) -> list[str]:
    """Return the scalars of a list as they were written; one scalar is a list of one."""
    elements = item.elements if isinstance(item.value, tuple) else (item,)
    return [text for element in elements if (text := want_text(element, notes)) is not None]


def want_whole(item: Item, notes: Notes, *, least: int = 0) -> Item | None:
    """Return an item whose value is an integer of at least `least`."""
    number = None
    match item.value:
        case bool():
            pass
        case int():
            number = item.value
        case float() if item.value.is_integer():
            number = int(item.value)
        case str() if _WHOLE.fullmatch(item.value.strip()):
            number = int(item.value)
    if number is None:
        notes.error(item, f"want a whole number, not {noun(item)}{_plainly(item)}")
        return None
    if number < least:
        notes.error(item, f"{number} is too small; the least is {least}")
        return None
    return item.with_value(number)


def want_number(item: Item, notes: Notes) -> Item | None:
    """Return an item whose value is a number of at least zero."""
    number: float | None = None
    if isinstance(item.value, int | float) and not isinstance(item.value, bool):
        number = item.value
    elif isinstance(item.value, str) and _NUMBER.fullmatch(item.value.strip()):
        number = float(item.value)
    if number is None or not 0 <= number < 10**15:
        notes.error(item, f"want a number, not {noun(item)}{_plainly(item)}")
        return None
    return item.with_value(number)


def _plainly(item: Item) -> str:
    """Return how to write a number that readers of YAML take differently."""
    return "; write it as a decimal number" if isinstance(item.value, Disputed) else ""


def want_flag(item: Item, notes: Notes) -> bool:
    """Return a boolean; false after an error."""
    if isinstance(item.value, bool):
        return item.value
    notes.error(item, f"want true or false, not {noun(item)}")
    return False


def want_texts_map(item: Item, notes: Notes) -> Item:
    return item.with_value(
        {
            key: child.with_text(text)
            for key, child in want_mapping(item, notes).items()
            if (text := want_text(child, notes)) is not None
        }
    )


def want_one_of(item: Item, notes: Notes, allowed: Sequence[str]) -> Item | None:
    text = want_text(item, notes)
    if text is None or text in allowed:
        return None if text is None else item
    hint = guess(text, tuple(allowed))
    notes.error(item, f"{quoted(text)} is not one of {', '.join(allowed)}{hint}")
    return None


def noun(item: Item) -> str:
    match item.value:
        case dict():
            return "a mapping"
        case tuple():
            return "a list"
        case None:
            return "null"
        case Disputed():
            return f"{item.text}, which can be read as {item.value.meaning}"
    return quoted(item.as_text)
