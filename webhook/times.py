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


def is_time(text: str) -> bool:
    """Return whether `parse_time` can parse the text."""
    try:
        return bool(parse_time(text))
    except ValueError:
        return False


def elapsed(since: str, now: datetime) -> float:
    """Seconds from `since` to `now`; negative if it is still to come."""
    return (now - parse_time(since)).total_seconds()


# As metav1.Duration, in the units that people write; at least one of them is there.
SPAN_PATTERN: Final = "([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?"
_SPAN: Final = re.compile(SPAN_PATTERN)


def parse_span(text: str) -> timedelta:
    """Parse hours, minutes and seconds: 1h30m, 90s. Raises ValueError for anything else."""
    match = _SPAN.fullmatch(text)
    if not text or not match:
        raise ValueError(f"{text!r} is not a valid duration: want a value such as 15m, 90s, 1h30m")
    hours, minutes, seconds = (int((group or "0")[:-1] or 0) for group in match.groups())
    return timedelta(hours=hours, minutes=minutes, seconds=seconds)


def span_seconds(text: str) -> float:
    """Return a span in seconds. Raises as `parse_span`."""
    return parse_span(text).total_seconds()


_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 365 * 86400}
# The units of an age of less than so many seconds, as HumanDuration of k8s.io/apimachinery.
_AGES: Final = (
    (2 * 60, "s"),
    (10 * 60, "ms"),
    (3 * 3600, "m"),
    (8 * 3600, "hm"),
    (48 * 3600, "h"),
    (8 * 86400, "dh"),
    (2 * 365 * 86400, "d"),
    (8 * 365 * 86400, "yd"),
)


def format_age(since: str, now: datetime) -> str:
    """Return the span since then as kubectl prints ages: 90s, 5m30s, 26h, 332d; empty without a
    time.
    """
    if not since:
        return ""
    seconds = max(0, int(elapsed(since, now)))
    text = ""
    for unit in next((units for most, units in _AGES if seconds < most), "y"):
        count, seconds = divmod(seconds, _SECONDS[unit])
        text += f"{count}{unit}" if count or not text else ""
    return text


def format_span(seconds: float) -> str:
    """Return a span for people, in its two largest units: 45s, 12m, 3h5m, 4d2h."""
    whole = max(0, int(seconds))
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, seconds_left = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (seconds_left, "s")]
    while len(parts) > 1 and not parts[0][0]:
        parts.pop(0)
    return "".join(f"{count}{unit}" for count, unit in parts[:2] if count) or "0s"
