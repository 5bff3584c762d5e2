"""Differences as Markdown, for a comment on a pull request: always short enough to be one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webhook.cli.diff import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.cli.diff.words import Outcome
    from webhook.comparison.report import Change

# GitHub takes comments of 65,536 characters and GitLab of a million; both count the ends of lines.
MAX_CHARACTERS: Final = 60_000
# Nobody reads on.
_MOST_ROWS: Final = 30
_MOST_CHANGES: Final = 20
_MOST_FIELDS: Final = 8
_MOST_NOTES: Final = 10
_NAMED: Final = 3
_TICKS: Final = re.compile("`+")


def document(outcome: Outcome) -> str:
    """The comment. What is left out is counted."""
    report = outcome.report
    said = words.counted(report)
    head = [
        f"### Placement policies: {_code(outcome.old)} → {_code(outcome.new)}",
        "",
        f"**{words.pods(report.total)} of runs: {said or 'all as before'}.**",
        *(f"{remark[0].upper()}{remark[1:]}." for remark in words.remarks(outcome)),
    ]
    head += _notes(outcome.notes)
    if said:
        head += ["", *_table(*words.table(report))]
    text = "\n".join(head) + "\n"
    for shown, change in enumerate(report.changes):
        part = "\n".join(_change(change)) + "\n"
        if shown >= _MOST_CHANGES or len(text) + len(part) > MAX_CHARACTERS:
            left = report.changes[shown:]
            count = words.pods(sum(each.count for each in left))
            return f"{text}\n…and {len(left):,} more kinds of change, of {count}.\n"
        text += part
    return text


def _notes(notes: Sequence[str]) -> Iterator[str]:
    """What is not known, or left out: the answer is not about that."""
    if notes:
        yield ""
        yield "Not known, or left out:"
        yield ""
    yield from (f"- {_code(note)}" for note in notes[:_MOST_NOTES])
    if len(notes) > _MOST_NOTES:
        yield f"- and {len(notes) - _MOST_NOTES:,} more"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * 2}{'--:|' * (len(head) - 2)}"
    for row in rows[:_MOST_ROWS]:
        yield f"| {' | '.join([*map(_cell, row[:2]), *row[2:]])} |"
    if len(rows) > _MOST_ROWS:
        yield ""
        yield f"…and {len(rows) - _MOST_ROWS:,} more rows."


def _cell(text: str) -> str:
    return _code(text).replace("|", "\\|") if text != "-" else text


def _change(change: Change) -> Iterator[str]:
    """Everything that others may have written stands in code, where it is no Markdown."""
    title = words.TITLES[change.difference.kind].capitalize()
    yield ""
    count = words.pods(change.count)
    who = _code(words.subjects(change, _NAMED))
    yield f"**{title}**, {count} in {_code(change.namespace)}: {who}"
    lines = [*_lines(change)]
    if lines:
        fence = "`" * max(3, 1 + max(map(_longest_run, lines)))
        yield ""
        yield f"{fence}diff"
        yield from lines
        yield fence


def _lines(change: Change) -> Iterator[str]:
    if reason := words.reason(change):
        yield f"{'-' if change.difference.kind == 'rejected' else '+'} {words.cut(reason)}"
    else:
        fields = change.difference.fields
        for sign, author, text in words.field_lines(fields[:_MOST_FIELDS]):
            # A diff knows no third sign; Markdown's readers colour this one.
            yield f"{'!' if sign == '~' else sign} {author}: {text}"
        if len(fields) > _MOST_FIELDS:
            yield f"  and {len(fields) - _MOST_FIELDS} more fields"
    if nodes := words.nodes_line(change):
        yield f"# {nodes}"


def _code(text: str) -> str:
    """The text as code, whatever is in it (CommonMark 0.31, 6.1)."""
    line = words.cut(text, 1000)
    ticks = "`" * (1 + _longest_run(line))
    blank = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{blank}{line}{blank}{ticks}"


def _longest_run(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
