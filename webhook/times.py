"""Times as Kubernetes writes them (RFC 3339, UTC), to seconds and to microseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final


def to_second(moment: datetime) -> str:
    """As metav1.Time: 2026-11-21T20:15:00Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_microsecond(moment: datetime) -> str:
    """As metav1.MicroTime: 2026-11-21T20:15:00.123456Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """Parse a timestamp of either form. Raises ValueError for anything else."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return moment


def elapsed(since: str, now: datetime) -> float:
    """Seconds from `since` to `now`; negative if it is still to come."""
    return (now - parse_time(since)).total_seconds()


# As metav1.Duration, in the units that people write; at least one of them is there.
SPAN_PATTERN: Final = "([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?"
_SPAN: Final = re.compile(SPAN_PATTERN)


def parse_span(text: str) -> timedelta:
    """Parse hours, minutes and seconds: 1h30m, 90s. Raises ValueError for anything else."""
    found = _SPAN.fullmatch(text)
    if not text or not found:
        raise ValueError(f"{text!r} is not a valid duration: want a value such as 15m, 90s, 1h30m")
    hours, minutes, seconds = (int((each or "0")[:-1] or 0) for each in found.groups())
    return timedelta(hours=hours, minutes=minutes, seconds=seconds)


def span_seconds(text: str) -> float:
    """Return a span in seconds. Raises as `parse_span`."""
    return parse_span(text).total_seconds()


def format_age(since: str, now: datetime) -> str:
    """Return the span since then for people; empty without a time."""
    return format_span(elapsed(since, now)) if since else ""


def format_span(seconds: float) -> str:
    """Return a span for people, as kubectl writes ages: 45s, 12m, 3h5m, 4d2h."""
    whole = max(0, int(seconds))
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, seconds_left = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (seconds_left, "s")]
    while len(parts) > 1 and not parts[0][0]:
        parts.pop(0)
    return "".join(f"{count}{unit}" for count, unit in parts[:2] if count) or "0s"
