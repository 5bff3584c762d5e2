"""What of exceptions depends on the time: those that have ended, and those that are long."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from webhook.policy.exception_model import PlacementException
from webhook.policy.findings import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.policy.findings import Finding
    from webhook.policy.source import Document

# What lasts longer is no exception, but a policy that does not say what it means.
LONG: Final = timedelta(days=90)


def of_time(documents: Sequence[Document], now: datetime) -> Iterator[Finding]:
    """Warnings of exceptions that do nothing any more, and of those that end late or too late."""
    for document in documents:
        if isinstance(document.model, PlacementException):
            until = datetime.fromisoformat(document.model.spec.until)
            what = ""
            if until <= now:
                what = "has ended, and does nothing any more: delete it, or give a later end"
            elif until - now > LONG:
                what = (
                    f"ends in {(until - now).days} days, and more than {LONG.days} are seldom "
                    "meant: end it sooner, or exclude these pods in the policies themselves"
                )
            if what:
                yield document.finding(("spec", "until"), what, "warning", kind=Kind.TIME)
