"""Sets of replica indexes as text, as in completedIndexes of Jobs: 0-3,5."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from webhook.run.model.replica import MAX_REPLICAS
from webhook.strict import quoted

_SPAN: Final = re.compile("([0-9]{1,9})(?:-([0-9]{1,9}))?")
# The longest text has every second index.
_TEXT_MAX_CHARACTERS: Final = 5 * MAX_REPLICAS


def format_intervals(indexes: Iterable[int]) -> str:
    """Return the shortest text for the set; empty for the empty set."""
    return ",".join(
        str(first) if first == last else f"{first}-{last}" for first, last in _spans(indexes)
    )


def parse_intervals(text: str) -> frozenset[int]:
    """Parse the result of `format_intervals`. Raises ValueError for anything else."""
    return frozenset(
        index for first, last in _parse_spans(text) for index in range(first, last + 1)
    )


def check_intervals(text: str) -> None:
    """Raise ValueError as `parse_intervals`, in the memory of the text."""
    for _ in _parse_spans(text):
        pass


def _parse_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield first and last index of each interval. Raises ValueError before it reads too many.

    The intervals are in order and below MAX_REPLICAS, so that they are as many at most.
    """
    if len(text) > _TEXT_MAX_CHARACTERS:
        raise ValueError("is too long for a set of indexes")
    before = -1
    for span in filter(None, text.split(",")):
        ends = _SPAN.fullmatch(span)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (0, -1)
        if not before < first <= last < MAX_REPLICAS:
            wanted = f"want indexes in order from 0 to {MAX_REPLICAS - 1}, such as 0-3,5"
            raise ValueError(f"{wanted}, not {quoted(text)}")
        before = last
        yield first, last


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
