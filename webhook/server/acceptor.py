"""Accepts connections, has a limiter count them, and makes the TLS handshakes."""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
from asyncio.sslproto import SSLProtocol
from typing import TYPE_CHECKING, Final, NoReturn, cast

from webhook.server.connection_limiter import Stage

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from webhook.server.connection_limiter import Connection, ConnectionLimiter

_logger = logging.getLogger(__name__)

HANDSHAKE_SECONDS: Final = 10
# A peer that does not say goodbye has its connection closed all the same.
_GOODBYE_SECONDS: Final = 5
# What is kept for each TLS connection to read into. A record has 16 KiB, and asyncio's 256 KiB
# would make a thousand connections 300 MB instead of 60.
READ_BYTES: Final = 32 * 1024
# How many are accepted, and with how many a handshake begins, in one turn of the loop. A rush at
# the door must not keep those waiting who are in, whose requests a turn may have hundreds of; nor
# the other way round. Handshakes are few at a time, so that each is over soon.
_ACCEPTED: Final = 64
_BEGUN: Final = 4
# Without TLS it costs next to nothing to begin: as many as are accepted, or in a rush ever more
# would wait at the door, a probe among them.
_BEGUN_PLAIN: Final = _ACCEPTED
# Without descriptors or memory for another connection, accepting is tried again so much later.
_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE: Final = 0.1
# Files, sockets to the API server, the plain port's connections.
_OWN_DESCRIPTORS: Final = 1500
# Errors of the listening socket itself: no connection comes any more. All others are those of one
# connection that broke before it was accepted (accept(2), Linux).
_BROKEN: Final = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK})


class TlsProtocol(SSLProtocol):
    """asyncio's TLS for one client, with a smaller buffer; tells the client when the peer reads.

    Used through the seam of every protocol: handed to the loop, for a connection without TLS.
    `handshaken` is done when `protocol` is connected, or has the error of the handshake.
    """

    max_size = READ_BYTES

    def __init__(
        self,
        client: Connection,
        protocol: asyncio.Protocol,
        context: ssl.SSLContext,
        handshaken: asyncio.Future[None],
    ) -> None:
        super().__init__(
            handshaken.get_loop(),
            protocol,
            context,
            handshaken,
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=_GOODBYE_SECONDS,
        )
        self._visit = client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        self._visit.transport = cast("asyncio.Transport", transport)
        super().connection_made(transport)

    def pause_writing(self) -> None:
        """Keep what is written from now on; called when the peer takes no more."""
        super().pause_writing()
        self._visit.on_writable(False)

    def resume_writing(self) -> None:
        """Write on; called when the peer has taken all."""
        super().resume_writing()
        self._visit.on_writable(True)


class Acceptor:
    """Takes connections from a listening socket and gives each a protocol of its own.

    Not before its first bytes are there: what a protocol takes, TLS above all, is not for
    connections that say nothing.
    `protocol` makes it for a client; it has to tell the limiter when the connection is lost.
    """

    def __init__(
        self,
        listening: socket.socket,
        limiter: ConnectionLimiter,
        protocol: Callable[[Connection], asyncio.Protocol],
        tls: ssl.SSLContext | None,
    ) -> None:
        listening.setblocking(False)
        self._listening = listening
        self._crowd = limiter
        self._protocol = protocol
        self._tls = tls
        self._silent: set[socket.socket] = set()
        self._waiting: asyncio.Queue[tuple[Connection, socket.socket]] = asyncio.Queue()
        self._arriving: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Let in until cancelled; who is at the door or in a handshake then is sent away."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._crowd.run())
                group.create_task(self._accept())
                group.create_task(self._let_in())
        finally:
            loop = asyncio.get_running_loop()
            for connection in self._silent:
                loop.remove_reader(connection)
                connection.close()
            while not self._waiting.empty():
                self._waiting.get_nowait()[1].close()
            for task in self._arriving:
                task.cancel()

    async def _accept(self) -> NoReturn:
        loop = asyncio.get_running_loop()
        tried = 0
        while True:
            tried += 1
            if tried % _ACCEPTED == 0:
                # To accept does not wait while somebody is at the door: let the loop turn.
                await asyncio.sleep(0)
            try:
                connection, _ = await loop.sock_accept(self._listening)
            except OSError as error:
                if error.errno in _BROKEN:
                    raise
                if error.errno in _SHORTAGES:
                    _logger.warning("cannot accept", extra={"error": str(error)})
                    self._crowd.make_room()
                    await asyncio.sleep(_PAUSE)
                continue
            self._receive(connection, loop)

    def _receive(self, connection: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        client = self._crowd.admit(connection)
        if _has_sent(connection):
            # In a rush it would be pushed out of the silent ones before the loop turns.
            self._let_speak(client, connection)
            return
        self._silent.add(connection)
        loop.add_reader(connection, self._queue, client, connection, loop)

    def _queue(
        self, client: Connection, connection: socket.socket, loop: asyncio.AbstractEventLoop
    ) -> None:
        """It has sent something, was closed by its peer, or by the limiter."""
        loop.remove_reader(connection)
        self._silent.discard(connection)
        if _has_sent(connection):
            self._let_speak(client, connection)
        else:
            self._crowd.gone(client)
            connection.close()

    def _let_speak(self, client: Connection, connection: socket.socket) -> None:
        if self._crowd.spoke(client):
            self._waiting.put_nowait((client, connection))
        else:
            self._crowd.gone(client)
            connection.close()

    async def _let_in(self) -> NoReturn:
        begun = 0
        most = _BEGUN if self._tls else _BEGUN_PLAIN
        while True:
            # No name of ours holds the last one while the next is waited for.
            begun += self._begin(*await self._waiting.get())
            if begun == most:
                begun = 0
                # As above.
                await asyncio.sleep(0)

    def _begin(self, client: Connection, connection: socket.socket) -> bool:
        if not self._crowd.call_in(client, Stage.SHAKING if self._tls else Stage.NEW):
            connection.close()
            return False
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._arrive(connection, client, loop))
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)
        return True

    async def _arrive(
        self, connection: socket.socket, client: Connection, loop: asyncio.AbstractEventLoop
    ) -> None:
        handshaken = loop.create_future()
        protocol = self._protocol(client)
        outer: asyncio.BaseProtocol = protocol
        if self._tls:
            outer = TlsProtocol(client, protocol, self._tls, handshaken)
        else:
            handshaken.set_result(None)
        transport: asyncio.BaseTransport | None = None
        arrived = False
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: outer, connection)
            await handshaken
            arrived = not transport.is_closing()
        except OSError as error:
            # Clients that are refused, go away, or take too long: nothing of ours is wrong.
            _logger.debug("no handshake", extra={"error": str(error)})
        finally:
            if not arrived:
                self._crowd.gone(client)
                if transport:
                    cast("asyncio.Transport", transport).abort()


def allow_descriptors(limit: int) -> None:
    """Have the process open as many files as a limiter of this limit needs, where it may.

    Many container runtimes give 1,024, and allow far more.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # As many that say nothing, and at the door; and what the process has open itself.
    wanted = 3 * limit + _OWN_DESCRIPTORS
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _has_sent(connection: socket.socket) -> bool:
    try:
        return bool(connection.recv(1, socket.MSG_PEEK))
    except OSError:
        return False
