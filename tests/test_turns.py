"""Turns go round the names, and so many may be under way at once."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kube.virtual_time import run
from webhook.turns import Window, gather_some

pytestmark = pytest.mark.virtual_time


async def test_the_size_doubles_by_the_round() -> None:
    """One, two, four, ... up to the most."""
    window, sizes = Window(10), []
    for _ in range(6):
        sizes.append(window.size)
        for _ in range(window.size):
            await window.enter()
        for _ in range(window.inside):
            window.grow()
            window.leave()
    assert sizes == [1, 2, 4, 8, 10, 10]


async def test_after_a_refusal_it_goes_one_by_one() -> None:
    """Those who are inside stay; nobody else comes in before all but one have left."""
    window = Window(4)
    for _ in range(3):
        window.grow()
    for _ in range(4):
        await window.enter()
    window.shrink()
    waiting = asyncio.create_task(window.enter())
    for _ in range(3):
        await asyncio.sleep(1)
        window.leave()
        assert not waiting.done()
    window.leave()
    await waiting
    assert (window.size, window.inside) == (1, 1)


async def test_lines_take_turns() -> None:
    """A crowd in one holds back who comes to another by one place."""
    window, came = Window(1), []
    await window.enter()

    async def caller(line: str) -> None:
        async with window.turn(line):
            came.append(line)

    lines = ["crowd"] * 5 + ["small"] * 2
    tasks = [asyncio.create_task(caller(line)) for line in lines]
    await asyncio.sleep(1)
    tasks[1].cancel()
    assert window.waiting == 7
    await asyncio.sleep(1)
    assert window.waiting == 6
    window.leave()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert came == ["crowd", "small", "crowd", "small", "crowd", "crowd"]


@settings(deadline=None)
@given(
    st.integers(1, 8),
    st.lists(st.sampled_from(["enter", "leave", "grow", "shrink", "cancel", "let"]), max_size=60),
)
def test_places_go_in_order_and_none_is_lost(most: int, steps: list[str]) -> None:
    """Whoever is cancelled, while waiting or as the place comes, gives it on."""

    async def main() -> None:
        window, left = Window(most), 0
        entered: list[int] = []
        callers: list[asyncio.Task[None]] = []

        async def caller(number: int) -> None:
            await window.enter()
            entered.append(number)

        for step in steps:
            if step == "enter":
                callers.append(asyncio.create_task(caller(len(callers))))
                # It joins the line now, and not after a place that a later step gives away.
                await asyncio.sleep(0)
            elif step == "leave" and left < len(entered):
                left += 1
                window.leave()
            elif step == "grow":
                window.grow()
            elif step == "shrink":
                window.shrink()
            elif step == "cancel" and callers:
                callers[-1].cancel()
            elif step == "let":
                await asyncio.sleep(1)
                assert window.inside == len(entered) - left
        await asyncio.sleep(1)
        while left < len(entered):
            left += 1
            window.leave()
            await asyncio.sleep(1)
        assert (window.inside, window.waiting) == (0, 0)
        assert entered == [n for n, task in enumerate(callers) if not task.cancelled()]

    run(main())


def test_a_window_of_size_zero_is_rejected() -> None:
    """It would stop the program without a word."""
    with pytest.raises(ValueError, match="at least 1"):
        Window(0)


async def test_who_is_cancelled_as_the_place_comes_gives_it_on() -> None:
    """Else it would be lost for good."""
    window = Window(1)
    await window.enter()
    waiting = asyncio.create_task(window.enter())
    await asyncio.sleep(1)
    window.leave()
    assert window.inside == 1
    waiting.cancel()
    await asyncio.wait([waiting])
    assert window.inside == 0


async def test_some_calls_run_at_a_time_and_their_results_keep_the_order() -> None:
    """The later ones end first."""
    inside: list[int] = []
    numbers: list[int] = []

    async def call(entry: int) -> int:
        inside.append(entry)
        numbers.append(len(inside))
        await asyncio.sleep(10 - entry)
        inside.remove(entry)
        return entry

    assert await gather_some(3, call, range(8)) == list(range(8))
    assert max(numbers) == 3
