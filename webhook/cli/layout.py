"""Text in columns, for terminals and for pipes."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# What a pipe gets, and the most that a wide terminal does: longer lines are hard to read.
_WIDTH: Final = 100
_MOST: Final = 140
_GAP: Final = 2
# No column but the last is wider; a longer cell pushes the rest of its row into the next line.
_COLUMN: Final = 48


def width() -> int:
    """How many characters a line may have."""
    if not sys.stdout.isatty():
        return _WIDTH
    return max(60, min(_MOST, shutil.get_terminal_size().columns))


def table(rows: Sequence[Sequence[str]], indent: int) -> Iterator[str]:
    """Rows of equal length in columns, without blanks at their ends; the last column is wrapped.

    Cells of the columns before it may be styled. A cell too long for its column pushes the rest of
    its row into the next line.
    """
    if not rows:
        return
    starts = [indent]
    for column in range(len(rows[0]) - 1):
        fitting = [w for row in rows if (w := _visible(row[column])) <= _COLUMN]
        starts.append(starts[-1] + max(fitting, default=0) + _GAP)
    for row in rows:
        line = ""
        for start, cell in zip(starts, row[:-1], strict=False):
            if line and cell and _visible(line) > start - _GAP:
                yield line
                line = ""
            line = (line + " " * (start - _visible(line)) + cell).rstrip()
        yield from _with_last(line, row[-1], starts[-1])


def _with_last(line: str, text: str, start: int) -> Iterator[str]:
    if text and line and _visible(line) > start - _GAP:
        yield line
        line = ""
    for part in wrapped(text, start):
        yield (line + " " * (start - _visible(line)) + part).rstrip()
        line = ""


def _visible(text: str) -> int:
    return len(click.unstyle(text))


def wrapped(text: str, indent: int) -> list[str]:
    """`text` in lines that fit to the right of the indentation, which is not put before them.

    Broken at blanks only: a key that is cut in two cannot be copied.
    """
    room = max(width() - indent, 30)
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]


def shortened(names: Sequence[str], most: int = 3) -> str:
    """The first few names, and how many more there are."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
