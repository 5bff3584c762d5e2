"""Text for terminals and pipes, in columns."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.policy.findings import Finding

# Width of text for a pipe without COLUMNS, and at most: longer lines are hard to read.
_WIDTH: Final = 100
_MAX_WIDTH: Final = 140
# Width that text has at least beside its indentation.
_LEAST: Final = 30
_GAP: Final = 2
_WARNING: Final = "warning:"
# Maximum width of all columns but the last; after a longer cell, the row continues on a new line.
_COLUMN: Final = 48
# A cell without a value, as kubectl prints it: each row of a table has all its columns.
_NONE: Final = "<none>"
# The key of click's context whose value says that tables have no heads.
NO_HEADERS: Final = "text.no_headers"


def width() -> int:
    """Return the maximum number of characters of a line of text: COLUMNS, or the terminal's."""
    return min(_MAX_WIDTH, _terminal() or _columns() or _WIDTH)


def _terminal() -> int:
    """Return the width of the terminal, or of COLUMNS on it; 0 if stdout is no terminal."""
    if not sys.stdout.isatty():
        return 0
    import shutil  # here, because `fairlead --help` imports this module and needs no width

    return shutil.get_terminal_size().columns


def _columns() -> int:
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdecimal() else 0


def finding_text(finding: Finding) -> str:
    """Return a finding, with its place and the word `warning` styled."""
    at = f":{finding.line}:{finding.column}" if finding.line else ""
    place = f"{finding.file}{at}:"
    rest = str(finding).removeprefix(place)
    if finding.severity == "warning":
        rest = rest.replace(_WARNING, click.style(_WARNING, fg="yellow", bold=True), 1)
    return click.style(place, bold=True) + rest


def table(head: Sequence[str], rows: Sequence[Sequence[str]], indent: int = 0) -> Iterator[str]:
    """Yield a table as kubectl prints it: a head in capitals, and each row in one line.

    Programs read it line by line, so it is never wrapped, and no cell but the last is empty. On a
    terminal the last column is wrapped, below itself. Cells may be styled; an empty head prints
    none, as does --no-headers. Without rows there is no table.
    """
    if not rows:
        return
    context = click.get_current_context(silent=True)
    heads = [] if context and context.meta.get(NO_HEADERS) else [head] if head else []
    shown = [[click.style(cell.upper(), bold=True) for cell in row] for row in heads]
    shown += [[" ".join(cell.split()) for cell in row] for row in rows]
    starts = _starts([[cell or _NONE for cell in row[:-1]] for row in shown], indent)
    for row in shown:
        line = " " * indent
        for start, cell in zip(starts, row[:-1], strict=False):
            line += " " * (start - _visible(line)) + (cell or _NONE)
        line += " " * (starts[-1] - _visible(line))
        room = _terminal() - starts[-1]
        if room < _LEAST or _visible(row[-1]) <= room:
            yield (line + row[-1]).rstrip()
        else:
            yield from hanging(row[-1], starts[-1], line, within=_terminal())


def _starts(rows: Sequence[Sequence[str]], indent: int, most: int | None = None) -> list[int]:
    """Return where each column begins, and the one after them.

    Cells of more than `most` characters do not count.
    """
    starts = [indent]
    for column in zip(*rows, strict=True):
        fitting = [w for cell in column if (w := _visible(cell)) <= (most or w)]
        starts.append(starts[-1] + max(fitting, default=0) + _GAP)
    return starts


def aligned(rows: Sequence[Sequence[str]], indent: int) -> Iterator[str]:
    """Yield words with their texts in columns, for people; the last column is wrapped.

    Rows have the same length. Cells of the other columns may be styled. After a cell that is too
    long for its column, the row continues on a new line.
    """
    if not rows:
        return
    starts = _starts([row[:-1] for row in rows], indent, _COLUMN)
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
        yield from aligned(rows, indent + 2)


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


def wrapped(text: str, indent: int, within: int | None = None) -> list[str]:
    """Wrap `text` into lines that fit after the indentation, which is not added.

    `within` is the width of the whole line; by default that of the terminal. Lines break at blanks
    only, so that keys can be copied.
    """
    import textwrap

    room = max((within or width()) - indent, _LEAST)
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
