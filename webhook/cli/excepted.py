"""What exceptions do to pods, told to people and programs by those who explain decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.cli.harmless import harmless
from webhook.times import spoken

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from webhook.admission.decision import Decision
    from webhook.policy.exceptions import PolicyException


def reasons(decision: Decision, policy: str, now: datetime | None) -> Iterator[str]:
    """Why the policy takes no part, or that it would have taken none; nothing in most cases."""
    for exception, policies in decision.set_aside.by:
        if policy in policies:
            yield _told(exception, now)
    for exception, policies in decision.set_aside.ended:
        if policy in policies:
            yield f"exception {exception.name} would have set it aside; it {period(exception, now)}"


def period(exception: PolicyException, now: datetime | None) -> str:
    """When it ends or has ended: `until 2026-12-01T18:00:00Z (in 3h)`, `ended 2d ago`."""
    if now is None:
        return f"until {exception.end}"
    left = (exception.until - now).total_seconds()
    if left > 0:
        return f"until {exception.end} (in {spoken(left)})"
    return f"ended {spoken(-left)} ago"


def notes(decision: Decision, now: datetime | None) -> Iterator[str]:
    """A line for each exception that took policies away."""
    for exception, policies in decision.set_aside.by:
        which = "policy" if len(policies) == 1 else "policies"
        yield f"{which} {', '.join(policies)} set aside: {_told(exception, now)}"


def _told(exception: PolicyException, now: datetime | None) -> str:
    return f"exception {exception.name} {period(exception, now)}: {harmless(exception.reason)}"


def document(decision: Decision) -> list[dict[str, Any]]:
    """All of them as JSON: those in force, then those that have ended."""
    return [
        {
            "name": exception.name,
            "inForce": in_force,
            "until": exception.end,
            "reason": exception.reason,
            "policies": list(policies),
        }
        for in_force, taken in ((True, decision.set_aside.by), (False, decision.set_aside.ended))
        for exception, policies in taken
    ]
