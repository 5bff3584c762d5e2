"""The connections of a listener: limits of their number, their time and their memory."""

from __future__ import annotations

import asyncio
import contextlib
import enum
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
# Seconds for a connection's first bytes to come, which a client sends at once.
SILENT_SECONDS: Final = 10.0
# Seconds between two looks for those that have taken too long.
SWEEP: Final = 1.0


class Stage(enum.Enum):
    """How far a connection has come."""

    SILENT = enum.auto()
    """Nothing was received from it yet."""
    AT_THE_DOOR = enum.auto()
    """It has sent something, and waits to be let in."""
    SHAKING = enum.auto()
    """It is making its TLS handshake."""
    NEW = enum.auto()
    """It may send requests, and was never given an answer."""
    ANSWERED = enum.auto()
    """It was given an answer."""


# What each stage may keep of the places, whatever the others do. At the defaults as many
# connections that were answered stay as requests may be in flight.
_SHARES: Final = {Stage.SHAKING: 0.2, Stage.NEW: 0.2, Stage.ANSWERED: 0.6}


class Connection:
    """One connection, from the moment it is accepted.

    stage: how far it has come; the limiter sets it.
    since: when its present wait began: at the door, for a handshake, a request, or the rest of one.
    deadline: until when that wait may last.
    write_deadline: until when its answer has to be written; infinite if nothing waits for that.
    busy: whether a whole request has come that is not answered yet: it is not closed for room then.
    reading: whether a request has begun to come that is not whole yet.
    body: how many bytes of its request's body there are.
    unwritten: how many bytes of its answer the peer has not taken yet.
    transport: the connection itself, below TLS; None before it is let in.
    on_writable: called with False when the peer takes no more bytes, with True when it takes more.
    """

    __slots__ = (
        "_socket",
        "body",
        "busy",
        "deadline",
        "on_writable",
        "reading",
        "since",
        "stage",
        "transport",
        "unwritten",
        "write_deadline",
    )

    def __init__(self, connection: socket.socket, now: float) -> None:
        self._socket = connection
        self.stage = Stage.SILENT
        self.since = now
        self.deadline = now + SILENT_SECONDS
        self.write_deadline = math.inf
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


class ConnectionLimiter:
    """All connections of one listener; used on the event loop's thread only.

    `limit` is how many places there are; as many again may say nothing, and wait at the door: those
    cost a tenth of the memory. Beyond it a connection is closed, of the stage that exceeds its
    share of the places by most; within the stage, the one that has waited longest. So no limiter,
    wherever it stops, pushes out those who are elsewhere: neither connections that are used again
    and again, nor those that are just being made. Nor is a busy one closed: it has its answer soon.
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
        self._shares = {stage: limit * share for stage, share in _SHARES.items()}
        self._held_bytes = held_bytes
        self._clock = clock
        self._on_ended = on_ended
        # Each in the order in which they came to it.
        self._visits: dict[Stage, dict[Connection, None]] = {stage: {} for stage in Stage}
        self._busy = 0
        self._held = 0

    @property
    def connections(self) -> int:
        """How many connections there are, silent ones and handshakes included."""
        return sum(len(clients) for clients in self._visits.values())

    @property
    def busy(self) -> int:
        """How many whole requests have come that are not answered yet, one a connection."""
        return self._busy

    def admit(self, connection: socket.socket) -> Connection:
        """Count a connection in, in the place of the first silent one if there are too many."""
        self._make_room_outside(Stage.SILENT)
        client = Connection(connection, self._clock())
        self._visits[Stage.SILENT][client] = None
        return client

    def spoke(self, client: Connection) -> bool:
        """Its first bytes are there; False if it was closed meanwhile."""
        if client not in self:
            return False
        self._make_room_outside(Stage.AT_THE_DOOR)
        client.since = self._clock()
        client.deadline = math.inf
        self.advance(client, Stage.AT_THE_DOOR)
        return True

    def call_in(self, client: Connection, stage: Stage = Stage.SHAKING) -> bool:
        """Give it a place: its handshake may begin; False if it was closed meanwhile, or is now.

        `stage` is NEW where there is no handshake: or else, in a rush, those that are about to be
        answered would be the limiter that makes room for whoever sends no whole request.

        It is where it comes too late, so that each wait at the door is short: if all waited for
        their turn, then in a rush everybody would be let in when he has just given up, and nobody
        would be served. And it is if all others are busy.
        """
        if client not in self:
            return False
        now = self._clock()
        if now - client.since > DOOR_SECONDS:
            self.end(client, "late")
            return False
        while sum(len(self._visits[stage]) for stage in _SHARES) >= self._limit:
            if not self._end_one():
                self.end(client, "crowded")
                return False
        client.since = now
        self.advance(client, stage)
        return True

    def advance(self, client: Connection, stage: Stage) -> None:
        """Note how far the client has come; nothing, if it is not counted any more."""
        if client in self and client.stage is not stage:
            del self._visits[client.stage][client]
            client.stage = stage
            self._visits[stage][client] = None

    def make_room(self) -> None:
        """Close a connection, for there is no descriptor or memory for another."""
        silent = self._visits[Stage.SILENT]
        if silent:
            self.end(next(iter(silent)), "crowded")
        else:
            self._end_one()

    def _make_room_outside(self, stage: Stage) -> None:
        clients = self._visits[stage]
        if len(clients) >= self._limit:
            self.end(next(iter(clients)), "crowded")

    def _end_one(self) -> bool:
        """Close one that has a place; False if all are busy."""

        def excess(stage: Stage) -> float:
            return len(self._visits[stage]) - self._shares[stage]

        for stage in sorted(_SHARES, key=excess, reverse=True):
            clients = self._visits[stage]
            waiting = [each for each in clients if not each.busy]
            if waiting:
                self.end(min(waiting, key=lambda each: each.since), "crowded")
                return True
        return False

    def __contains__(self, client: Connection) -> bool:
        return client in self._visits[client.stage]

    def _all(self) -> list[Connection]:
        return [client for clients in self._visits.values() for client in clients]

    def gone(self, client: Connection) -> None:
        """Count a connection out; said again, it changes nothing."""
        self._visits[client.stage].pop(client, None)
        self.freed(client)
        self._hold(client, 0)
        self.mark(client, busy=False)

    def mark(self, client: Connection, *, busy: bool) -> None:
        """Note whether the client has a whole request that is not answered yet."""
        self._busy += busy - client.busy
        client.busy = busy

    def took(self, client: Connection, count: int) -> None:
        """Count bytes of a body."""
        if client not in self:
            return
        client.body += count
        self._held += count
        self._make_memory()

    def freed(self, client: Connection) -> None:
        """The connection's body is not held any more."""
        self._held -= client.body
        client.body = 0

    def left_unwritten(self, client: Connection, count: int) -> None:
        """Note how many bytes of the connection's answer are not written yet.

        From the first of them until there are none the time for writing passes.
        """
        if client not in self:
            return
        if not count:
            client.write_deadline = math.inf
        elif not client.unwritten:
            client.write_deadline = self._clock() + WRITE_SECONDS
        self._hold(client, count)
        self._make_memory()

    def full(self) -> bool:
        """Whether bodies and answers hold so much that no more requests should be taken."""
        return self._held > self._held_bytes

    def sweep(self) -> None:
        """Close the connections whose deadline is over."""
        now = self._clock()
        for client in self._all():
            if client.write_deadline <= now:
                self.end(client, "unread")
            elif client.deadline <= now:
                self.end(client, "slow")

    async def run(self) -> NoReturn:
        """Sweep all the time, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP)
            self.sweep()

    def end(self, client: Connection, reason: Reason) -> None:
        """Close a connection at once, and count why."""
        # Its own end takes a turn of the loop or two, and room is wanted now.
        self.gone(client)
        client.end()
        self._on_ended(reason)

    def end_all(self) -> None:
        """Close what is left when the process goes."""
        for client in self._all():
            self.gone(client)
            client.end()

    def refused(self) -> None:
        """Count a connection that is closed after the refusal of what came over it."""
        self._on_ended("malformed")

    def _hold(self, client: Connection, unwritten: int) -> None:
        self._held += unwritten - client.unwritten
        client.unwritten = unwritten

    def _make_memory(self) -> None:
        """Beyond what all may hold, the longest to send a body or to read an answer goes."""
        while self._held > self._held_bytes:
            holders = [
                each for each in self._all() if each.unwritten or (each.reading and each.body)
            ]
            if not holders:
                return
            self.end(min(holders, key=lambda each: each.since), "large")
