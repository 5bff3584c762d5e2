"""The Run while it is made: plain values, with items of the Polyaxonfile among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from webhook.convert.polyaxon.item import Item, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.policy.findings import Path

Draft: TypeAlias = "Item | Mapping[str, Draft] | Sequence[Draft] | str | int | float | bool | None"


def given(**fields: Draft) -> dict[str, Draft]:
    """The fields that have something in them, in this order."""
    return {name: value for name, value in fields.items() if not _nothing(value)}


def _nothing(value: Draft) -> bool:
    if isinstance(value, Item):
        return value.is_empty
    return value is None or (not isinstance(value, bool | int | float) and len(value) == 0)


def settled(draft: Draft) -> Any:
    """The values alone: dictionaries, lists and scalars."""
    if isinstance(draft, Item):
        return plain(draft)
    if isinstance(draft, dict):
        return {key: settled(value) for key, value in draft.items()}
    if isinstance(draft, list | tuple):
        return [settled(value) for value in draft]
    return draft


def items(draft: Draft) -> Iterator[Item]:
    """Every item in it."""
    if isinstance(draft, Item):
        yield from draft.walk()
    elif isinstance(draft, dict):
        for value in draft.values():
            yield from items(value)
    elif isinstance(draft, list | tuple):
        for value in draft:
            yield from items(value)


def source(draft: Draft, path: Path) -> tuple[Item, Path] | None:
    """What of the Polyaxonfile a path of the Run comes from, and what of the path is left below it.

    None if the path does not lead to anything that comes from the file.
    """
    step = 0
    while step < len(path) and not isinstance(draft, Item):
        draft, step = _child(draft, path[step]), step + 1
    if not isinstance(draft, Item):
        return None
    item, left = draft, path[step:]
    while left and (below := _of(item, left[0])) is not None:
        item, left = below, left[1:]
    return item, left


def within(draft: Draft, path: Path) -> Item | None:
    """The first item of the file that is at or below a path of the Run, or of what is there of it.

    The whole Run does not count, nor do its metadata and its spec: what they lack stands nowhere.
    """
    best: Item | None = None
    for depth, step in enumerate(path):
        draft = _child(draft, step)
        best = (next(items(draft), None) if depth else None) or best
    return best


def _child(draft: Draft, step: str | int) -> Draft:
    child: Draft = None
    if isinstance(draft, dict) and isinstance(step, str):
        child = draft.get(step)
    elif isinstance(draft, list | tuple) and isinstance(step, int) and step < len(draft):
        child = draft[step]
    return child


def _of(item: Item, step: str | int) -> Item | None:
    if isinstance(step, str):
        return item.entries.get(step)
    return item.elements[step] if 0 <= step < len(item.elements) else None
