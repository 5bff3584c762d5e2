"""How many reviews were sent, where, and what was answered."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest


@dataclass
class Tally:
    """The counts of one run, by way ("in process", "over TLS"), and by HTTP status therein."""

    reviews: dict[str, Counter[int]] = field(default_factory=dict)
    again: int = 0

    def count(self, way: str, status: int) -> None:
        """One review was answered."""
        self.reviews.setdefault(way, Counter())[status] += 1

    def lines(self) -> list[str]:
        """What is printed at the end; nothing if nothing was sent."""
        if not self.reviews:
            return []
        sums = [f"{counter.total():,} reviews {way}" for way, counter in self.reviews.items()]
        lines = [f"fuzz: {', '.join(sums)}; {self.again:,} patched pods sent again"]
        for way, counter in self.reviews.items():
            answers = ", ".join(f"{status}: {count:,}" for status, count in sorted(counter.items()))
            lines.append(f"fuzz: answers {way}: {answers}")
        return lines


TALLY = pytest.StashKey[Tally]()
