"""Differences as text for people at a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from webhook.cli.diff import words
from webhook.cli.layout import table, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.cli.diff.words import Outcome
    from webhook.comparison.difference import Kind
    from webhook.comparison.report import Change

_COLOURS: Final[dict[Kind, str]] = {
    "rejected": "red",
    "unplaceable": "red",
    "moved": "yellow",
    "admitted": "green",
    "placeable": "green",
}
_SIGNS: Final = {"+": "green", "-": "red", "~": "yellow"}
# So many objects are named of those whose pods change alike.
_NAMED: Final = 3


def lines(outcome: Outcome) -> Iterator[str]:
    """The answer, line by line."""
    report = outcome.report
    yield from table(
        [
            ["OLD", words.cut(outcome.old), words.size(outcome.old_set)],
            ["NEW", words.cut(outcome.new), words.size(outcome.new_set)],
        ],
        0,
    )
    yield ""
    said = words.counted(report)
    of_runs = f"{words.pods(report.total)} of runs: {said or 'all as before'}"
    yield click.style(of_runs, bold=True)
    yield from (f"  {remark}" for remark in words.remarks(outcome))
    if not said:
        return
    head, rows = words.table(report)
    yield ""
    yield from table([head, *rows], 2)
    kind: Kind | None = None
    for change in report.changes:
        if change.difference.kind != kind:
            kind = change.difference.kind
            yield ""
            title = f"{words.TITLES[kind].capitalize()}: {words.pods(report.counts[kind])}"
            yield click.style(title, fg=_COLOURS[kind], bold=True)
        yield from _change(change)


def _change(change: Change) -> Iterator[str]:
    pods = f"{words.pods(change.count)} in {words.cut(change.namespace)}"
    who = f"{pods}: {words.subjects(change, _NAMED)}"
    first, *more = wrapped(who, 4)
    yield f"  {first}"
    yield from (f"    {line}" for line in more)
    if reason := words.reason(change):
        yield from (f"    {line}" for line in wrapped(words.cut(reason), 4))
    else:
        rows = [
            [click.style(sign, fg=_SIGNS[sign]), author, text]
            for sign, author, text in words.field_lines(change.difference.fields)
        ]
        yield from table(rows, 4)
    if nodes := words.nodes_line(change):
        yield from (f"    {line}" for line in wrapped(nodes, 4))
