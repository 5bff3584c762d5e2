"""Limits of a listener's connections: number, time, memory."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import math
import socket
import time
from dataclasses import KW_ONLY, dataclass, field
from heapq import nsmallest
from typing import TYPE_CHECKING, Final, Literal, NoReturn, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Reason: TypeAlias = Literal["slow", "late", "crowded", "large", "unread", "pipelined", "malformed"]

# Bytes of all bodies that are being read or decided on, and of all answers that are not written
# yet. A review has about ten thousand.
HELD_BYTES: Final = 64 * 1024 * 1024
# Seconds to write an answer. The API server waits at most 30 s for all, and reads at once.
WRITE_SECONDS: Final = 10.0
# Seconds for which a connection waits for its handshake to start. In the manifests the API server
# waits 3 s in total. After half of that an answer still arrives in time; later the work would be
# lost.
DOOR_SECONDS: Final = 1.5
# Seconds for a connection's first bytes, which a client sends at once.
SILENT_SECONDS: Final = 10.0
# The oldest connections of a stage among which one without unread bytes is looked for: one system
# call each.
_LOOKED_AT: Final = 32
# Seconds between two checks for exceeded deadlines.
SWEEP: Final = 1.0


class Stage(enum.Enum):
    """The stage of a connection."""

    SILENT = enum.auto()
    """No data was received yet."""
    WAITING = enum.auto()
    """Data was received, and the connection waits to be admitted."""
    SHAKING = enum.auto()
    """The TLS handshake is in progress."""
    NEW = enum.auto()
    """It may send requests, and has had no answer yet."""
    ANSWERED = enum.auto()
    """It has had an answer."""


# The guaranteed share of each stage. With the defaults, as many answered connections remain open
# as requests may be in flight.
_SHARES: Final = {Stage.SHAKING: 0.2, Stage.NEW: 0.2, Stage.ANSWERED: 0.6}


@dataclass(eq=False, repr=False, slots=True)
class Connection:
    """One connection, from accept on.

    stage: set by the limiter.
    since: the start of the present wait: for admission, a handshake, a request or the rest of one.
    deadline: the end of that wait.
    write_deadline: the time limit for writing its answer; infinite without unwritten data.
    busy: a complete request is not answered yet; the connection is then not closed to make room.
    reading: a request has started and is not complete yet.
    body: the bytes of its request's body.
    unwritten: the bytes of its answer that the peer has not received yet.
    transport: the connection below TLS; None before admission.
    on_writable: called with False when the peer accepts no more bytes, with True when it does.
    """

    socket: socket.socket
    since: float
    stage: Stage = Stage.SILENT
    deadline: float = field(init=False)
    write_deadline: float = math.inf
    busy: bool = False
    reading: bool = False
    body: int = 0
    unwritten: int = 0
    transport: asyncio.Transport | None = None
    on_writable: Callable[[bool], None] = lambda _writable: None

    def __post_init__(self) -> None:
        self.deadline = self.since + SILENT_SECONDS

    def has_unread(self) -> bool:
        """Return True if its peer has sent bytes that are not read yet."""
        try:
            return bool(self.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except OSError:
            return False

    def end(self) -> None:
        """Abort the connection, without a TLS close notification."""
        # At once: the transport closes its socket in a later iteration, and a request that arrives
        # until then would be lost. Before admission the acceptor sees the end of the stream.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        if self.transport:
            self.transport.abort()


@dataclass(eq=False, repr=False, slots=True)
class ConnectionLimiter:
    """All connections of one listener; used only on the event loop's thread.

    `limit` is the number of admitted connections. As many silent ones, and as many that wait for
    admission, are permitted as well, because they take a tenth of the memory. Beyond the limit a
    connection is closed, of the stage that exceeds its share by most; within the stage, the one
    that has waited longest. So a flood in one stage evicts no connections of another: neither
    those that are reused nor those being established. A busy connection is never closed, because
    it will soon have its answer; one whose request has come and is not read yet only if the oldest
    of its stage all have one. `on_ended` is called with the reason of each close. `busy` is the
    number of complete requests without an answer, at most one per connection.
    """

    limit: int
    _: KW_ONLY
    held_bytes: int = HELD_BYTES
    clock: Callable[[], float] = time.monotonic
    on_ended: Callable[[Reason], None] = lambda _reason: None
    busy: int = field(default=0, init=False)
    # Each in order of arrival.
    _clients: dict[Stage, dict[Connection, None]] = field(
        default_factory=lambda: {stage: {} for stage in Stage}, init=False
    )
    _held: int = field(default=0, init=False)

    @property
    def connections(self) -> int:
        """The number of connections, including silent ones and handshakes."""
        return sum(len(clients) for clients in self._clients.values())

    def admit(self, connection: socket.socket) -> Connection:
        """Add a connection; evict the oldest silent one if there are too many."""
        self._make_room_outside(Stage.SILENT)
        client = Connection(connection, self.clock())
        self._clients[Stage.SILENT][client] = None
        return client

    def received_bytes(self, client: Connection) -> bool:
        """Record the first bytes; return False if the connection was closed in the meantime."""
        if client not in self:
            return False
        self._make_room_outside(Stage.WAITING)
        client.since = self.clock()
        client.deadline = math.inf
        self.advance(client, Stage.WAITING)
        return True

    def call_in(self, client: Connection, stage: Stage = Stage.SHAKING) -> bool:
        """Admit a connection, so that its handshake may start; return False if it is closed.

        `stage` is NEW without a handshake. Otherwise, in a burst, connections that are about to be
        answered would be evicted in favor of clients that send no complete request.

        A connection that has waited too long is closed, so that every wait is short. In a burst
        with an unlimited queue, each client would be admitted just after it gave up, and none would
        be served. A connection is also closed if all others are busy.
        """
        if client not in self:
            return False
        now = self.clock()
        if now - client.since > DOOR_SECONDS:
            self.end(client, "late")
            return False
        while sum(len(self._clients[stage]) for stage in _SHARES) >= self.limit:
            if not self._end_one():
                self.end(client, "crowded")
                return False
        client.since = now
        self.advance(client, stage)
        return True

    def advance(self, client: Connection, stage: Stage) -> None:
        """Record the client's stage; does nothing if it was released."""
        if client in self and client.stage is not stage:
            del self._clients[client.stage][client]
            client.stage = stage
            self._clients[stage][client] = None

    def make_room(self) -> None:
        """Close a connection after a shortage of descriptors or memory."""
        silent = self._clients[Stage.SILENT]
        if silent:
            self.end(next(iter(silent)), "crowded")
        else:
            self._end_one()

    def _make_room_outside(self, stage: Stage) -> None:
        clients = self._clients[stage]
        if len(clients) >= self.limit:
            self.end(next(iter(clients)), "crowded")

    def _end_one(self) -> bool:
        """Close one admitted connection; return False if all are busy."""

        def excess(stage: Stage) -> float:
            return len(self._clients[stage]) - self.limit * _SHARES[stage]

        for stage in sorted(_SHARES, key=excess, reverse=True):
            clients = self._clients[stage]
            waiting = (connection for connection in clients if not connection.busy)
            oldest = nsmallest(_LOOKED_AT, waiting, key=lambda connection: connection.since)
            if oldest:
                # If all have sent something, the oldest one goes.
                quiet = (connection for connection in oldest if not connection.has_unread())
                self.end(next(quiet, oldest[0]), "crowded")
                return True
        return False

    def __contains__(self, client: Connection) -> bool:
        return client in self._clients[client.stage]

    def _all(self) -> list[Connection]:
        return [client for clients in self._clients.values() for client in clients]

    def release(self, client: Connection) -> None:
        """Remove a connection; idempotent."""
        self._clients[client.stage].pop(client, None)
        self.freed(client)
        self._hold(client, 0)
        self.mark(client, busy=False)

    def mark(self, client: Connection, *, busy: bool) -> None:
        """Record whether the client has a complete request without an answer."""
        self.busy += busy - client.busy
        client.busy = busy

    def took(self, client: Connection, count: int) -> None:
        """Count received bytes of a body."""
        if client not in self:
            return
        client.body += count
        self._held += count
        self._make_memory()

    def freed(self, client: Connection) -> None:
        """Record that the connection's body was released."""
        self._held -= client.body
        client.body = 0

    def left_unwritten(self, client: Connection, count: int) -> None:
        """Record the number of unwritten bytes of the connection's answer.

        The time limit for writing runs from the first of them until there are none.
        """
        if client not in self:
            return
        if not count:
            client.write_deadline = math.inf
        elif not client.unwritten:
            client.write_deadline = self.clock() + WRITE_SECONDS
        self._hold(client, count)
        self._make_memory()

    def full(self) -> bool:
        """Return True if bodies and answers hold so much memory that requests must be refused."""
        return self._held > self.held_bytes

    def sweep(self) -> None:
        """Close the connections whose deadline has passed."""
        now = self.clock()
        for client in self._all():
            if client.write_deadline <= now:
                self.end(client, "unread")
            elif client.deadline <= now:
                self.end(client, "slow")

    async def run(self) -> NoReturn:
        while True:
            await asyncio.sleep(SWEEP)
            self.sweep()

    def end(self, client: Connection, reason: Reason) -> None:
        """Close a connection at once, and count the reason."""
        # Release it first: the close takes an iteration or two, and the room is needed now.
        self.release(client)
        self.on_ended(reason)
        client.end()

    def end_all(self) -> None:
        """Close all remaining connections when the process exits."""
        for client in self._all():
            self.release(client)
            client.end()

    def refused(self) -> None:
        """Count a connection that is closed because its request was refused."""
        self.on_ended("malformed")

    def _hold(self, client: Connection, unwritten: int) -> None:
        self._held += unwritten - client.unwritten
        client.unwritten = unwritten

    def _make_memory(self) -> None:
        """Above the memory limit, close the slowest sender of a body or reader of an answer."""
        while self._held > self.held_bytes:
            holders = [
                connection
                for connection in self._all()
                if connection.unwritten or (connection.reading and connection.body)
            ]
            if not holders:
                return
            self.end(min(holders, key=lambda connection: connection.since), "large")
