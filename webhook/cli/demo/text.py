"""The demo as text for a terminal of 100 columns; click takes the colours out for a pipe."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

import click

from webhook.cli.demo.placement_text import in_short
from webhook.identity import identify

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.cli.demo.admitted import Shown
    from webhook.cli.demo.cluster import Place
    from webhook.cli.demo.placement_text import Line
    from webhook.placement.shapes import JsonObject
    from webhook.placement.trace import Entry
    from webhook.policy.policy_set import Policy

_WIDTH: Final = 100
_LABEL: Final = 9
_FIELD: Final = 14
_RESULTS: Final = {
    "placed": ("placed", "green"),
    "unchanged": ("unchanged", "cyan"),
    "left-alone": ("left alone", "yellow"),
    "rejected": ("rejected", "red"),
    "not-a-run": ("no run's pod", "bright_black"),
}
_OUTCOMES: Final = {"set": "green", "rejected": "red", "removed": "yellow", "dropped": "yellow"}


def title(text: str, *paragraph: str) -> Iterator[str]:
    """The first lines."""
    yield click.style(text, bold=True)
    for part in paragraph:
        yield from textwrap.wrap(part, _WIDTH, break_on_hyphens=False, break_long_words=False)


def policies(found: Sequence[Policy]) -> Iterator[str]:
    """What the policies are for, in their own words."""
    width = max(len(policy.name) for policy in found)
    label = "policies".ljust(_LABEL)
    for policy in found:
        yield from _wrapped(f"{label} {policy.name:{width}}  ", policy.description)
        label = " " * _LABEL


def example(shown: Shown, number: int) -> Iterator[str]:
    """One example: before, after and why."""
    result, colour = _RESULTS[shown.result]
    start, end = f"{number}  {shown.example.title} ", f" {shown.example.name}  {result}"
    rule = click.style("─" * (_WIDTH - len(start) - len(end)), dim=True)
    badge = click.style(result, fg=colour, bold=True)
    yield f"{click.style(start, bold=True)}{rule} {shown.example.name}  {badge}"
    if shown.answer.pod is None:
        yield from _block("before", shown.before)
        yield from _coloured("after", f"refused. {shown.answer.message}", "red")
    elif shown.before == shown.after:
        yield from _block("before", shown.before)
        yield _labelled("after", click.style("the same", dim=True))
    else:
        yield from _block("before", shown.before, gone=set(shown.before) - set(shown.after))
        yield from _block("after", shown.after, new=set(shown.after) - set(shown.before))
    yield from _why(shown)


def agreement(count: int) -> Iterator[str]:
    """That the webhook's answers are the engine's, which was asked beside it each time."""
    yield from textwrap.wrap(
        f"All {count} answers are those that the engine gives offline: what `fairlead mutate` and "
        "`fairlead explain` foresee is what happens.",
        _WIDTH,
    )


def places(found: Sequence[Place], shown: Sequence[Shown]) -> Iterator[str]:
    """The table of which pod went where."""
    head = ("POD", "RUN/ROLE", "ASKED", "NODE", "POOL", "CAPACITY")
    rows: list[tuple[str, ...]] = []
    for one in shown:
        asked = (_member(one.answer.sent), in_short(one.answer.sent))
        if one.answer.pod is None:
            rows.append((one.example.name, *asked, "none: refused", "", ""))
        rows += [
            (place.pod, *asked, place.node, place.pool, place.capacity)
            for place in found
            if place.example == one.example.name
        ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    yield click.style(_row(head, widths), bold=True)
    for row in rows:
        yield _row(row, widths)


def hints(found: Sequence[tuple[str, str]]) -> Iterator[str]:
    """What to try next: commands, each with what it does."""
    width = max(len(command) for command, _ in found)
    yield click.style("Try next", bold=True)
    for command, does in found:
        yield f"  {click.style(command.ljust(width), fg='cyan')}  {does}"


def _block(
    label: str,
    lines: Sequence[Line],
    *,
    gone: Sequence[Line] | set[Line] = (),
    new: Sequence[Line] | set[Line] = (),
) -> Iterator[str]:
    if not lines:
        yield _labelled(label, click.style("says nothing of where it may run", dim=True))
        return
    for line in lines:
        sign, colour = (
            ("-", "red") if line in gone else ("+", "green") if line in new else (" ", "")
        )
        start = f"{label:{_LABEL}} {sign} {line.field:{_FIELD}} "
        for text in _wrapped(start, line.text):
            yield click.style(text, fg=colour) if colour else text
        label = ""


def _why(shown: Shown) -> Iterator[str]:
    label = "why"
    for entry in shown.why:
        yield from _coloured(label, _reason(entry), _OUTCOMES.get(entry.outcome, ""))
        label = ""
    if not shown.why:
        reason = shown.reason or "it carries no mark of a run: `fairlead sources` lists them"
        yield _labelled(label, reason)
    for warning in shown.answer.warnings:
        yield from _coloured("Warning:", warning, "yellow")


def _reason(entry: Entry) -> str:
    who = f"{entry.policy} {entry.part}: " if entry.policy else "the pod's own "
    return f"{who}{entry.field} {entry.outcome}, {entry.reason}"


def _coloured(label: str, text: str, colour: str) -> Iterator[str]:
    for line in _wrapped(f"{label:{_LABEL}}   ", text, hang=2):
        yield click.style(line, fg=colour) if colour else line


def _labelled(label: str, text: str) -> str:
    return f"{label:{_LABEL}}   {text}"


def _wrapped(start: str, text: str, hang: int = 0) -> list[str]:
    # Keys are broken at blanks only: one cut in two could not be copied.
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=start,
        subsequent_indent=" " * (len(start) + hang),
        break_on_hyphens=False,
        break_long_words=False,
    )


def _member(pod: JsonObject) -> str:
    """Which run the pod is of, and as what."""
    metadata = pod["metadata"]
    identity = identify(metadata.get("labels") or {}, metadata.get("annotations") or {}, {})
    if identity is None:
        return "none"
    return f"{identity.run}/{identity.role}" if identity.role else identity.run


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()
