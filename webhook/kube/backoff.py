"""How long to wait before the next attempt: exponential, with jitter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.backoff import WATCH_DELAYS

if TYPE_CHECKING:
    from random import Random

    from webhook.backoff import Delays


class Backoff:
    """The waits of one activity that keeps failing."""

    def __init__(self, random: Random, delays: Delays = WATCH_DELAYS) -> None:
        self._random = random
        self._delays = delays
        self._failures = 0

    def next(self) -> float:
        """Count one more failure, and return the seconds to wait: its delay times 0.5 to 1.5."""
        self._failures += 1
        return self._delays.after(self._failures) * self._random.uniform(0.5, 1.5)

    def reset(self) -> None:
        """Forget the failures: the next wait is the first again."""
        self._failures = 0
