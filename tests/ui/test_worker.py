"""Work that takes too long or too much memory is ended, and the next is done."""

from __future__ import annotations

import time

import pytest

from webhook.ui.worker import TooMuch, Worker


def _work(question: str) -> str:
    if question == "long":
        time.sleep(3600)
    if question == "large":
        return "x" * 2**34
    return question.upper()


async def never() -> bool:
    """Who asked is there."""
    return False


@pytest.mark.parametrize("question", ["long", "large"])
async def test_what_is_too_much_ends_and_the_next_is_answered(question: str) -> None:
    """In a process of its own, which is started again."""
    worker = Worker(_work, 2.0)
    try:
        assert await worker.ask("a", never) == "A"
        with pytest.raises(TooMuch):
            await worker.ask(question, never)
        assert await worker.ask("b", never) == "B"
    finally:
        worker.end()


async def test_nobody_waits_for_an_answer_that_nobody_wants() -> None:
    """A question is ended when who asked is gone, and not begun when nobody is there."""
    worker = Worker(_work, 600.0)
    asked = 0

    async def gone() -> bool:
        nonlocal asked
        asked += 1
        return asked > 1

    try:
        with pytest.raises(TooMuch):
            await worker.ask("long", gone)
        with pytest.raises(TooMuch):
            await worker.ask("long", gone)
        assert await worker.ask("b", never) == "B"
    finally:
        worker.end()
