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


@pytest.mark.parametrize("question", ["long", "large"])
async def test_what_is_too_much_ends_and_the_next_is_answered(question: str) -> None:
    """In a process of its own, which is started again."""
    worker = Worker(_work, 2.0)
    try:
        assert await worker.ask("a") == "A"
        with pytest.raises(TooMuch):
            await worker.ask(question)
        assert await worker.ask("b") == "B"
    finally:
        worker.end()
