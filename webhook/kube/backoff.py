"""How long to wait before the next attempt: exponential, with jitter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

# client-go's reflector waits from 0.8 to 30 seconds too.
FIRST: Final = 0.8
LONGEST: Final = 30.0


class Backoff:
    """The waits of one activity that keeps failing."""

    def __init__(self, random: Random, *, first: float = FIRST, longest: float = LONGEST) -> None:
        self._random = random
        self._first = first
        self._longest = longest
        self._attempts = 0

    def next(self) -> float:
        """Seconds to wait now: twice the last wait, up to `longest`, times 0.5 to 1.5."""
        # Capped: a float overflows after a thousand doublings.
        seconds = min(self._longest, self._first * 2.0 ** min(self._attempts, 32))
        self._attempts += 1
        return seconds * self._random.uniform(0.5, 1.5)

    def reset(self) -> None:
        """What was tried went well: begin at `first` again."""
        self._attempts = 0
