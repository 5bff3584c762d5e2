"""What the checks found, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.installation.doctor.cluster_state import Severity
    from webhook.installation.doctor.diagnose import Outcome

_GRAVITY: Final[tuple[Severity, ...]] = ("error", "warning", "note")


def document(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the outcomes as JSON."""
    findings = [
        {"check": outcome.name, **finding._asdict()}
        for severity in _GRAVITY
        for outcome in outcomes
        for finding in outcome.findings
        if finding.severity == severity
    ]
    severities = [each["severity"] for each in findings]
    quiet = [each for each in outcomes if not each.findings]
    return {
        "errors": severities.count("error"),
        "warnings": severities.count("warning"),
        "findings": findings,
        "unknown": [each.name for each in quiet if each.unread],
        "ok": [each.name for each in quiet if not each.unread],
    }
