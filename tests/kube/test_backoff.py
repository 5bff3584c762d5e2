"""Waiting between attempts."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from webhook.backoff import Delays
from webhook.kube.backoff import Backoff


@given(st.integers(), st.integers(min_value=0, max_value=2000))
def test_waits_double_up_to_the_longest_and_are_spread_by_half(seed: int, attempts: int) -> None:
    """The n-th wait is 0.5 to 1.5 times first·2ⁿ, and never beyond 1.5 times the longest."""
    backoff = Backoff(Random(seed), Delays(1.0, 30.0))
    for attempt in range(attempts):
        middle = min(30.0, 2.0 ** min(attempt, 10))
        assert 0.5 * middle <= backoff.next() <= 1.5 * middle


def test_success_begins_anew() -> None:
    """After a reset the first wait is the first again."""
    backoff = Backoff(Random(1), Delays(1.0, 30.0))
    for _ in range(10):
        backoff.next()
    backoff.reset()
    assert backoff.next() <= 1.5


def test_two_that_fail_together_do_not_come_back_together() -> None:
    """The waits of two backoffs differ."""
    one, other = Backoff(Random(1)), Backoff(Random(2))
    assert [one.next() for _ in range(5)] != [other.next() for _ in range(5)]
