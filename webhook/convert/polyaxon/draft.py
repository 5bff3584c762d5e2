"""A conversion: its options, its notes, and the Run under construction.

A draft is made of plain values and of items of the Polyaxonfile.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from webhook.convert.polyaxon.item import NOTHING, Item, Origin, plain
from webhook.policy.findings import Finding, Severity, path_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.policy.findings import Path

Draft: TypeAlias = "Item | Mapping[str, Draft] | Sequence[Draft] | str | int | float | bool | None"


def non_empty(**fields: Draft) -> dict[str, Draft]:
    """Return the fields that are not empty, in this order."""
    return {name: value for name, value in fields.items() if not _nothing(value)}


def _nothing(value: Draft) -> bool:
    if isinstance(value, Item):
        return value.is_empty
    return value is None or (not isinstance(value, bool | int | float) and len(value) == 0)


def wrapped(draft: Draft) -> Item:
    """Return the draft as one item; what is not from the file has the origin of NOTHING."""
    if isinstance(draft, dict):
        return Item({key: wrapped(child) for key, child in draft.items()}, NOTHING.origin)
    if isinstance(draft, list | tuple):
        return Item(tuple(map(wrapped, draft)), NOTHING.origin)
    return draft if isinstance(draft, Item) else Item(cast("Any", draft), NOTHING.origin)


def settled(draft: Draft) -> Any:
    """Return the values without their origins: dictionaries, lists and scalars."""
    return plain(wrapped(draft))


def source(draft: Item, path: Path) -> tuple[Item, Path] | None:
    """Return the item from which a path of the Run comes, and the rest of the path below it.

    None if the value at the path does not come from the file.
    """
    while path and (below := draft.find(path[0])) is not NOTHING:
        draft, path = below, path[1:]
    return None if draft.origin is NOTHING.origin else (draft, path)


def within(draft: Item, path: Path) -> Item | None:
    """Return the first item of the file at or below a path of the Run, or its longest prefix.

    The Run itself, its metadata and its spec do not count: a field that they lack has no place in
    the file.
    """
    best: Item | None = None
    for depth, step in enumerate(path):
        draft = draft.find(step)
        items = (item for item in draft.walk() if item.origin is not NOTHING.origin)
        best = (next(items, None) if depth else None) or best
    return best


@dataclass
class Converted:
    """name, namespace, description: as the document has them, if it does. spec: of the Run.

    replicas: the section that describes the replicas, for what is wrong with them as a whole.
    roles: the part of it that describes each role, as far as the document has one.
    labels, annotations: of the Run itself.
    backend: where the document names the engine that a Run is delegated to.
    """

    name: Item | None = None
    namespace: Item | None = None
    description: Item | None = None
    spec: dict[str, Draft] = field(default_factory=dict)
    replicas: Item | None = None
    roles: Mapping[str, Item] = field(default_factory=dict)
    labels: Mapping[str, Draft] = field(default_factory=dict)
    annotations: Mapping[str, Draft] = field(default_factory=dict)
    backend: Item | None = None


@dataclass(slots=True)
class Notes:
    """Collects findings while a file is converted, without duplicates."""

    findings: set[Finding] = field(default_factory=set)

    def error(
        self, at: Item | Origin, message: str, *, below: Path = (), key: bool = False
    ) -> None:
        """Add an error. `key`: it is about the field's name, not its value.

        `below` is the path from the item to a missing field.
        """
        self._add(at, message, "error", below, key=key)

    def warning(self, at: Item | Origin, message: str, *, key: bool = True) -> None:
        """Add a warning about a field that is left out or changes its meaning."""
        self._add(at, message, "warning", (), key=key)

    def _add(
        self, at: Item | Origin, message: str, severity: Severity, below: Path, *, key: bool
    ) -> None:
        origin = at if isinstance(at, Origin) else at.origin
        place = origin.key if key else origin.place
        path = path_text((*origin.path, *below))
        self.findings.add(Finding(origin.file, *place, path, message, severity))

    @property
    def in_order(self) -> tuple[Finding, ...]:
        """All findings, in order of file and place."""
        return tuple(sorted(self.findings))

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that are errors, in order of file and place."""
        return tuple(finding for finding in self.in_order if finding.severity == "error")
