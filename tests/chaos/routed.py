"""Failed creations beside the calls that went to a replica which could not answer.

A call to a replica goes over a connection that stood when it died, or over one that was begun
later: each of these can fail one creation, and nothing else may.
"""

from __future__ import annotations

import re
import time
from typing import Final

from tests.chaos.arena import Arena
from tests.chaos.ledger import FAILED, NEVER, Ledger
from tests.chaos.replica import Replica
from tests.chaos.stage import Tally
from tests.chaos.wire import open_connections

STANDING: Final = "connections that stood to it"
ATTEMPTS: Final = "connections begun to it afterwards"
LATE: Final = "of these, later than 1 s after its endpoint was gone"
REFUSED: Final = "failed because the dead address took no connection"
BROKEN_OFF: Final = "failed because a connection broke"
TIMED_OUT: Final = "failed because no answer came in time"
UNEXPLAINED: Final = "failed for another reason"
NONE: Final = (*NEVER, UNEXPLAINED)

_REASONS: Final = (
    (REFUSED, re.compile(r"dial tcp 198\.18\.\d+\.\d+:8443: connect: connection refused")),
    (
        BROKEN_OFF,
        re.compile(
            r"EOF|connection reset by peer|broken pipe|use of closed|server closed idle connection"
            r"|transport connection broken"
        ),
    ),
    (
        TIMED_OUT,
        re.compile(r"context deadline exceeded|Client\.Timeout|handshake timeout|i/o timeout"),
    ),
)


class Routed:
    """Counts the ways to one replica from now on. Make it just before the replica dies."""

    def __init__(self, place: Arena, victim: Replica) -> None:
        self._place = place
        self._address = victim.address
        self._standing = open_connections(victim.address)
        self._since = time.monotonic()

    def count(self, tally: Tally) -> None:
        """Add what was seen; its endpoint is gone, or it answers again."""
        attempts = self._place.wire.attempts(self._address, self._since)
        gone = self._place.endpoints.gone(self._address)
        tally.count(STANDING, self._standing)
        tally.count(ATTEMPTS, len(attempts))
        late = [] if gone is None else [each for each in attempts if each.at > gone + 1]
        tally.count(LATE, len(late))


def explain(ledger: Ledger, tally: Tally) -> None:
    """Count failed creations by what the API server said, in its audit log where it is there."""
    for what, _ in _REASONS:
        tally.count(what, 0)
    tally.count(UNEXPLAINED, 0)
    for each in ledger.creations:
        if ledger.failed(each):
            seen = ledger.audited(each)
            tally.count(reason(seen.message if seen else each.message))


def reason(message: str) -> str:
    """Which of the reasons the API server gives."""
    found = (what for what, pattern in _REASONS if pattern.search(message))
    return next(found, UNEXPLAINED)


def unrouted(tally: Tally) -> list[str]:
    """More failed creations than calls that could have gone to the dead: others', or ours."""
    most = tally[STANDING] + tally[ATTEMPTS]
    if tally[FAILED] <= most:
        return []
    return [f"{FAILED}: {tally[FAILED]}, of at most {most} that were routed to it"]
