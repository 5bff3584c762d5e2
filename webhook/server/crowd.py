"""The connections of a listener: limits of their number, their time and their memory."""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import time
from typing import TYPE_CHECKING, Final, Literal, NoReturn, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Reason: TypeAlias = Literal["slow", "late", "crowded", "large", "unread", "pipelined", "malformed"]

# Bytes of all bodies that are being read or decided on, and of all answers that are not written
# yet. A review has some ten thousand.
HELD_BYTES: Final = 64 * 1024 * 1024
# Seconds for an answer to be written. The API server waits for 30 altogether, and reads at once.
WRITE_SECONDS: Final = 10.0
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
    write_deadline: until when its answer has to be written; infinite if nothing waits for that.
    answered: whether it was ever given an answer.
    busy: whether a whole request has come that is not answered yet: it is not closed for room then.
    reading: whether a request has begun to come that is not whole yet.
    body: how many bytes of its request's body there are.
    unwritten: how many bytes of its answer the peer has not taken yet.
    transport: the connection itself, below TLS; None before it is let in.
    on_writable: called with False when the peer takes no more bytes, with True when it takes more.
    """

    __slots__ = (
        "_socket",
        "answered",
        "body",
        "busy",
        "deadline",
        "on_writable",
        "reading",
        "since",
        "transport",
        "unwritten",
        "write_deadline",
    )

    def __init__(self, connection: socket.socket, now: float) -> None:
        self._socket = connection
        self.since = now
        self.deadline = math.inf
        self.write_deadline = math.inf
        self.answered = False
        self.busy = False
        self.reading = False
        self.body = 0
        self.unwritten = 0
        self.transport: asyncio.Transport | None = None
        self.on_writable: Callable[[bool], None] = lambda _writable: None

    def end(self) -> None:
        """Close the connection, whatever it is at, without a goodbye."""
        if self.transport:
            self.transport.abort()
        else:
            # At the door: whoever lets it in sees the end of the stream.
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
        held_bytes: int = HELD_BYTES,
        clock: Callable[[], float] = time.monotonic,
        on_ended: Callable[[Reason], None] = lambda _reason: None,
    ) -> None:
        self._limit = limit
        self._held_bytes = held_bytes
        self._clock = clock
        self._on_ended = on_ended
        self._visits: set[Visit] = set()
        self._busy = 0
        self._held = 0

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
            self.end(visit, "late")
            return False
        visit.since = now
        return True

    def make_room(self) -> bool:
        """Close the connection that has waited longest; False if all are busy."""
        waiting = [visit for visit in self._visits if not visit.busy]
        if not waiting:
            return False
        self.end(min(waiting, key=lambda visit: (visit.answered, visit.since)), "crowded")
        return True

    def gone(self, visit: Visit) -> None:
        """Count a connection out; said again, it changes nothing."""
        self._visits.discard(visit)
        self.freed(visit)
        self._hold(visit, 0)
        self.mark(visit, busy=False)

    def mark(self, visit: Visit, *, busy: bool) -> None:
        """Note whether the visit has a whole request that is not answered yet."""
        self._busy += busy - visit.busy
        visit.busy = busy

    def took(self, visit: Visit, count: int) -> None:
        """Count bytes of a body."""
        if visit not in self._visits:
            return
        visit.body += count
        self._held += count
        self._make_memory()

    def freed(self, visit: Visit) -> None:
        """The visit's body is not held any more."""
        self._held -= visit.body
        visit.body = 0

    def left_unwritten(self, visit: Visit, count: int) -> None:
        """Note how many bytes of the visit's answer are not written yet.

        From the first of them until there are none the time for writing passes.
        """
        if visit not in self._visits:
            return
        if not count:
            visit.write_deadline = math.inf
        elif not visit.unwritten:
            visit.write_deadline = self._clock() + WRITE_SECONDS
        self._hold(visit, count)
        self._make_memory()

    def full(self) -> bool:
        """Whether bodies and answers hold so much that no more requests should be taken."""
        return self._held > self._held_bytes

    def sweep(self) -> None:
        """Close the connections whose deadline is over."""
        now = self._clock()
        for visit in list(self._visits):
            if visit.write_deadline <= now:
                self.end(visit, "unread")
            elif visit.deadline <= now:
                self.end(visit, "slow")

    async def run(self) -> NoReturn:
        """Sweep all the time, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP)
            self.sweep()

    def end(self, visit: Visit, reason: Reason) -> None:
        """Close a connection at once, and count why."""
        # Its own end takes a turn of the loop or two, and room is wanted now.
        self.gone(visit)
        visit.end()
        self._on_ended(reason)

    def end_all(self) -> None:
        """Close what is left when the process goes."""
        for visit in list(self._visits):
            self.gone(visit)
            visit.end()

    def refused(self) -> None:
        """Count a connection that is closed after the refusal of what came over it."""
        self._on_ended("malformed")

    def _hold(self, visit: Visit, unwritten: int) -> None:
        self._held += unwritten - visit.unwritten
        visit.unwritten = unwritten

    def _make_memory(self) -> None:
        """Beyond what all may hold, the longest to send a body or to read an answer goes."""
        while self._held > self._held_bytes:
            holders = [
                each for each in self._visits if each.unwritten or (each.reading and each.body)
            ]
            if not holders:
                return
            self.end(min(holders, key=lambda each: each.since), "large")
