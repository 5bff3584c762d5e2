"""Rate limits, with any calls at any times, and delays between retries."""

from __future__ import annotations

import asyncio
import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kube.virtual_time import now
from webhook.backoff import Delays
from webhook.kube.rate_limit import LOWEST, Backoff, Pace, Paces, TokenBucket

pytestmark = pytest.mark.virtual_time

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
def test_no_call_passes_while_calls_are_held(
    rate: float, burst: int, steps: list[tuple[str, float, float]], seconds: float
) -> None:
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
def test_a_rate_of_zero_is_rejected(rate: float, burst: int) -> None:
    """It would stop the program without a word."""
    with pytest.raises(ValueError, match="want above 0"):
        Pace(rate, burst)


def test_passing_without_waiting_is_a_bug() -> None:
    pace = Pace(1.0, 1)
    pace.take(0.0)
    with pytest.raises(ValueError, match="may pass yet"):
        pace.take(0.5)


def test_each_has_a_burst_and_then_a_pace_of_its_own() -> None:
    paces = Paces(burst=2, every=10.0, most=5)
    assert [paces.passes("a", now) for now in (0.0, 0.0, 0.0, 9.0, 10.0, 10.0)] == [
        True,
        True,
        False,
        False,
        True,
        False,
    ]
    assert paces.passes("b", 10.0)


def test_who_has_not_asked_for_longest_is_forgotten() -> None:
    paces = Paces(burst=1, every=10.0, most=2)
    assert paces.passes("a", 0.0)
    assert paces.passes("b", 0.0)
    assert not paces.passes("a", 0.0)
    assert paces.passes("c", 0.0)
    assert not paces.passes("a", 0.0)
    assert paces.passes("b", 0.0)


def bucket(rate: float = 100.0, burst: int = 10, in_flight: int = 4) -> TokenBucket:
    return TokenBucket(rate, burst, in_flight, clock=now)


async def call(through: TokenBucket, seconds: float = 0.0) -> float:
    """A call that takes so long and goes well; when it passed."""
    passed = await through.take()
    await asyncio.sleep(seconds)
    through.succeeded(passed)
    return passed


async def test_a_thousand_calls_go_at_the_full_rate() -> None:
    through, start = bucket(), now()
    order: list[int] = []

    async def numbered(number: int) -> float:
        passed = await call(through)
        order.append(number)
        return passed

    times = await asyncio.gather(*(numbered(number) for number in range(1000)))
    assert order == list(range(1000))
    assert times[-1] - start == pytest.approx((1000 - 10) / 100.0, abs=0.05)
    assert times[9] == start


async def test_the_first_calls_go_one_two_four_at_a_time() -> None:
    """So that the first refusal costs one."""
    through, start = bucket(1e6, 1000, 8), now()
    assert [
        passed - start for passed in await asyncio.gather(*(call(through, 1.0) for _ in range(23)))
    ] == [0.0] + [1.0] * 2 + [2.0] * 4 + [3.0] * 8 + [4.0] * 8


async def test_while_the_server_throttles_no_call_passes() -> None:
    """Neither those who wait already nor those who come; then slower, and one at a time."""
    through, start = bucket(), now()
    for _ in range(20):
        await call(through)
    passed = await through.take()
    waiting = [asyncio.create_task(call(through)) for _ in range(40)]
    through.refused(passed, 30.0)
    assert through.pace.rate == 50.0
    refused_at = now()
    await asyncio.sleep(10)
    waiting += [asyncio.create_task(call(through)) for _ in range(5)]
    times = await asyncio.gather(*waiting)
    assert min(times) == pytest.approx(refused_at + 30.0 + 1 / 50)
    assert times[1] - times[0] == pytest.approx(1 / 51, rel=0.01)
    assert times == sorted(times)
    assert through.pace.rate == 95.0
    assert start < refused_at


async def test_a_pause_that_begins_while_the_first_in_line_sleeps_holds_it_too() -> None:
    through = bucket(1.0, 1)
    await call(through)
    next_one = asyncio.create_task(call(through))
    await asyncio.sleep(0.5)
    begun = now()
    through.pause(60)
    assert await next_one == pytest.approx(begun + 61.0)


async def test_other_outcomes_free_the_place_and_leave_the_rate() -> None:
    """A quota that is used up is not the API server's load: neither faster nor slower."""
    through = bucket(in_flight=4)
    for _ in range(3):
        through.ended(await through.take())
    assert through.window.inside == 0
    first = await through.take()
    second = asyncio.create_task(through.take())
    await asyncio.sleep(1)
    assert not second.done()
    through.ended(first)
    through.ended(await second)
    assert (through.window.inside, through.pace.rate) == (0, 100.0)


@pytest.mark.parametrize("place", ["line", "head of the line", "window"])
async def test_a_cancelled_caller_does_not_block_others(place: str) -> None:
    through = bucket(1.0, 1, 8)
    for _ in range(8):
        await call(through)
    number = {"head of the line": 0, "line": 3, "window": 10}[place]
    callers = [asyncio.create_task(call(through)) for _ in range(12)]
    await asyncio.sleep(0.1)
    callers[number].cancel()
    await asyncio.wait([callers[number]])
    rest = [caller for caller in callers if caller is not callers[number]]
    times = await asyncio.gather(*rest)
    assert times == sorted(times)
    assert times[-1] - times[0] == pytest.approx(10.0, abs=0.1)
    assert through.window.inside == 0


@given(st.integers(), st.integers(min_value=0, max_value=2000))
def test_waits_double_up_to_the_longest_and_are_spread_by_half(seed: int, attempts: int) -> None:
    """The n-th wait is 0.5 to 1.5 times first·2ⁿ, and never beyond 1.5 times the longest."""
    backoff = Backoff(Random(seed), Delays(1.0, 30.0))
    for attempt in range(attempts):
        middle = min(30.0, 2.0 ** min(attempt, 10))
        assert 0.5 * middle <= backoff.next() <= 1.5 * middle


def test_a_success_resets_the_backoff() -> None:
    backoff = Backoff(Random(1), Delays(1.0, 30.0))
    for _ in range(10):
        backoff.next()
    backoff.reset()
    assert backoff.next() <= 1.5


def test_two_that_fail_together_do_not_come_back_together() -> None:
    one, other = Backoff(Random(1)), Backoff(Random(2))
    assert [one.next() for _ in range(5)] != [other.next() for _ in range(5)]
