"""Wait for a state of the cluster, with a limit, and report progress."""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

from webhook.errors import ClusterError, InstallationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager

# Seconds between two tries.
PERIOD: Final = 0.25


class NotInTime(InstallationError):
    """The time is over; the message names what is still missing."""


class Patience:
    """One time limit, in seconds from now, for several waits."""

    def __init__(
        self,
        seconds: float,
        *,
        period: float = PERIOD,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._period = period
        self._clock = clock
        self._end = clock() + seconds

    async def until(self, what: str, missing: Callable[[], Awaitable[str]]) -> None:
        """Return once nothing is missing any more.

        `missing` returns what is missing, or "". It may fail while the API server is not
        available; a missing right raises at once. Raises NotInTime, with what was missing last.
        """
        while words := await _describe_missing(missing):
            if self._clock() >= self._end:
                raise NotInTime(
                    f"{what}: not within {self._seconds:g} s, for {words}. Nothing is undone: the "
                    "same command goes on from here"
                )
            await asyncio.sleep(self._period)


async def _describe_missing(missing: Callable[[], Awaitable[str]]) -> str:
    try:
        return await missing()
    except ClusterError as error:
        if error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise
        return str(error)


class Progress(Protocol):
    """Reports progress to a user, or to none. `webhook.sandbox.progress` has both."""

    def step(self, what: str, about: int | None = None) -> AbstractContextManager[None]:
        """Return a context around one step; `about` is its rough duration in seconds, if known."""

    def note(self, text: str) -> None:
        """Report something that takes no time."""
