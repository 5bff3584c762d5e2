"""How fast calls may go now, given how the last ones went: arithmetic, without waiting."""

from __future__ import annotations

from typing import Final

# After refusals the rate sinks to this part of the full one, and no further.
LOWEST: Final = 1 / 64
# Calls a second that each success adds: the rate grows by e in a second, whatever it is.
GROWTH: Final = 1.0
# Seconds times calls a second that are no whole call: without it a wait of almost nothing would
# follow many a wait, for floats are not exact.
_SLACK: Final = 1e-9


class Pace:
    """A token bucket of `burst` calls that fills at `rate` a second; slower after a refusal.

    A refusal halves the rate and empties the bucket; a success adds a little to the rate, up to the
    full one. Of calls that were under way together only the first refusal counts, as in TCP: thirty
    answers to one moment of overload are one overload. Times are seconds of any one clock.
    """

    def __init__(self, rate: float, burst: int) -> None:
        if rate <= 0 or burst < 1:
            raise ValueError(f"rate {rate} and burst {burst}: want above 0, and at least 1")
        self._full = rate
        self._burst = burst
        self._rate = rate
        self._tokens = float(burst)
        # Until when the bucket has been filled; in the future while nobody may pass.
        self._filled = float("-inf")
        self._slowed = float("-inf")

    @property
    def rate(self) -> float:
        """Calls a second, now."""
        return self._rate

    def wait(self, now: float) -> float:
        """Seconds until a call may pass, if nothing else happens; 0.0 if it may now."""
        self._fill(now)
        missing = 0.0 if self._tokens >= 1 - _SLACK else (1 - self._tokens) / self._rate
        return max(0.0, self._filled - now) + missing

    def take(self, now: float) -> None:
        """Let a call pass. Raises ValueError if it may not yet: that is a bug."""
        if self.wait(now) > 0:
            raise ValueError("no call may pass yet")
        self._tokens = max(0.0, self._tokens - 1)

    def hold(self, now: float, seconds: float) -> None:
        """Let nobody pass for `seconds`, nor as many as have waited at once afterwards."""
        self._fill(now)
        self._tokens = 0.0
        self._filled = max(self._filled, now + seconds)

    def refused(self, passed: float, now: float) -> bool:
        """A call that passed at `passed` met overload: whether that was news, and the rate sank."""
        if passed <= self._slowed:
            return False
        self._slowed = now
        self._rate = max(self._full * LOWEST, self._rate / 2)
        self.hold(now, 0.0)
        return True

    def succeeded(self, passed: float) -> None:
        """A call that passed at `passed` went well."""
        if passed > self._slowed:
            self._rate = min(self._full, self._rate + GROWTH)

    def _fill(self, now: float) -> None:
        if now > self._filled:
            # A slow bucket is a small one too: else a quiet minute would save up a burst.
            most = max(1.0, self._burst * self._rate / self._full)
            more = (now - self._filled) * self._rate
            self._tokens = min(most, self._tokens + more)
            self._filled = now
