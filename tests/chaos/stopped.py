"""A replica stands still for 5 s: it takes connections, and answers nothing."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

from tests.chaos import routed
from tests.chaos.arena import served
from tests.chaos.stage import Scenario, Stage, Tally

STOPS: Final = "replicas stopped"

_SECONDS: Final = 5.0


def play(stage: Stage) -> Tally:
    """Any of the three; where the lag allows it its endpoint goes, until it is ready again."""
    tally = Tally()
    # A patient API server would only be slow. On a busy machine 3 s may pass anywhere.
    seconds, timeout = (7.0, 5) if stage.short else (_SECONDS, stage.terms.timeout)
    stage = replace(stage, terms=replace(stage.terms, timeout=timeout))
    with served(stage) as place:
        with place.loaded() as ledger:
            time.sleep(1)
            for number in range(stage.rounds):
                victim = stage.chance.choice(place.replicas)
                ways = routed.Routed(place, victim)
                victim.stand_still()
                lag = place.lag()
                if lag < seconds:
                    place.endpoints.remove(victim.address, lag)
                time.sleep(seconds)
                victim.go_on()
                victim.wait_ready()
                if lag < seconds:
                    place.endpoints.wait_gone(victim.address)
                # Calls of the last moment have their time-out before them.
                time.sleep(stage.terms.timeout)
                ways.count(tally)
                place.endpoints.add(victim.address)
                tally.count(STOPS)
                stage.say(f"stopped {number + 1} of {stage.rounds}")
        tally.add(ledger.tally())
        routed.explain(ledger, tally)
    return tally


SCENARIO: Final = Scenario(
    name="stop",
    does="one replica after another stands still for 5 s (SIGSTOP)",
    unit=STOPS,
    long=(10,) * 5,
    short=2,
    play=play,
    broken=routed.broken,
)
