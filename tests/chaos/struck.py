"""A replica is killed, or stands still for 5 s: it takes connections and answers nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from tests.chaos import routed
from tests.chaos.arena import Arena, served
from tests.chaos.replica import Replica
from tests.chaos.stage import Scenario, Stage, Tally

KILLS: Final = "replicas killed"
STOPS: Final = "replicas stopped"
_SECONDS: Final = 5.0


def _kill(place: Arena, victim: Replica) -> None:
    """A new one comes up elsewhere, and the dead one's endpoint goes late."""
    place.replicas.remove(victim)
    victim.kill()
    place.endpoints.remove(victim.address, place.lag())
    place.admit(place.launch())
    place.endpoints.wait_gone(victim.address)
    time.sleep(0.5)


def _stop(place: Arena, victim: Replica) -> None:
    """Where the lag allows it its endpoint goes, until it is ready again."""
    seconds = 7.0 if place.stage.short else _SECONDS
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
    time.sleep(place.stage.terms.timeout)


def _play(what: str, strike: Callable[[Arena, Replica], None], stage: Stage) -> Tally:
    """Strike any of the three, again and again."""
    tally = Tally()
    # A patient API server would only be slow where a replica stands still for 7 s.
    if strike is _stop and stage.short:
        stage = replace(stage, terms=replace(stage.terms, timeout=5))
    with served(stage) as place:
        with place.loaded() as ledger:
            time.sleep(1)
            for number in range(stage.rounds):
                victim = stage.chance.choice(place.replicas)
                ways = routed.Routed(place, victim)
                strike(place, victim)
                ways.count(tally)
                if strike is _stop:
                    place.endpoints.add(victim.address)
                tally.count(what)
                stage.say(f"{what}: {number + 1} of {stage.rounds}")
        tally.add(ledger.tally())
        routed.explain(ledger, tally)
    return tally


KILL: Final = Scenario(
    name="kill",
    does="one replica after another is killed by SIGKILL",
    unit=KILLS,
    long=(20,) * 10,
    short=3,
    play=partial(_play, KILLS, _kill),
    none=routed.NONE,
    more=routed.unrouted,
)
STOP: Final = Scenario(
    name="stop",
    does="one replica after another stands still for 5 s (SIGSTOP)",
    unit=STOPS,
    long=(10,) * 5,
    short=2,
    play=partial(_play, STOPS, _stop),
    none=routed.NONE,
    more=routed.unrouted,
)
