"""Spans of time as people write them."""

from __future__ import annotations

from datetime import timedelta

import click
import pytest

from webhook.cli.duration import Duration, text

SPAN = Duration(timedelta(seconds=1), timedelta(hours=24))


@pytest.mark.parametrize(
    ("written", "seconds", "read"),
    [
        ("15m", 900, "15 min"),
        ("90s", 90, "1 min 30 s"),
        ("1h30m", 5400, "1 h 30 min"),
        ("24h", 86400, "24 h"),
        ("1s", 1, "1 s"),
    ],
)
def test_spans_are_read_and_written(written: str, seconds: int, read: str) -> None:
    """In hours, minutes and seconds."""
    span = SPAN.convert(written, None, None)
    assert span == timedelta(seconds=seconds)
    assert text(span) == read
    assert SPAN.convert(span, None, None) is span


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("", "no span of time"),
        ("15", "no span of time"),
        ("15 m", "no span of time"),
        ("-5m", "no span of time"),
        ("30m1h", "no span of time"),
        ("1.5h", "no span of time"),
        ("٣m", "no span of time"),
        ("0m", "not within 1 s and 24 h"),
        ("25h", "not within 1 s and 24 h"),
        ("9999h", "not within 1 s and 24 h"),
    ],
)
def test_nonsense_is_refused(written: str, why: str) -> None:
    """With what is wanted."""
    with pytest.raises(click.BadParameter, match=why):
        SPAN.convert(written, None, None)


def test_nothing_is_nothing() -> None:
    """Not the empty text."""
    assert text(timedelta()) == "0 s"
