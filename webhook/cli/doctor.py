"""`fairlead doctor`: find problems of an installation."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.exit_codes import DONE, FAILED, UNKNOWN, errors_exit
from webhook.cli.layout import wrapped
from webhook.cli.options import client_of, cluster_options
from webhook.cli.output import output_option, print_result

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence
    from pathlib import Path

    from webhook.installation.doctor.cluster_state import Finding, ReadKind, Severity
    from webhook.installation.doctor.diagnose import Outcome

_COLOURS: Final = {"error": "red", "warning": "yellow", "note": "cyan"}
_GRAVITY: Final[tuple[Severity, ...]] = ("error", "warning", "note")
_INDENT: Final = 9


@click.command("doctor")
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Only look in this namespace for pods without a stamp, and try a pod there. Repeatable. "
    "Default: all namespaces; the pod is tried in default.",
)
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="NAME",
    help="Only show findings of this check, such as 'unplaced pods'. Repeatable. Default: all.",
)
@cluster_options
@output_option()
@click.pass_context
def command(
    ctx: click.Context,
    namespaces: tuple[str, ...],
    checks: tuple[str, ...],
    kubeconfig: Path | None,
    context: str,
    output: str,
) -> None:
    """Find problems of Fairlead in the cluster, each with its fix.

    The command reads the webhook configuration, Deployments and pods, certificates (no keys),
    endpoints, policies, permissions and versions. It creates a pod of a run by dry run, and finds
    pods of runs without a stamp, such as those that were created while the webhook did not answer.
    It changes nothing. An error means that pods are rejected or not placed, now or soon. A warning
    may become an error.

    \b
    Examples:
      fairlead doctor
      fairlead doctor -n research -n team-a
      fairlead doctor --check 'unplaced pods'
      fairlead doctor -o json | jq '.findings[] | select(.severity == "error")'

    \b
    Exit codes:
      0  no errors
      1  errors
      2  wrong usage, the cluster did not answer, or nothing of what the checks need could be read
    """
    from webhook.installation.doctor.diagnose import CHECKS

    known = [check.name for check in CHECKS]
    for name in checks:
        if name not in known:
            raise click.UsageError(f"--check {name!r} is not one of {', '.join(known)}")
    wanted = [check for check in CHECKS if check.name in (checks or known)]
    kinds = {kind for check in wanted for kind in check.reads}
    with errors_exit(UNKNOWN):
        outcomes = asyncio.run(_run(namespaces, kubeconfig, context, kinds))
    if checks and outcomes[0].name in known:
        outcomes = [each for each in outcomes if each.name in checks]
    print_result(
        output,
        json=lambda: document(outcomes),
        text=lambda: lines(outcomes),
    )
    unchecked = len(_unknown(outcomes)) == len(outcomes)
    ctx.exit(FAILED if errors(outcomes) else UNKNOWN if unchecked else DONE)


async def _run(
    namespaces: Sequence[str], kubeconfig: Path | None, context: str, kinds: Container[ReadKind]
) -> Sequence[Outcome]:
    from datetime import UTC, datetime

    import webhook
    from webhook.installation.doctor.cluster_reader import Reader
    from webhook.installation.doctor.diagnose import diagnose

    async with client_of(kubeconfig, context) as client:
        reader = Reader(client, kinds)
        state = await reader.read_cluster(datetime.now(UTC), webhook.__version__, namespaces)
    return diagnose(state)


def lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Findings, the most severe first; unknown checks; passed checks; the number of findings."""
    for severity in _GRAVITY:
        for name, finding in _with_severity(outcomes, severity):
            yield from _finding(name, finding)
    unknown = _unknown(outcomes)
    if unknown:
        start = click.style("unknown", fg="yellow", bold=True) + " " * (_INDENT - len("unknown"))
        unread = dict.fromkeys(what for each in unknown for what in each.unread)
        yield from _hanging(start, f"{_names(unknown)}: could not read {', '.join(unread)}")
    well = _well(outcomes)
    if well:
        ok = click.style("ok", fg="green") + " " * (_INDENT - 2)
        yield from _hanging(ok, _names(well))
    yield ""
    yield _sum(outcomes)


def document(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The outcomes as JSON."""
    return {
        "errors": errors(outcomes),
        "warnings": _count(outcomes, "warning"),
        "findings": [
            {"check": name, **finding._asdict()}
            for severity in _GRAVITY
            for name, finding in _with_severity(outcomes, severity)
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
    """Checks without findings that could not read all of their input."""
    return [each for each in outcomes if not each.findings and each.unread]


def _names(outcomes: Sequence[Outcome]) -> str:
    return ", ".join(each.name for each in outcomes)


def _with_severity(outcomes: Sequence[Outcome], severity: Severity) -> list[tuple[str, Finding]]:
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
    if len(_unknown(outcomes)) == len(outcomes):
        return "Nothing could be checked."
    wrong, doubtful = errors(outcomes), _count(outcomes, "warning")
    if not wrong and not doubtful:
        limits = " in what could be read" if any(each.unread for each in outcomes) else ""
        return f"No problem found{limits}."
    counts = [
        f"{count} {word}{'s' if count > 1 else ''}"
        for count, word in ((wrong, "error"), (doubtful, "warning"))
        if count
    ]
    return f"{' and '.join(counts)}."


def _count(outcomes: Sequence[Outcome], severity: Severity) -> int:
    return len(_with_severity(outcomes, severity))
