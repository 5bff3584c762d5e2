"""Where calls wait until the API server may be asked: in line, at a pace that follows its words."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from webhook.kube.pace import Pace
from webhook.kube.window import Window

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

# What the in-tree Job controller is given too, where many pods are to be created.
RATE: Final = 300.0
BURST: Final = 600
IN_FLIGHT: Final = 32


class TokenBucket:
    """First come, first served: a place in the window, then a token.

    A caller does `passed = await bucket.take()`, then its call, then exactly one of `succeeded`,
    `refused` and `ended`, with `passed`.
    """

    def __init__(
        self,
        rate: float = RATE,
        burst: int = BURST,
        in_flight: int = IN_FLIGHT,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._pace = Pace(rate, burst)
        self._window = Window(in_flight)
        self._clock = clock
        self._sleep = sleep
        # Locks of asyncio are fair.
        self._head_of_line = asyncio.Lock()

    @property
    def rate(self) -> float:
        """Calls a second that are let pass, now."""
        return self._pace.rate

    @property
    def in_flight(self) -> int:
        """How many calls are under way, those that wait for their token among them."""
        return self._window.inside

    async def take(self) -> float:
        """Wait for one's turn; the time at which it came, to be given back when the call ended."""
        await self._window.enter()
        try:
            async with self._head_of_line:
                # Again and again: the server may ask for quiet while this one sleeps.
                while (seconds := self._pace.wait(self._clock())) > 0:
                    await self._sleep(seconds)
                now = self._clock()
                self._pace.take(now)
        except BaseException:
            self._window.leave()
            raise
        return now

    def succeeded(self, passed: float) -> None:
        """The API server did what it was asked: the next may come sooner, and more at once."""
        self._pace.succeeded(passed)
        self._window.grow()
        self._window.leave()

    def refused(self, passed: float, retry_after: float | None = None) -> None:
        """The API server is overloaded or away: slower, one at a time, and not before it said."""
        if self._pace.refused(passed, self._clock()):
            self._window.shrink()
        if retry_after:
            self.pause(retry_after)
        self._window.leave()

    def ended(self, passed: float) -> None:  # noqa: ARG002  (as the other two have it)
        """The call ended in a way that says nothing of the API server's load."""
        self._window.leave()

    def pause(self, seconds: float) -> None:
        """Let nobody pass for `seconds`, and not at once all who waited."""
        self._pace.hold(self._clock(), seconds)
