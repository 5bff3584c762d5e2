"""Who is connected: how many at most, who has taken too long, and who goes when it is full."""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import time
from typing import TYPE_CHECKING, Final, Literal, NoReturn, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Reason: TypeAlias = Literal["slow", "late", "crowded", "large"]

# Bytes of all bodies that are being read or decided on. A review has some ten thousand.
BODY_BYTES: Final = 64 * 1024 * 1024
# Seconds that a connection waits at the door for its handshake to begin. The API server waits for 3
# altogether, as the manifests have it: of those that waited half of it the answer still comes in
# time, and what is done for the others is lost.
DOOR_SECONDS: Final = 1.5
# Seconds between two looks for those that have taken too long.
SWEEP: Final = 1.0


class Visit:
    """One connection, from the moment it is accepted.

    since: when its present wait began: at the door, for a handshake, a request, or the rest of one.
    deadline: until when that wait may last.
    answered: whether it was ever given an answer.
    busy: whether a whole request has come that is not answered yet: it is never closed then.
    reading: whether a request has begun to come that is not whole yet.
    body: how many bytes of its request's body there are.
    """

    __slots__ = ("_socket", "answered", "body", "busy", "deadline", "reading", "since", "transport")

    def __init__(self, connection: socket.socket, now: float) -> None:
        self._socket = connection
        self.since = now
        self.deadline = math.inf
        self.answered = False
        self.busy = False
        self.reading = False
        self.body = 0
        self.transport: asyncio.Transport | None = None

    def end(self) -> None:
        """Close the connection, whatever it is at, without a goodbye."""
        if self.transport:
            self.transport.abort()
        else:
            # In the middle of a handshake: whoever makes it sees the end of the stream.
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)


class Crowd:
    """All connections of one listener; used on the event loop's thread only.

    `limit` is how many there may be. When it is reached the one that has waited longest goes: of
    those that never had an answer, if there are such, else of all that are not busy. A crowd that
    connects and says nothing so pushes out itself, and not whoever asks and is answered.
    `on_ended` hears why a connection was closed.
    """

    def __init__(
        self,
        limit: int,
        *,
        body_bytes: int = BODY_BYTES,
        clock: Callable[[], float] = time.monotonic,
        on_ended: Callable[[Reason], None] = lambda _reason: None,
    ) -> None:
        self._limit = limit
        self._body_bytes = body_bytes
        self._clock = clock
        self._on_ended = on_ended
        self._visits: set[Visit] = set()
        self._busy = 0
        self._body = 0

    @property
    def connections(self) -> int:
        """How many connections there are, handshakes included."""
        return len(self._visits)

    @property
    def busy(self) -> int:
        """How many whole requests have come that are not answered yet, one a connection."""
        return self._busy

    def admit(self, connection: socket.socket) -> Visit | None:
        """Count a connection in, making room for it; None if it cannot be had: all are busy."""
        while len(self._visits) >= self._limit:
            if not self.make_room():
                return None
        visit = Visit(connection, self._clock())
        self._visits.add(visit)
        return visit

    def call_in(self, visit: Visit) -> bool:
        """Its handshake may begin; False if it was closed meanwhile, or is now: it comes too late.

        So each wait at the door is short. If all waited for their turn, then in a rush everybody
        would be let in when he has just given up, and nobody would be served.
        """
        if visit not in self._visits:
            return False
        now = self._clock()
        if now - visit.since > DOOR_SECONDS:
            self._end(visit, "late")
            return False
        visit.since = now
        return True

    def make_room(self) -> bool:
        """Close the connection that has waited longest; False if all are busy."""
        waiting = [visit for visit in self._visits if not visit.busy]
        if not waiting:
            return False
        self._end(min(waiting, key=lambda visit: (visit.answered, visit.since)), "crowded")
        return True

    def gone(self, visit: Visit) -> None:
        """Count a connection out; said again, it changes nothing."""
        self._visits.discard(visit)
        self.freed(visit)
        self.mark(visit, busy=False)

    def mark(self, visit: Visit, *, busy: bool) -> None:
        """Note whether the visit has a whole request that is not answered yet."""
        self._busy += busy - visit.busy
        visit.busy = busy

    def took(self, visit: Visit, count: int) -> None:
        """Count bytes of a body. Beyond what all may hold, the longest to send theirs goes."""
        visit.body += count
        self._body += count
        while self._body > self._body_bytes:
            senders = [each for each in self._visits if each.reading and each.body]
            if not senders:
                return
            self._end(min(senders, key=lambda each: each.since), "large")

    def freed(self, visit: Visit) -> None:
        """The visit's body is not held any more."""
        self._body -= visit.body
        visit.body = 0

    def full(self) -> bool:
        """Whether bodies hold so much that no more requests should be taken."""
        return self._body > self._body_bytes

    def sweep(self) -> None:
        """Close the connections whose deadline is over."""
        now = self._clock()
        for visit in [visit for visit in self._visits if visit.deadline <= now]:
            self._end(visit, "slow")

    async def run(self) -> NoReturn:
        """Sweep all the time, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP)
            self.sweep()

    def _end(self, visit: Visit, reason: Reason) -> None:
        # At once, for its end takes a turn of the loop or two, and room is wanted now.
        self.gone(visit)
        visit.end()
        self._on_ended(reason)
