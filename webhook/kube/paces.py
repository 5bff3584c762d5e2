"""How often each of many may do something: a pace of its own for each."""

from __future__ import annotations

from webhook.kube.pace import Pace
from webhook.recent import Recent


class Paces:
    """For each key so many at once, `burst`, and then one in `every` seconds.

    `most` keys are remembered; one that was forgotten begins anew. Times are seconds of any one
    clock.
    """

    def __init__(self, burst: int, every: float, most: int) -> None:
        self._burst = burst
        self._every = every
        self._paces: Recent[str, Pace] = Recent(most)

    def passes(self, key: str, now: float) -> bool:
        """Whether one more of this key may pass; if so, it has."""
        pace = self._paces.made(key, lambda: Pace(1 / self._every, self._burst))
        if pace.wait(now) > 0:
            return False
        pace.take(now)
        return True
