"""Reads fields of an object, or of one that it creates, by the paths of `kind_model`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook.sources.kind_model import BY_INDEX, UNKNOWN
from webhook.workloads.template import at, count_at, count_problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.policy.findings import Path
    from webhook.sources.kind_model import Choice, Field, Text
    from webhook.sources.table import SourceTable
    from webhook.workloads.object import Object


@dataclass(frozen=True, slots=True)
class ObjectView:
    """An object, or one that it creates: its name, the paths of its parts, and an entry in it.

    sources: the table in which the kinds of created objects are found
    """

    source: Object
    name: str
    sources: SourceTable
    spec: Path = ("spec",)
    metadata: Path = ("metadata",)
    entry: Path = ()

    def path(self, field: Field) -> Path:
        """Return the path of a field from the root of the object."""
        if field.of_entry:
            return (*self.entry, *field.path)
        first, *rest = field.path
        start = {"spec": self.spec, "metadata": self.metadata}.get(first, (first,))
        return (*start, *rest)

    def value(self, field: Field) -> Any:
        """Return the value of a field; None if it is absent."""
        return at(self.source.value, self.path(field))

    def number(self, fields: Sequence[Field], default: int = 1) -> int:
        """Return the first number in these fields, else the default."""
        for field in reversed(fields):
            default = count_at(self.source.value, self.path(field), default)
        return default

    def miscounted(self, fields: Sequence[Field]) -> Iterator[tuple[Path, str]]:
        """Yield path and message of each field with another value than a number of pods."""
        for field in fields:
            if message := count_problem(self.value(field)):
                yield self.path(field), message

    def fill(self, text: Text, facts: Mapping[str, Any]) -> list[str]:
        """Return a text in pieces that alternate: text common to all replicas, a fact of BY_INDEX.

        There is one piece if all replicas have the same text.
        """
        pieces = [""]
        for piece in text:
            if isinstance(piece, str):
                pieces[-1] += piece
            elif piece[0] in BY_INDEX:
                pieces += [str(piece[0]), ""]
            else:
                pieces[-1] += self._choose(piece, facts)
        return pieces

    def _choose(self, choices: Sequence[Choice], facts: Mapping[str, Any]) -> str:
        found: Any = None
        for choice in choices:
            if choice == "unknown":
                return UNKNOWN
            found = facts.get(choice, choice) if isinstance(choice, str) else self.value(choice)
            if found:
                break
        return "" if found is None else str(found)
