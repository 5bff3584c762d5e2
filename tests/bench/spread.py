"""A figure measured in several rounds: its median, and how far the rounds lie apart."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Spread(NamedTuple):
    """The median of the rounds' figures, the lowest and the highest of them."""

    median: float
    low: float
    high: float

    def text(self, digits: int) -> str:
        """As "1.31 (1.22–1.40)", with so many digits after the point."""
        return f"{self.median:.{digits}f} ({self.low:.{digits}f}–{self.high:.{digits}f})"


def spread(values: Iterable[float]) -> Spread:
    """The spread of the rounds' figures, of which there is at least one."""
    figures = sorted(values)
    return Spread(statistics.median(figures), figures[0], figures[-1])


def ratio(above: Sequence[float], below: Sequence[float]) -> Spread:
    """The spread of the ratios, each of two figures of the same round.

    Figures of one round were measured within the same seconds, so that what the machine does
    beside weighs on both alike.
    """
    return spread(a / b for a, b in zip(above, below, strict=True))


def difference(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """The differences, round by round."""
    return [a - b for a, b in zip(above, below, strict=True)]
