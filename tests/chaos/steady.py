"""Nothing goes wrong for a long time, and nothing grows."""

from __future__ import annotations

import statistics
import time
from typing import Final

from tests.chaos.arena import served
from tests.chaos.ledger import CREATIONS, FAILED, NEVER
from tests.chaos.stage import Scenario, Stage, Tally

SECONDS: Final = "seconds"
RATE: Final = "creations a second"
BEFORE: Final = "MiB of a replica, after a sixth of the time"
AFTER: Final = "MiB of a replica, in the last sixth"
# Between these: what Python's allocator takes and gives back.
MOST_GROWTH: Final = 16.0


def play(stage: Stage) -> Tally:
    """The load alone, for as many seconds as there are rounds."""
    samples: list[list[float]] = []
    with served(stage) as place:
        with place.loaded() as ledger:
            began = time.monotonic()
            pause = stage.rounds / 60
            while (now := time.monotonic()) < began + stage.rounds:
                samples.append([each.memory() for each in place.replicas])
                time.sleep(pause)
            took = now - began
            sent = len(ledger.creations)
            stage.say(f"{sent} creations in {took:.0f} s")
        tally = ledger.tally()
    sixth = len(samples) // 6
    for each in zip(*samples, strict=True):
        tally.measure(BEFORE, statistics.mean(each[sixth : 2 * sixth]))
        tally.measure(AFTER, statistics.mean(each[-sixth:]))
    tally.measure(RATE, (tally[CREATIONS] - tally[FAILED]) / took)
    tally.count(SECONDS, round(took))
    return tally


def _more(tally: Tally) -> list[str]:
    """No replica grows."""
    pairs = zip(tally.measures[BEFORE], tally.measures[AFTER], strict=True)
    return [
        f"a replica grew from {before:.1f} to {after:.1f} MiB"
        for before, after in pairs
        if after - before > MOST_GROWTH
    ]


SCENARIO: Final = Scenario(
    name="steady",
    does="half an hour of steady load",
    unit=SECONDS,
    long=(1800,),
    short=12,
    play=play,
    none=(FAILED, *NEVER),
    more=_more,
)
