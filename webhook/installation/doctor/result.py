"""What the checks found, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.installation.doctor.cluster_state import does_not_apply
from webhook.shortening import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.installation.doctor.cluster_state import Severity
    from webhook.installation.doctor.diagnose import Outcome

_GRAVITY: Final[tuple[Severity, ...]] = ("error", "warning", "note")


def document(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the outcomes as JSON."""
    findings = [
        {"check": outcome.name, **finding.document()}
        for severity in _GRAVITY
        for outcome in outcomes
        for finding in outcome.findings
        if finding.severity == severity
    ]
    severities = [finding["severity"] for finding in findings]
    unread = {what: reason for outcome in outcomes for what, reason in outcome.unread.items()}
    return {
        "answer": _answer(outcomes, severities),
        "errors": severities.count("error"),
        "warnings": severities.count("warning"),
        "findings": findings,
        "unknown": [outcome.name for outcome in outcomes if outcome.unread],
        "unread": [
            {
                "what": what,
                **reason._asdict(),
                "checks": [outcome.name for outcome in outcomes if what in outcome.unread],
            }
            for what, reason in unread.items()
        ],
        "ok": [outcome.name for outcome in outcomes if not (outcome.findings or outcome.unread)],
    }


def _answer(outcomes: Sequence[Outcome], severities: Sequence[str]) -> str:
    """Return the numbers of errors and warnings, in one sentence."""
    counts = [
        count_text(count, word)
        for word in ("error", "warning")
        if (count := severities.count(word))
    ]
    if counts:
        return f"{' and '.join(counts)}."
    if nothing_checked(outcomes):
        return "Nothing could be checked."
    unread = any(outcome.unread for outcome in outcomes)
    return f"No problem found{' in what could be read' if unread else ''}."


def nothing_checked(outcomes: Sequence[Outcome]) -> bool:
    """Return whether no check applies to this cluster, or could read what it needs."""
    return all(
        does_not_apply(outcome.findings) or (outcome.unread and not outcome.findings)
        for outcome in outcomes
    )
