"""The arithmetic of the pace, with any calls at any times."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.kube.pace import LOWEST, Pace

RATES = st.floats(0.1, 1000)
BURSTS = st.integers(1, 1000)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["take", "take", "take", "succeed", "refuse", "hold"]),
        st.floats(0, 5),
        st.floats(0, 10),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(RATES, BURSTS, STEPS)
def test_no_calls_ever_pass_faster_than_the_full_rate(
    rate: float, burst: int, steps: list[tuple[str, float, float]]
) -> None:
    """In any span of time at most the burst and what the rate gives; and the wait told is true."""
    pace, now, passes = Pace(rate, burst), 100.0, []
    for step, elapsed, seconds in steps:
        now += elapsed
        if step == "take":
            now += pace.wait(now)
            now += pace.wait(now)  # a float's last digit
            assert pace.wait(now) == 0.0
            pace.take(now)
            passes.append(now)
        elif step == "succeed":
            pace.succeeded(passes[-1] if passes else now)
        elif step == "refuse":
            pace.refused(passes[-1] if passes else now, now)
        else:
            pace.hold(now, seconds)
        assert rate * LOWEST <= pace.rate <= rate
    for first, start in enumerate(passes):
        for more, end in enumerate(passes[first:], 1):
            assert more <= burst + (end - start) * rate + 1e-6


@settings(deadline=None)
@given(RATES, BURSTS, STEPS, st.floats(0, 100))
def test_nobody_passes_while_calls_are_held(
    rate: float, burst: int, steps: list[tuple[str, float, float]], seconds: float
) -> None:
    """Whatever happens meanwhile, and no burst follows."""
    pace, now = Pace(rate, burst), 100.0
    pace.hold(now, seconds)
    until = now + seconds
    for step, elapsed, more in steps:
        now += elapsed
        if now < until:
            assert now + pace.wait(now) >= until - 1e-6
        if step == "hold":
            pace.hold(now, more)
            until = max(until, now + more)
        elif step == "refuse":
            pace.refused(now, now)
    now = max(now, until)
    pace.hold(now, 0.0)
    assert pace.wait(now) == pytest.approx(1 / pace.rate)


def test_refusals_of_calls_that_were_under_way_together_count_once() -> None:
    """A refusal of a call that passed afterwards counts again, down to the lowest rate."""
    pace = Pace(320.0, 600)
    for _ in range(30):
        pace.take(1.0)
    assert [pace.refused(1.0, 2.0) for _ in range(30)] == [True] + [False] * 29
    assert pace.rate == 160.0
    for later in range(3, 20):
        assert pace.refused(float(later), later + 0.5)
    assert pace.rate == 320.0 * LOWEST


def test_successes_bring_the_full_rate_back_within_seconds() -> None:
    """By e in a second: from a sixty-fourth to all in some four."""
    pace, now = Pace(300.0, 600), 0.0
    for second in range(10):
        pace.refused(second, second + 0.5)
    now = start = 10.0
    while pace.rate < 300.0:
        now += pace.wait(now)
        pace.take(now)
        pace.succeeded(now)
    assert 0.9 * math.log(64) <= now - start <= 1.3 * math.log(64)


def test_successes_of_calls_from_before_the_refusal_do_not_count() -> None:
    """They tell of a time that is over."""
    pace = Pace(320.0, 600)
    pace.take(1.0)
    pace.refused(1.0, 2.0)
    pace.succeeded(1.0)
    assert pace.rate == 160.0


def test_a_slow_bucket_saves_up_no_full_burst() -> None:
    """Its burst shrinks with its rate."""
    pace = Pace(300.0, 600)
    pace.take(1.0)
    pace.refused(1.0, 2.0)
    calls = 0
    while pace.wait(10_000.0) == 0.0:
        pace.take(10_000.0)
        calls += 1
    assert calls == 300


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_rate_that_lets_nobody_pass_is_refused(rate: float, burst: int) -> None:
    """It would stop the program without a word."""
    with pytest.raises(ValueError, match="want above 0"):
        Pace(rate, burst)


def test_passing_without_waiting_is_a_bug() -> None:
    """It is not passed over in silence."""
    pace = Pace(1.0, 1)
    pace.take(0.0)
    with pytest.raises(ValueError, match="may pass yet"):
        pace.take(0.5)
