"""Sets of replica indexes as text: "0-3,5", as Indexed Jobs write their completedIndexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def written(indexes: Iterable[int]) -> str:
    """The shortest text for the set; empty for none."""
    return ",".join(
        str(first) if first == last else f"{first}-{last}" for first, last in _spans(indexes)
    )


def read(text: str) -> frozenset[int]:
    """The set that `written` wrote. Raises ValueError for what it never writes."""
    indexes: set[int] = set()
    for span in filter(None, text.split(",")):
        first, _, last = span.partition("-")
        indexes.update(range(int(first), int(last or first) + 1))
    return frozenset(indexes)


def _spans(indexes: Iterable[int]) -> Iterator[tuple[int, int]]:
    first = last = None
    for index in sorted(set(indexes)):
        if first is None or last is None:
            first = last = index
        elif index == last + 1:
            last = index
        else:
            yield first, last
            first = last = index
    if first is not None and last is not None:
        yield first, last
