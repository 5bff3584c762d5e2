"""A wait that ends in vain says what it waited for."""

from __future__ import annotations

import asyncio

import pytest

from tests.eventually import eventually, eventually_async, waits_end_after


@pytest.mark.timeout(10.5)
def test_a_wait_ends_before_the_time_out_of_its_test() -> None:
    """Which would end the test without a word about it."""
    with pytest.raises(AssertionError, match=r"a pod\nexplained"):
        eventually("a pod", lambda: None, explain=lambda: "explained")


def test_a_wait_of_a_coroutine_does_too() -> None:
    """Whatever its budget."""

    async def wait() -> None:
        await eventually_async("a pod", lambda: None, budget=180)

    with waits_end_after(0.1), pytest.raises(AssertionError, match="a pod"):
        asyncio.run(wait())


def test_a_wait_goes_on_until_it_holds() -> None:
    """And returns what it found."""
    answers = iter([None, "", "found"])
    assert eventually("an answer", lambda: next(answers)) == "found"
