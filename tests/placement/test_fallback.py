"""A fallback is a function of what happened: no state, and nothing that depends on an order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.errors import UnreadableText
from webhook.placement.capacity import Mode
from webhook.placement.fallback import MAX_RETURN, Event, Fallback, History, fallen, parse_history

BEGIN = datetime(2026, 11, 28, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
RULE = Fallback(Mode.ALLOW, 3, 6 * HOUR, timedelta(minutes=20), 2 * HOUR)


def lost(*hours: float) -> list[Event]:
    """Nodes of spot that were lost so many hours after the beginning."""
    return [Event("spot", BEGIN + each * HOUR) for each in hours]


def until(events: list[Event], at: float, rule: Fallback = RULE) -> float | None:
    """Until when replicas that start then are not on spot alone, in hours from the beginning."""
    end = rule.lasts_until("spot", History(BEGIN + at * HOUR, tuple(events)))
    return None if end is None else (end - BEGIN) / HOUR


@pytest.mark.parametrize(
    ("events", "at", "end"),
    [
        (lost(0, 1), 1, None),
        (lost(0, 1, 2), 2, 4),
        (lost(0, 1, 2), 3.9, 4),
        (lost(0, 1, 2), 4, None),
        # The first is too long ago.
        (lost(0, 3, 6.1), 6.1, None),
        (lost(0, 3, 6), 6, 8),
        # Each time twice as long, up to a day.
        (lost(0, 1, 2, 4, 5, 6), 6, 10),
        (lost(0, 1, 2, 4, 5, 6, 10, 11, 12, 20, 21, 22), 22, 38),
        (lost(0, 1, 2, 4, 5, 6, 10, 11, 12, 20, 21, 22, 38, 39, 40), 40, 64),
        # While it is in force nothing counts: it was not on spot.
        (lost(0, 1, 2, 3, 3, 3), 4, None),
        ([Event("spot", BEGIN, 1200)], 0, 2),
        ([Event("spot", BEGIN, 1199)], 0, None),
        ([Event("other", BEGIN, 1200)], 0, None),
    ],
)
def test_when_it_is_in_force(events: list[Event], at: float, end: float | None) -> None:
    """Three losses within six hours, or twenty minutes without a node, for two hours."""
    assert until(events, at) == end


def test_what_the_policy_does_not_name_does_not_count() -> None:
    """Waiting alone, or losses alone."""
    waits, counts = RULE._replace(disruptions=None), RULE._replace(pending=None)
    assert until(lost(0, 0, 0), 0, waits) is None
    assert until([Event("spot", BEGIN, 86400)], 0, counts) is None


events = st.lists(
    st.builds(
        Event,
        st.sampled_from(["spot", "other"]),
        st.integers(0, 90_000).map(lambda seconds: BEGIN + timedelta(seconds=seconds)),
        st.none() | st.integers(0, 3000),
    )
)


@given(events, st.integers(0, 90_000), st.randoms())
def test_the_order_of_the_list_changes_nothing(
    some: list[Event], seconds: int, random: Random
) -> None:
    """And whatever happened, it ends within a day of the last event."""
    at = BEGIN + timedelta(seconds=seconds)
    end = RULE.lasts_until("spot", History(at, tuple(some)))
    shuffled = random.sample(some, len(some))
    assert RULE.lasts_until("spot", History(at, tuple(shuffled))) == end
    if end is not None:
        assert at < end <= max(each.time for each in some) + MAX_RETURN


@given(st.integers(1, 10), st.booleans())
def test_the_worst_history_is_one_after_which_each_applies(count: int, waits: bool) -> None:
    """Checks of a set look at pods that have it."""
    rule = RULE._replace(
        disruptions=count, within=timedelta(minutes=1), pending=MAX_RETURN if waits else None
    )
    assert rule.lasts_until("spot", fallen(["spot"], BEGIN))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"asOf": "now", "events": []}',
        '{"asOf": "2026-11-28T12:00:00Z", "events": 1}',
    ],
)
def test_what_is_no_history(text: str) -> None:
    """It is an error, and never half of one."""
    with pytest.raises(UnreadableText):
        parse_history(text)
