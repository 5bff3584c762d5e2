"""What repetitions come to: means with intervals, and how policy sets differ."""

from __future__ import annotations

import math
from statistics import NormalDist, fmean, quantiles, stdev
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from webhook.simulation.play import Ending

# Half the width of an interval that has the true mean in 95 of 100 cases, in standard errors.
_WIDTH: Final = NormalDist().inv_cdf(0.975)
HEAD: Final = (
    *("policies", "done", "hours", "90 %"),
    *("cost", "disruptions", "waiting", "held", "lost"),
)


class Mean(NamedTuple):
    """A mean, and half the width of its interval of 95 %; None for one number."""

    value: float
    half: float | None

    def __str__(self) -> str:
        if self.half is None:
            return f"{self.value:.3g}"
        return f"{self.value:.3g} ±{self.half:.2g}"


class Simulated(NamedTuple):
    """All repetitions of a run under one policy set. run: its name, if others are beside it."""

    policies: str
    endings: Sequence[Ending]
    run: str = ""

    @property
    def label(self) -> str:
        """The set and the run."""
        return f"{self.policies}: {self.run}" if self.run else self.policies

    @property
    def succeeded(self) -> Sequence[Ending]:
        """The runs that succeeded."""
        return [ending for ending in self.endings if ending.phase == "Succeeded"]

    @property
    def done(self) -> int:
        """How many runs succeeded."""
        return len(self.succeeded)

    def row(self) -> tuple[str, ...]:
        """Return the cells of the table; figures are those of the runs that succeeded."""
        ended = self.succeeded
        counts = (self.label, f"{len(ended)} of {len(self.endings)}")
        if not ended:
            return (*counts, *("–" for _ in HEAD[2:]))
        hours = [ending.seconds / 3600 for ending in ended]
        late = quantiles(hours, n=10)[-1] if len(hours) > 1 else hours[0]
        figures = [
            str(mean(getattr(ending, name) for ending in ended))
            for name in ("cost", "incidents", "waiting", "held", "lost")
        ]
        return (*counts, str(mean(hours)), f"{late:.3g}", *figures)

    def others(self) -> Iterator[str]:
        """Yield how the runs ended that did not succeed."""
        unlike = [ending for ending in self.endings if ending.phase != "Succeeded"]
        for phase in sorted({ending.phase for ending in unlike}):
            some = [ending for ending in unlike if ending.phase == phase]
            what = "failed" if phase == "Failed" else f"reached the limit as {phase}"
            yield f"{self.label}: {len(some)} {what}, the first: {some[0].reason}"

    def document(self) -> dict[str, Any]:
        """Return it as JSON, each repetition in its place."""
        runs = [
            {
                **ending._asdict(),
                "happenings": [happening._asdict() for happening in ending.happenings],
            }
            for ending in self.endings
        ]
        named = {"run": self.run} if self.run else {}
        return {"policies": self.policies, **named, "done": self.done, "runs": runs}


def differences(sets: Sequence[Simulated]) -> Iterator[str]:
    """Yield how a run differs from that of the first set: by repetition, with its interval.

    Where runs did not succeed, nothing is compared: those that did are the lucky ones.
    """
    firsts: dict[str, Simulated] = {}
    values: dict[str, Callable[[Ending], float]] = {
        "time": lambda ending: ending.seconds,
        "cost": lambda ending: ending.cost,
    }
    for other in sets:
        first = firsts.setdefault(other.run, other)
        if first is other:
            continue
        if min(first.done, other.done) < len(first.endings):
            why = "not compared, as not all runs succeeded"
            yield f"{other.label} against {first.policies}: {why}"
            continue
        parts = []
        for what, measure in values.items():
            base = fmean(map(measure, first.endings))
            pairs = zip(first.endings, other.endings, strict=True)
            difference = mean([measure(b) - measure(a) for a, b in pairs])
            if base:
                share, half = 100 * difference.value / base, 100 * (difference.half or 0.0) / base
                parts.append(f"{what} {share:+.0f} % ({share - half:+.0f} to {share + half:+.0f})")
        yield f"{other.label} against {first.policies}: {', '.join(parts)}"


def mean(numbers: Iterable[float]) -> Mean:
    """Return the mean with its interval."""
    values = list(numbers)
    if len(values) < 2:
        return Mean(values[0], None)
    return Mean(fmean(values), _WIDTH * stdev(values) / math.sqrt(len(values)))


def lines_of(ending: Ending) -> Iterator[str]:
    """Yield what happened in one repetition, a line each."""
    for happening in ending.happenings:
        minutes, seconds = divmod(int(happening.at), 60)
        hours, minutes = divmod(minutes, 60)
        yield f"{hours:4}:{minutes:02}:{seconds:02}  {happening.what}"
