"""Spans of time as people write them."""

from __future__ import annotations

from datetime import timedelta

import click
import pytest

from tests.wording import Wording, mentions
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
    ("written", "wanted"),
    [
        ("", "15m, 90s, 1h30m"),
        ("15", "15m, 90s, 1h30m"),
        ("15 m", "15m, 90s, 1h30m"),
        ("-5m", "15m, 90s, 1h30m"),
        ("30m1h", "15m, 90s, 1h30m"),
        ("1.5h", "15m, 90s, 1h30m"),
        ("٣m", "15m, 90s, 1h30m"),
        ("0m", "1 s and 24 h"),
        ("25h", "1 s and 24 h"),
        ("9999h", "1 s and 24 h"),
    ],
)
def test_nonsense_is_refused(written: str, wanted: str, wording: Wording) -> None:
    """With what is wanted."""
    with pytest.raises(click.BadParameter) as refused:
        SPAN.convert(written, None, None)
    mentions(refused.value.message, written, wanted)
    wording(refused.value.message)


def test_nothing_is_nothing() -> None:
    """Not the empty text."""
    assert text(timedelta()) == "0 s"
