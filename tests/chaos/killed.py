"""A replica is killed; a new one comes up elsewhere, and the dead one's endpoint goes late."""

from __future__ import annotations

import time
from typing import Final

from tests.chaos import routed
from tests.chaos.arena import served
from tests.chaos.stage import Scenario, Stage, Tally

KILLS: Final = "replicas killed"


def play(stage: Stage) -> Tally:
    """Any of the three, again and again, once there are three."""
    tally = Tally()
    with served(stage) as place:
        with place.loaded() as ledger:
            time.sleep(1)
            for number in range(stage.rounds):
                victim = stage.chance.choice(place.replicas)
                place.replicas.remove(victim)
                ways = routed.Routed(place, victim)
                victim.kill()
                place.endpoints.remove(victim.address, place.lag())
                place.admit(place.launch())
                place.endpoints.wait_gone(victim.address)
                time.sleep(0.5)
                ways.count(tally)
                tally.count(KILLS)
                stage.say(f"killed {number + 1} of {stage.rounds}")
        tally.add(ledger.tally())
        routed.explain(ledger, tally)
    return tally


SCENARIO: Final = Scenario(
    name="kill",
    does="one replica after another is killed by SIGKILL",
    unit=KILLS,
    long=(20,) * 10,
    short=3,
    play=play,
    broken=routed.broken,
)
