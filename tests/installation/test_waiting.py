"""Waiting, and no longer than was said."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator

import pytest

from tests.wording import Wording, mentions
from webhook.errors import ClusterError
from webhook.installation.apply import NotInTime, Patience
from webhook.progress import Progress


class Notes(Progress):
    """What a person is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Keep it."""
        self.notes.append(text)


def wait(
    seconds: float,
    answers: list[str | ClusterError],
    why: Iterable[str] = (),
    told: Notes | None = None,
) -> int:
    """Wait with a clock that goes on by a second each time it is read; the looks that it took."""
    time = iter(range(1000))
    reasons = iter(why)
    looks = 0

    def missing() -> Callable[[], Awaitable[str]]:
        left: Iterator[str | ClusterError] = iter(answers)

        async def look() -> str:
            nonlocal looks
            looks += 1
            answer = next(left)
            if isinstance(answer, ClusterError):
                raise answer
            return answer

        return look

    async def explain() -> str:
        return next(reasons)

    patience = Patience(seconds, told, period=0, clock=lambda: next(time))
    asyncio.run(patience.until("the end", missing(), explain=explain if why else None))
    return looks


def test_it_returns_once_nothing_is_missing() -> None:
    """Not a look later."""
    assert wait(100, ["much", "little", "", "never asked"]) == 3


def test_when_the_time_is_over_it_says_what_was_missing_last(wording: Wording) -> None:
    """And that nothing was lost."""
    with pytest.raises(NotInTime) as late:
        wait(4, ["much", "much", "little", "little"])
    mentions(str(late.value), "the end: ", "4 s", "little", "Nothing is undone")
    wording(str(late.value))


def test_what_is_missing_is_noted_when_it_changes_and_not_at_once() -> None:
    """A look takes a second here, and there are two of them between two notes."""
    told = Notes()
    wait(100, ["starts", "much", "much", "much", "less", "less", ""], told=told)
    assert told.notes == ["much", "less"]


def test_the_note_and_the_error_have_the_same_reason() -> None:
    """It is asked for when it is shown, and not at each look."""
    told = Notes()
    with pytest.raises(NotInTime, match="for pods: no node again"):
        wait(8, ["pods"] * 9, ["no node", "no node", "quota", "no node again"], told)
    assert told.notes == ["pods: no node", "pods: quota"]


def test_an_api_server_that_fails_for_a_while_is_waited_for() -> None:
    """It may be what was just restarted."""
    assert wait(100, [ClusterError("no answer"), ClusterError("busy", status=503), ""]) == 3


@pytest.mark.parametrize("status", [401, 403])
def test_what_is_not_allowed_is_not_waited_for(status: int) -> None:
    """Nobody's patience changes it."""
    with pytest.raises(ClusterError, match="no"):
        wait(100, [ClusterError("no", status=status)])
