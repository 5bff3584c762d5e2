"""Replicas are replaced by SIGTERM, one after the other, as a Deployment does it."""

from __future__ import annotations

import threading
import time
from typing import Final

from tests.chaos.arena import REPLICAS, Arena, served
from tests.chaos.ledger import FAILED, NEVER
from tests.chaos.replica import Replica
from tests.chaos.stage import Scenario, Stage, Tally

RESTARTS: Final = "replicas replaced"
UNGENTLE: Final = "replicas that did not leave in peace"


def play(stage: Stage) -> Tally:
    """Replicas are replaced under load."""
    with served(stage) as place:
        with place.loaded() as ledger:
            time.sleep(1)
            codes = replace_replicas(place, stage.rounds)
            time.sleep(1)
        tally = ledger.tally()
    tally.count(RESTARTS, len(codes))
    tally.count(UNGENTLE, sum(code != 0 for code in codes))
    return tally


def replace_replicas(place: Arena, count: int) -> list[int]:
    """One more replica, and as soon as it is ready the oldest is to go: surge 1.

    It is sent SIGTERM after its preStop; its endpoint is removed before that or after it. The
    next is started meanwhile. Returns the exit codes.
    """
    stage = place.stage
    leaving: list[Replica] = []
    timers: list[threading.Timer] = []
    for number in range(count):
        place.admit(place.launch())
        oldest = place.replicas.pop(0)
        leaving.append(oldest)
        place.endpoints.remove(oldest.address, place.lag())
        timers.append(threading.Timer(stage.terms.pre_stop, oldest.terminate))
        timers[-1].start()
        stage.say(f"replaced {number + 1} of {count}")
    for timer in timers:
        timer.join()
    return [each.wait_exit() for each in leaving]


SCENARIO: Final = Scenario(
    name="rolling",
    does="rolling restarts by SIGTERM",
    unit=RESTARTS,
    # A hundred times all three.
    long=(10 * REPLICAS,) * 10,
    short=4,
    play=play,
    none=(FAILED, *NEVER, UNGENTLE),
)
