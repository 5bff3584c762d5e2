"""Waiting until something in the cluster is as it should be, and no longer than was said."""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from webhook.errors import ClusterError, InstallationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

# Seconds between two looks.
PERIOD: Final = 0.25


class NotInTime(InstallationError):
    """The time that was given is over; the text says what is missing still."""


class Patience:
    """So many seconds for all that is waited for together, from now on."""

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

        `missing` says what is, or "". It may fail as the API server may for a while; what it is
        not allowed to do raises at once. Raises NotInTime, with the last that was missing.
        """
        while words := await _words(missing):
            if self._clock() >= self._end:
                raise NotInTime(
                    f"{what}: not within {self._seconds:g} s, for {words}. Nothing is undone: the "
                    "same command goes on from here"
                )
            await asyncio.sleep(self._period)


async def _words(missing: Callable[[], Awaitable[str]]) -> str:
    try:
        return await missing()
    except ClusterError as error:
        if error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise
        return str(error)
