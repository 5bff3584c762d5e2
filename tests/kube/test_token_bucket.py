"""Waiting for one's turn, on a clock that jumps."""

from __future__ import annotations

import asyncio

import pytest

from tests.kube.virtual_time import now, run
from webhook.kube.token_bucket import TokenBucket


def bucket(rate: float = 100.0, burst: int = 10, in_flight: int = 4) -> TokenBucket:
    return TokenBucket(rate, burst, in_flight, clock=now)


async def call(through: TokenBucket, seconds: float = 0.0) -> float:
    """A call that takes so long and goes well; when it passed."""
    passed = await through.take()
    await asyncio.sleep(seconds)
    through.succeeded(passed)
    return passed


def test_a_thousand_calls_go_at_the_full_rate() -> None:
    """After the burst; and in the order in which they came."""

    async def main() -> None:
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

    run(main())


def test_the_first_calls_go_one_two_four_at_a_time() -> None:
    """So that the first refusal costs one."""

    async def main() -> list[float]:
        through, start = bucket(1e6, 1000, 8), now()
        return [
            passed - start
            for passed in await asyncio.gather(*(call(through, 1.0) for _ in range(23)))
        ]

    assert run(main()) == [0.0] + [1.0] * 2 + [2.0] * 4 + [3.0] * 8 + [4.0] * 8


def test_while_the_server_asks_for_quiet_nobody_passes() -> None:
    """Neither those who wait already nor those who come; then slower, and one at a time."""

    async def main() -> None:
        through, start = bucket(), now()
        for _ in range(20):
            await call(through)
        passed = await through.take()
        waiting = [asyncio.create_task(call(through)) for _ in range(40)]
        through.refused(passed, 30.0)
        assert through.rate == 50.0
        refused_at = now()
        await asyncio.sleep(10)
        waiting += [asyncio.create_task(call(through)) for _ in range(5)]
        times = await asyncio.gather(*waiting)
        assert min(times) == pytest.approx(refused_at + 30.0 + 1 / 50)
        assert times[1] - times[0] == pytest.approx(1 / 51, rel=0.01)
        assert times == sorted(times)
        assert through.rate == 95.0
        assert start < refused_at

    run(main())


def test_a_pause_that_begins_while_the_first_in_line_sleeps_holds_it_too() -> None:
    """It looks again when it wakes."""

    async def main() -> None:
        through = bucket(1.0, 1)
        await call(through)
        next_one = asyncio.create_task(call(through))
        await asyncio.sleep(0.5)
        begun = now()
        through.pause(60)
        assert await next_one == pytest.approx(begun + 61.0)

    run(main())


def test_calls_that_ended_somehow_change_nothing_but_give_their_place_back() -> None:
    """A quota that is used up is not the API server's load: neither faster nor slower."""

    async def main() -> None:
        through = bucket(in_flight=4)
        for _ in range(3):
            through.ended(await through.take())
        assert through.in_flight == 0
        first = await through.take()
        second = asyncio.create_task(through.take())
        await asyncio.sleep(1)
        assert not second.done()
        through.ended(first)
        through.ended(await second)
        assert (through.in_flight, through.rate) == (0, 100.0)

    run(main())


@pytest.mark.parametrize("place", ["line", "head of the line", "window"])
def test_a_caller_that_is_cancelled_keeps_nobody_waiting(place: str) -> None:
    """Wherever it stood."""

    async def main() -> None:
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
        assert through.in_flight == 0

    run(main())
