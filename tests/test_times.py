"""Times are written and read as Kubernetes does, and spoken as kubectl does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.times import elapsed, format_age, format_span, parse_time, to_microsecond, to_second

MOMENT = datetime(2026, 11, 21, 20, 15, 0, 123456, tzinfo=UTC)


def test_a_time_is_written_in_utc_to_the_second_or_the_microsecond() -> None:
    """As metav1.Time and metav1.MicroTime, whatever zone it came in."""
    elsewhere = MOMENT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert to_second(elsewhere) == "2026-11-21T20:15:00Z"
    assert to_microsecond(elsewhere) == "2026-11-21T20:15:00.123456Z"


# Hypothesis takes its bounds without a zone.
@given(st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_what_is_written_is_read_back(moment: datetime) -> None:
    """To the microsecond the very moment, to the second the second that it is in."""
    assert parse_time(to_microsecond(moment)) == moment
    assert parse_time(to_second(moment)) == moment.replace(microsecond=0)


def test_a_time_without_a_zone_is_invalid() -> None:
    """It could be any."""
    with pytest.raises(ValueError, match="has no time zone"):
        parse_time("2026-11-21T20:15:00")


def test_elapsed_time_is_negative_for_what_is_to_come() -> None:
    """Clocks differ, and a caller has to know."""
    assert elapsed("2026-11-21T20:14:50Z", MOMENT) == pytest.approx(10.123456)
    assert elapsed("2026-11-21T20:15:10Z", MOMENT) < 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"),
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (725, "12m5s"),
        (3600, "1h"),
        (11100, "3h5m"),
        (3605, "1h"),
        (180000, "2d2h"),
    ],
)
def test_a_span_is_spoken_by_its_two_largest_units(seconds: float, text: str) -> None:
    """Units that are nought are left out."""
    assert format_span(seconds) == text


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (-1, "0s"),
        (1 / 3600, "1s"),
        (70 / 3600, "70s"),
        (190 / 3600, "3m10s"),
        (9 / 60, "9m"),
        (70 / 60, "70m"),
        (7.5, "7h30m"),
        (47, "47h"),
        (49, "2d1h"),
        (8 * 24 + 2, "8d"),
        (367 * 24, "367d"),
        (365 * 2 * 24 + 25, "2y1d"),
        (365 * 8 * 24 + 2, "8y"),
    ],
)
def test_an_age_is_that_of_kubectl(hours: float, text: str) -> None:
    """Of the cases of HumanDuration's own test, in k8s.io/apimachinery."""
    since = to_microsecond(MOMENT - timedelta(hours=hours))
    assert format_age(since, MOMENT + timedelta(milliseconds=1)) == text


def test_without_a_time_there_is_no_age() -> None:
    """What has not happened has none."""
    assert format_age("", MOMENT) == ""
