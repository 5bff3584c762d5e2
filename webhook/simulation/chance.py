"""What happens to pools in one repetition, the same for every policy set.

Each number depends on the seed, the repetition, the pool and its own place alone: the third node of
a pool lives as long whatever policies make of it.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from webhook.times import span_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.simulation.scenario import Pool


class Chance:
    """The random numbers of a pool in one repetition; times are seconds from the start."""

    def __init__(self, pool: Pool, seed: int, repetition: int, limit: float) -> None:
        self._pool = pool
        self._name = f"{seed}/{repetition}/{pool.name}"
        self._limit = limit
        self.sold_out = list(self._sold_out())
        self.batches = list(self._batches())

    def lifetime(self, number: int) -> float:
        """Return how long the pool's node of this number lives."""
        return self._exponential(f"node/{number}", self._pool.lifetime)

    def taken(self, batch: int, number: int) -> bool:
        """Return whether a batch takes a node."""
        batches = self._pool.batches
        draw = self._random(f"batch/{batch}/{number}").random()
        return batches is not None and draw * 100 < batches.percent

    def in_stock(self, now: float) -> bool:
        """Return whether a node can be made."""
        return not any(begin <= now < end for begin, end in self.sold_out)

    def _batches(self) -> Iterator[float]:
        at, number, batches = 0.0, 0, self._pool.batches
        while batches:
            at += self._exponential(f"batches/{number}", batches.every)
            number += 1
            if at > self._limit:
                return
            yield at

    def _sold_out(self) -> Iterator[tuple[float, float]]:
        for event in self._pool.events or ():
            if event.sold_out:
                begin = span_seconds(event.at)
                yield begin, begin + span_seconds(event.sold_out)
        at, number, times = 0.0, 0, self._pool.sold_out
        while times and at <= self._limit:
            begin = at + self._exponential(f"stock/{number}", times.every)
            at, number = begin + span_seconds(times.lasts), number + 1
            yield begin, at

    def _exponential(self, name: str, mean: str | None) -> float:
        if mean is None:
            return float("inf")
        return self._random(name).expovariate(1 / span_seconds(mean))

    def _random(self, name: str) -> Random:
        return Random(f"{self._name}/{name}")  # noqa: S311
