"""Leaves and authorities are made again, and the controller dies at every step of it."""

from __future__ import annotations

import time
from typing import Final

from tests.chaos.kept import Keeping, kept
from tests.chaos.ledger import FAILED, NEVER
from tests.chaos.stage import Scenario, Stage, Tally
from tests.eventually import eventually
from webhook import names

ROTATIONS: Final = "rotations"
LEAVES: Final = "leaves renewed"
AUTHORITIES: Final = "authorities renewed"
CRASHES: Final = "crashes of the controller"
CRASHED_AFTER: Final = "crashes after writing "
ON_THE_WIRE: Final = "seconds from the write to the new leaf at every replica"

# Of so many rotations the last is the authority's.
_EVERY: Final = 5


def play(stage: Stage) -> Tally:
    """Rotation after rotation; of the first authority's, every write is the controller's last."""
    tally = Tally()
    with kept(stage) as keeping:
        with keeping.place.loaded() as ledger:
            time.sleep(1)
            for number in range(stage.rounds):
                if stage.short:
                    authority = crashing = number > 0
                else:
                    authority = number % _EVERY == _EVERY - 1
                    crashing = number == _EVERY - 1
                if authority:
                    _authority(keeping, tally, crashing=crashing)
                else:
                    _leaf(keeping, tally)
                tally.count(ROTATIONS)
                stage.say(f"rotation {number + 1} of {stage.rounds}")
            time.sleep(1)
        tally.add(ledger.tally())
    return tally


def _leaf(keeping: Keeping, tally: Tally) -> None:
    before, versions = keeping.moment().serial, keeping.versions()
    keeping.ask(names.SERVING_SECRET)

    def made() -> bool:
        nonlocal versions
        seen, versions = versions, keeping.versions()
        return versions != seen and keeping.moment().serial != before

    eventually("a new leaf", made)
    written = time.monotonic()
    serial = keeping.moment().serial
    eventually("every replica to serve it", lambda: keeping.served(serial))
    tally.measure(ON_THE_WIRE, time.monotonic() - written)
    tally.count(LEAVES)


def _authority(keeping: Keeping, tally: Tally, *, crashing: bool) -> None:
    before = keeping.moment()
    keeping.ask(names.AUTHORITY_SECRET)
    versions, now = keeping.versions(), keeping.moment()

    def over() -> bool:
        nonlocal versions, now
        written = [what for what, each in keeping.versions().items() if each != versions[what]]
        if not written:
            return False
        if crashing:
            keeping.crash()
            tally.count(CRASHES)
            tally.count(f"{CRASHED_AFTER}{keeping.moment().named(written)}")
        # What it wrote in its last moment is not ours to crash upon.
        versions, now = keeping.versions(), keeping.moment()
        return now.steady and now.signer != before.signer

    # The controller may be killed at every step, and begins anew each time.
    eventually("a new authority", over, budget=150)
    eventually("every replica to serve its leaf", lambda: keeping.served(now.serial))
    tally.count(AUTHORITIES)


SCENARIO: Final = Scenario(
    name="rotate",
    does="leaves and authorities rotate, and the controller is killed at every step",
    unit=ROTATIONS,
    long=(25,) * 10,
    short=2,
    play=play,
    none=(FAILED, *NEVER),
)
