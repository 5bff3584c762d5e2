"""When a call may be made: rate limits, and delays between retries."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from webhook.backoff import WATCH_DELAYS
from webhook.recent import Recent
from webhook.turns import Window

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

    from webhook.backoff import Delays

# The lowest rate after refusals, as a part of the full rate.
LOWEST: Final = 1 / 64
# Calls per second that each success adds: the rate grows by a factor of e per second.
GROWTH: Final = 1.0
# A tolerance for rounding errors, in calls. Without it many waits would be followed by a second,
# tiny one.
_SLACK: Final = 1e-9
# The rate of the in-tree Job controller in clusters with many pods.
RATE: Final = 300.0
BURST: Final = 600
IN_FLIGHT: Final = 32


class Pace:
    """A token bucket of `burst` calls that fills at `rate` per second; slower after a refusal.

    A refusal halves the rate and empties the bucket; a success adds a little to the rate, up to the
    full one. Of concurrent calls only the first refusal counts, as in TCP: thirty answers at one
    moment of overload are one overload. `rate` is the current one, in calls per second. Times are
    seconds of any single clock.
    """

    def __init__(self, rate: float, burst: int) -> None:
        if rate <= 0 or burst < 1:
            raise ValueError(f"rate {rate} and burst {burst}: want above 0, and at least 1")
        self._full = rate
        self._burst = burst
        self.rate = rate
        self._tokens = float(burst)
        # The time up to which the bucket is filled; in the future during a pause.
        self._filled = float("-inf")
        self._slowed = float("-inf")

    def wait(self, now: float) -> float:
        """Return the seconds until a call may pass; 0.0 if it may pass now."""
        self._fill(now)
        missing = 0.0 if self._tokens >= 1 - _SLACK else (1 - self._tokens) / self.rate
        return max(0.0, self._filled - now) + missing

    def take(self, now: float) -> None:
        """Take a token. Raises ValueError if there is none, which is a bug."""
        if self.wait(now) > 0:
            raise ValueError("no call may pass yet")
        self._tokens = max(0.0, self._tokens - 1)

    def passes(self, now: float) -> bool:
        """Return True, and take a token, if a call may pass now."""
        if self.wait(now) > 0:
            return False
        self.take(now)
        return True

    def hold(self, now: float, seconds: float) -> None:
        """Pause for `seconds`, and empty the bucket so that no burst follows."""
        self._fill(now)
        self._tokens = 0.0
        self._filled = max(self._filled, now + seconds)

    def refused(self, passed: float, now: float) -> bool:
        """Record an overload for a call that passed at `passed`; return True if the rate fell."""
        if passed <= self._slowed:
            return False
        self._slowed = now
        self.rate = max(self._full * LOWEST, self.rate / 2)
        self.hold(now, 0.0)
        return True

    def succeeded(self, passed: float) -> None:
        """Record the success of a call that passed at `passed`."""
        if passed > self._slowed:
            self.rate = min(self._full, self.rate + GROWTH)

    def _fill(self, now: float) -> None:
        if now > self._filled:
            # The bucket shrinks with the rate, or a quiet minute would save up a burst.
            most = max(1.0, self._burst * self.rate / self._full)
            more = (now - self._filled) * self.rate
            self._tokens = min(most, self._tokens + more)
            self._filled = now


class Paces:
    """A rate limit per key: a burst, then one per `every` seconds.

    Remembers up to `most` keys; a forgotten key starts with a full burst. Times are
    seconds of any single clock.
    """

    def __init__(self, burst: int, every: float, most: int) -> None:
        self._burst = burst
        self._every = every
        self._paces: Recent[str, Pace] = Recent(most)

    def passes(self, key: str, now: float) -> bool:
        """Return True, and count it, if one more of this key may pass."""
        return self._paces.get_or_make(key, lambda: Pace(1 / self._every, self._burst)).passes(now)


class TokenBucket:
    """A FIFO rate limiter: a caller needs a place in the window, then a token.

    Several queues take turns. A caller runs `passed = await bucket.take()`, then its call, then
    exactly one of `succeeded`, `refused` and `ended`, with `passed`.
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
        self.pace = Pace(rate, burst)
        self.window = Window(in_flight)
        self._clock = clock
        self._sleep = sleep
        # asyncio locks are fair.
        self._head_of_line = asyncio.Lock()

    async def take(self, line: str = "") -> float:
        """Wait for a token; return its time, which the caller passes back after the call."""
        await self.window.enter(line)
        try:
            async with self._head_of_line:
                # A loop, because the server may request a pause during the sleep.
                while (seconds := self.pace.wait(self._clock())) > 0:
                    await self._sleep(seconds)
                now = self._clock()
                self.pace.take(now)
        except BaseException:
            self.window.leave()
            raise
        return now

    def succeeded(self, passed: float) -> None:
        """Record a success, which raises the rate and the number of concurrent calls."""
        self.pace.succeeded(passed)
        self.window.grow()
        self.window.leave()

    def refused(self, passed: float, retry_after: float | None = None) -> None:
        """Record an overload, which lowers the rate and starts a pause if `retry_after` is set."""
        if self.pace.refused(passed, self._clock()):
            self.window.shrink()
        if retry_after:
            self.pause(retry_after)
        self.window.leave()

    def ended(self, passed: float) -> None:  # noqa: ARG002  (as the other two have it)
        """Record the end of a call that does not show whether the API server is overloaded."""
        self.window.leave()

    def pause(self, seconds: float) -> None:
        """Pause for `seconds`, without a burst afterwards."""
        self.pace.hold(self._clock(), seconds)


@dataclass(eq=False, repr=False, slots=True)
class Backoff:
    """The retry delays of one activity that keeps failing."""

    random: Random
    delays: Delays = WATCH_DELAYS
    _failures: int = field(default=0, init=False)

    def next(self) -> float:
        """Count a failure, and return the seconds to wait: its delay times 0.5 to 1.5."""
        self._failures += 1
        return self.delays.after(self._failures) * self.random.uniform(0.5, 1.5)

    def reset(self) -> None:
        """Reset the count, so that the next delay is the first one."""
        self._failures = 0
