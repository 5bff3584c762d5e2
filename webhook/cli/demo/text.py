"""The demo as text for a terminal; click takes the colours out for a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from webhook.cli.demo.placement_text import in_short
from webhook.cli.layout import table, width, wrapped
from webhook.identity import identify

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from webhook.cli.demo.admitted import Shown
    from webhook.cli.demo.cluster import Place
    from webhook.cli.demo.placement_text import Line
    from webhook.cli.demo.whole_run import ShownRun
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import Policy

_LABEL: Final = 9
_START: Final = 12
_FIELD: Final = 14
_SIGNS: Final = {"+": "green", "-": "red"}
_RESULTS: Final = {
    "placed": ("placed", "green"),
    "unchanged": ("unchanged", "cyan"),
    "left-alone": ("left alone", "yellow"),
    "rejected": ("rejected", "red"),
    "not-a-run": ("no run's pod", "bright_black"),
}
_OUTCOMES: Final = {"set": "green", "rejected": "red", "removed": "yellow", "dropped": "yellow"}


def title(text: str, paragraph: str) -> Iterator[str]:
    """The first lines."""
    yield click.style(text, bold=True)
    yield from wrapped(paragraph, 0)


def policies(found: Sequence[Policy]) -> Iterator[str]:
    """What the policies are for, in their own words."""
    labels = ["policies", *[""] * (len(found) - 1)]
    rows = [[label, one.name, one.description] for label, one in zip(labels, found, strict=True)]
    return table(rows, 0)


def example(shown: Shown, number: int) -> Iterator[str]:
    """One example: before, after and why."""
    yield _heading(number, shown.example.title, shown.example.name, *_RESULTS[shown.result])
    if shown.answer.pod is None:
        yield from _block("before", shown.before)
        yield from _coloured("after", f"refused. {shown.answer.message}", "red")
    elif shown.before == shown.after:
        yield from _block("before", shown.before)
        yield _labelled("after", click.style("the same", dim=True))
    else:
        yield from _block("before", shown.before, {*shown.before} - {*shown.after}, "-")
        yield from _block("after", shown.after, {*shown.after} - {*shown.before}, "+")
    yield from _why(shown)


def run(shown: ShownRun, number: int) -> Iterator[str]:
    """The Run: its pods, each with its rank, its node if it has one, and who placed it."""
    badge = (shown.phases[-1], "green") if shown.phases else ("foreseen", "cyan")
    yield _heading(number, shown.title, shown.name, *badge)
    label = "pods"
    rows = [
        [
            member.shown.example.name,
            f"rank {member.rank} of {member.size}",
            *([f"node {member.node}"] if member.node else []),
            f"by {', '.join(member.policies)}",
        ]
        for member in shown.members
    ]
    for line in table(rows, _START):
        yield f"{label:{_START}}{line[_START:]}"
        label = ""
    if shown.phases:
        *before, last = shown.phases
        yield _labelled(
            "phases", f"{', '.join(before)}; when the demo has ended its master, {last}"
        )


def agreement(count: int) -> Iterator[str]:
    """That the webhook's answers are the engine's, which was asked beside it each time."""
    yield from wrapped(
        f"All {count} answers are those that the engine gives offline: what `fairlead mutate` and "
        "`fairlead explain` foresee is what happens.",
        0,
    )


def places(found: Sequence[Place], shown: Sequence[Shown]) -> Iterator[str]:
    """The table of which pod went where."""
    rows = [["POD", "RUN/ROLE", "ASKED", "NODE", "POOL", "CAPACITY"]]
    for one in shown:
        asked = [_member(one.answer.sent), in_short(one.answer.sent)]
        if one.answer.pod is None:
            rows.append([one.example.name, *asked, "none: refused", "", ""])
        rows += [
            [place.pod, *asked, place.node, place.pool, place.capacity]
            for place in found
            if place.example == one.example.name
        ]
    head, *others = table(rows, 0)
    yield click.style(head, bold=True)
    yield from others


def hints(found: Sequence[tuple[str, str]]) -> Iterator[str]:
    """What to try next: commands, each with what it does."""
    yield click.style("Try next", bold=True)
    longest = max(len(command) for command, _ in found)
    for command, does in found:
        yield f"  {click.style(command.ljust(longest), fg='cyan')}  {does}"


def _heading(number: int, title: str, name: str, badge: str, colour: str) -> str:
    start, end = f"{number}  {title} ", f" {name}  "
    rule = click.style("─" * (width() - len(start) - len(end) - len(badge)), dim=True)
    return click.style(start, bold=True) + rule + end + click.style(badge, fg=colour, bold=True)


def _block(
    label: str, lines: Sequence[Line], changed: Collection[Line] = (), sign: str = " "
) -> Iterator[str]:
    """The lines, those that `changed` with a sign and its colour."""
    if not lines:
        yield _labelled(label, click.style("says nothing of where it may run", dim=True))
    for line in lines:
        mark = sign if line in changed else " "
        start = f"{mark} {line.field:{_FIELD}} "
        for part in wrapped(line.text, _LABEL + 1 + len(start)):
            yield f"{label:{_LABEL}} {click.style(start + part, fg=_SIGNS.get(mark))}"
            label, start = "", " " * len(start)


def _why(shown: Shown) -> Iterator[str]:
    """The entries as `fairlead explain` prints them."""
    rows = [
        [
            click.style(entry.outcome, fg=_OUTCOMES.get(entry.outcome)),
            f"{entry.policy}, {entry.part}" if entry.policy else "the pod itself",
            f"{entry.field}: {entry.reason}",
        ]
        for entry in shown.why
    ]
    label = "why"
    for line in table(rows, _START):
        yield f"{label:{_START}}{line[_START:]}"
        label = ""
    if not rows:
        reason = shown.reason or "it carries no mark of a run: `fairlead sources` lists them"
        yield _labelled("why", reason)
    for warning in shown.answer.warnings:
        yield from _coloured("Warning:", warning, "yellow")


def _coloured(label: str, text: str, colour: str) -> Iterator[str]:
    for part in wrapped(text, _START):
        yield _labelled(label, click.style(part, fg=colour))
        label = ""


def _labelled(label: str, text: str) -> str:
    return f"{label:{_START}}{text}"


def _member(pod: JsonObject) -> str:
    """Which run the pod is of, and as what."""
    metadata = pod["metadata"]
    identity = identify(metadata.get("labels") or {}, metadata.get("annotations") or {}, {})
    if identity is None:
        return "none"
    return f"{identity.run}/{identity.role}" if identity.role else identity.run
