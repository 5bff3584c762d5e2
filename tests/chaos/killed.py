"""A replica is killed; a new one comes up elsewhere, and the dead one's endpoint goes late."""

from __future__ import annotations

import time
from typing import Final

from tests.chaos import routed
from tests.chaos.arena import served
from tests.chaos.ledger import DISAGREEMENTS, REFUSED_OTHERS, UNPLACED
from tests.chaos.stage import Scenario, Stage, Tally, none_of

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


def broken(tally: Tally) -> list[str]:
    """No pod is created as it came, and no creation fails that was not sent to the dead."""
    return none_of(tally, UNPLACED, REFUSED_OTHERS, DISAGREEMENTS) + routed.broken(tally)


SCENARIO: Final = Scenario(
    name="kill",
    does="one replica after another is killed by SIGKILL",
    unit=KILLS,
    long=(20,) * 10,
    short=3,
    play=play,
    broken=broken,
)
