"""A diagnosis as text, for a tired person at night, and as a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.layout import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.installation.doctor.diagnose import Outcome
    from webhook.installation.doctor.findings import Finding, Severity

_COLOURS: Final = {"error": "red", "warning": "yellow", "note": "cyan"}
_GRAVITY: Final[tuple[Severity, ...]] = ("error", "warning", "note")
_INDENT: Final = 9


def lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """What is wrong first, the worst before the rest; what is not known; what is well; the sum."""
    for severity in _GRAVITY:
        for name, finding in _of(outcomes, severity):
            yield from _finding(name, finding)
    unknown = _unknown(outcomes)
    if unknown:
        start = click.style("unknown", fg="yellow", bold=True) + " " * (_INDENT - len("unknown"))
        unread = dict.fromkeys(what for each in unknown for what in each.unread)
        yield from _hanging(start, f"{_names(unknown)}: not known: {', '.join(unread)}")
    well = _well(outcomes)
    if well:
        ok = click.style("ok", fg="green") + " " * (_INDENT - 2)
        yield from _hanging(ok, _names(well))
    yield ""
    yield _sum(outcomes)


def document(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The same for programs."""
    return {
        "errors": errors(outcomes),
        "warnings": _count(outcomes, "warning"),
        "findings": [
            {"check": name, **finding._asdict()}
            for severity in _GRAVITY
            for name, finding in _of(outcomes, severity)
        ],
        "unknown": [each.name for each in _unknown(outcomes)],
        "ok": [each.name for each in _well(outcomes)],
    }


def errors(outcomes: Sequence[Outcome]) -> int:
    """How many findings are errors."""
    return _count(outcomes, "error")


def _well(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [each for each in outcomes if not each.findings and not each.unread]


def _unknown(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Those that found nothing, and did not see all that they look at."""
    return [each for each in outcomes if not each.findings and each.unread]


def _names(outcomes: Sequence[Outcome]) -> str:
    return ", ".join(each.name for each in outcomes)


def _of(outcomes: Sequence[Outcome], severity: Severity) -> list[tuple[str, Finding]]:
    return [
        (outcome.name, finding)
        for outcome in outcomes
        for finding in outcome.findings
        if finding.severity == severity
    ]


def _finding(name: str, finding: Finding) -> Iterator[str]:
    word = click.style(finding.severity, fg=_COLOURS[finding.severity], bold=True)
    yield from _hanging(word + " " * (_INDENT - len(finding.severity)), f"{name}: {finding.what}")
    if finding.cure:
        yield from _hanging(" " * _INDENT, f"cure: {finding.cure}")


def _hanging(start: str, text: str) -> Iterator[str]:
    first, *rest = wrapped(text, _INDENT)
    yield start + first
    for line in rest:
        yield " " * _INDENT + line


def _sum(outcomes: Sequence[Outcome]) -> str:
    wrong, doubtful = errors(outcomes), _count(outcomes, "warning")
    if not wrong and not doubtful:
        seen = " in what could be read" if any(each.unread for each in outcomes) else ""
        return f"Nothing is wrong{seen}."
    told = [
        f"{count} {word}{'s' if count > 1 else ''}"
        for count, word in ((wrong, "error"), (doubtful, "warning"))
        if count
    ]
    return f"{' and '.join(told)}."


def _count(outcomes: Sequence[Outcome], severity: Severity) -> int:
    return len(_of(outcomes, severity))
