"""What a scenario is given, and what it hands back."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

_SAMPLES = 20


@dataclass(frozen=True)
class Terms:
    """How hard it is. Times in seconds.

    rate: creations a second. lag: how late endpoints are removed at most. pre_stop: how long a
    replica that is to go is not told so. grace: how long it answers on after that. timeout: the
    webhook's timeoutSeconds.
    """

    rate: float
    lag: float
    pre_stop: float
    grace: float
    timeout: int


# As the manifests have it.
LONG = Terms(rate=100, lag=10, pre_stop=5, grace=10, timeout=3)
# A busy machine takes seconds for what takes milliseconds else: that is not what is tested.
SHORT = Terms(rate=25, lag=3, pre_stop=1, grace=4, timeout=10)


@dataclass(frozen=True)
class Stage:
    """One part of a scenario: so many rounds, in a directory that is empty, with this chance."""

    binaries: Mapping[str, Path]
    directory: Path
    chance: random.Random
    rounds: int
    terms: Terms
    short: bool
    say: Callable[[str], None]


@dataclass
class Tally:
    """What was counted and measured. Tallies of the parts of a scenario add up.

    examples: messages of what failed, some of them.
    """

    counts: dict[str, int] = field(default_factory=dict)
    measures: dict[str, list[float]] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)

    def count(self, what: str, number: int = 1) -> None:
        """Count; 0 says that there were none."""
        self.counts[what] = self.counts.get(what, 0) + number

    def measure(self, what: str, *values: float) -> None:
        """Remember a measurement."""
        self.measures.setdefault(what, []).extend(values)

    def example(self, message: str) -> None:
        """Remember a message, unless there are enough, or the same one of another pod is there."""
        message = re.sub(r"\d{8}", "…", message)
        if len(self.examples) < _SAMPLES and message not in self.examples:
            self.examples.append(message)

    def add(self, other: Tally) -> None:
        """Take the other's in."""
        for what, number in other.counts.items():
            self.count(what, number)
        for what, values in other.measures.items():
            self.measure(what, *values)
        for message in other.examples:
            self.example(message)

    def __getitem__(self, what: str) -> int:
        return self.counts.get(what, 0)

    def as_json(self) -> dict[str, Any]:
        """What from_json reads."""
        return {"counts": self.counts, "measures": self.measures, "examples": self.examples}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The tally that as_json wrote."""
        return cls(dict(value["counts"]), dict(value["measures"]), list(value["examples"]))


@dataclass(frozen=True)
class Scenario:
    """Something that goes wrong under load, and what must hold nevertheless.

    does: one sentence. unit: what a round is. long: rounds of each part of the long form, after
    each of which it can be resumed. short: rounds of the short form. none: what may never be
    counted. more: what else a tally shows that must not be.
    """

    name: str
    does: str
    unit: str
    long: Sequence[int]
    short: int
    play: Callable[[Stage], Tally]
    none: Sequence[str]
    more: Callable[[Tally], list[str]] = lambda _tally: []

    def broken(self, tally: Tally) -> list[str]:
        """What must not be; empty if all is well."""
        return [*none_of(tally, *self.none), *self.more(tally)]


def none_of(tally: Tally, *whats: str) -> list[str]:
    """Which of these were counted, though none may be; those not counted at all too."""
    missing = [f"{what}: never counted" for what in whats if what not in tally.counts]
    return missing + [f"{what}: {tally[what]}" for what in whats if tally[what]]


@contextmanager
def meanwhile(step: Callable[[], object], pause: float) -> Iterator[None]:
    """Do it again and again in a thread, with pauses in between, as long as the block lasts."""
    over = threading.Event()

    def go_on() -> None:
        while not over.wait(pause):
            step()

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
