"""The fields of one mapping of a Polyaxonfile: each is taken, left out with a word, or unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic.alias_generators import to_camel

from webhook.convert.polyaxon.values import want_mapping
from webhook.strict import guess

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.item import Item
    from webhook.convert.polyaxon.notes import Notes


class Section:
    """A mapping, read field by field.

    Fields are named in snake case, and the file may have camel case too, as both schemas had;
    `camel` says which of the two hints show. A field that is null counts as left out. `close` says
    what nobody asked for: Polyaxon's schemas are strict.
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

    def given(self, name: str) -> Item | None:
        """The same; what is empty counts as left out too."""
        item = self.take(name)
        return None if item is None or item.is_empty else item

    def leave(self, reasons: Mapping[str, str]) -> None:
        """Warns of fields that have no meaning here: why, and what to do instead."""
        for name, reason in reasons.items():
            if item := self.given(name):
                self.notes.warning(item, reason)

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Errors for fields with which no Run can be made."""
        for name, reason in reasons.items():
            if item := self.given(name):
                self.notes.error(item, reason, key=True)

    def ignore(self, *names: str) -> None:
        """Fields that need no word."""
        for name in names:
            self.take(name)

    def close(self) -> None:
        """Errors for the fields that nobody knows."""
        known = tuple(dict.fromkeys(self._known))
        for key, item in self._rest.items():
            hint = guess(key, known) or f"; the fields are {', '.join(known)}"
            self.notes.error(item, f"there is no such field{hint}", key=True)
        self._rest.clear()
