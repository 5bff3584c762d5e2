"""Text for terminals and pipes, in columns."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.policy.findings import Finding

# Width for a pipe, and maximum width for a terminal: longer lines are hard to read.
_WIDTH: Final = 100
_MOST: Final = 140
_GAP: Final = 2
_WARNING: Final = "warning:"
# Maximum width of all columns but the last; after a longer cell, the row continues on a new line.
_COLUMN: Final = 48


def width() -> int:
    """Return the maximum number of characters of a line."""
    if not sys.stdout.isatty():
        return _WIDTH
    import shutil  # here, because `fairlead --help` imports this module and needs no width

    return max(60, min(_MOST, shutil.get_terminal_size().columns))


def finding_text(finding: Finding) -> str:
    """Return a finding, with its place and the word `warning` styled."""
    at = f":{finding.line}:{finding.column}" if finding.line else ""
    place = f"{finding.file}{at}:"
    rest = str(finding).removeprefix(place)
    if finding.severity == "warning":
        rest = rest.replace(_WARNING, click.style(_WARNING, fg="yellow", bold=True), 1)
    return click.style(place, bold=True) + rest


def table(rows: Sequence[Sequence[str]], indent: int) -> Iterator[str]:
    """Rows of equal length in columns, without trailing blanks; the last column is wrapped.

    Cells of the other columns may be styled. After a cell that is too long for its column, the row
    continues on a new line.
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
        if row[-1] and line and _visible(line) > starts[-1] - _GAP:
            yield line
            line = ""
        yield from hanging(row[-1], starts[-1], line + " " * (starts[-1] - _visible(line)))


def section(title: str, rows: Sequence[Sequence[str]], indent: int = 2) -> Iterator[str]:
    """Yield rows under their title, after an empty line; nothing if there are none."""
    if rows:
        yield ""
        yield " " * indent + click.style(title, bold=True)
        yield from table(rows, indent + 2)


def titled(title: str, text: str, colour: str | None = None) -> Iterator[str]:
    """Yield a title and a text about it, on one line if they fit; the text in a colour."""
    head = f"{title}: "
    first, *more = wrapped(head + text, _GAP)
    start = click.style(head, bold=True) if first.startswith(head) else ""
    yield start + click.style(first.removeprefix(head) if start else first, fg=colour)
    yield from (" " * _GAP + click.style(line, fg=colour) for line in more)


def sentence(text: str) -> Iterator[str]:
    """Yield the sentence with which a result begins, in bold."""
    first, *more = wrapped(text, _GAP)
    yield click.style(first, bold=True)
    yield from (" " * _GAP + click.style(line, bold=True) for line in more)


def hanging(text: str, indent: int, first: str = "", within: int | None = None) -> Iterator[str]:
    """Wrap `text` into indented lines; the first one begins with `first` instead, if that is given.

    `within` is as in `wrapped`.
    """
    start = first or " " * indent
    for part in wrapped(text, indent, within):
        yield (start + part).rstrip()
        start = " " * indent


def _visible(text: str) -> int:
    return len(click.unstyle(text))


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows in columns, each on one line of any length."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield (" " * _GAP).join(cells).rstrip()


def wrapped(text: str, indent: int, within: int | None = None) -> list[str]:
    """Wrap `text` into lines that fit after the indentation, which is not added.

    `within` is the width of the whole line; by default that of the terminal. Lines break at blanks
    only, so that keys can be copied.
    """
    import textwrap

    room = max((within or width()) - indent, 30)
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
