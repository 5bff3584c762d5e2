"""Accept connections and make TLS handshakes."""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
from asyncio.sslproto import SSLProtocol
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NoReturn, cast

from webhook.server.connection_limiter import Stage

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable

    from webhook.server.connection_limiter import Connection, ConnectionLimiter

_logger = logging.getLogger(__name__)

HANDSHAKE_SECONDS: Final = 10
# Seconds for the peer's TLS close notification; after that the connection is aborted.
_GOODBYE_SECONDS: Final = 5
# The read buffer of each TLS connection. A record has 16 KiB; with asyncio's 256 KiB a thousand
# connections would take 300 MB instead of 60.
READ_BYTES: Final = 32 * 1024
# Connections to accept, and handshakes to start, per iteration of the event loop. A burst of new
# connections must not delay the requests on existing ones, of which an iteration may have
# hundreds, and vice versa. Few handshakes run at a time, so that each one is short.
_ACCEPTED: Final = 64
_BEGUN: Final = 4
# Without TLS a start is cheap: as many as are accepted. With fewer, the queue would grow in a
# burst, and delay a probe.
_BEGUN_PLAIN: Final = _ACCEPTED
# Seconds until the next accept after a shortage of descriptors or memory.
_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_SHORTAGE_PAUSE_SECONDS: Final = 0.1
# Descriptors for files, sockets to the API server and the plain port's connections.
_OWN_DESCRIPTORS: Final = 1500
# Errors of the listening socket itself, which will accept no more connections. All other errors
# are of one connection that broke before it was accepted (accept(2), Linux).
_BROKEN: Final = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK})


class TlsProtocol(SSLProtocol):
    """asyncio's TLS with a smaller buffer; reports when the peer can receive.

    It is used like any protocol: passed to the loop for a connection without TLS. `handshaken` is
    done when `protocol` is connected, or has the handshake's error.
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
        self._client = client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._client.transport = cast("asyncio.Transport", transport)
        super().connection_made(transport)

    def pause_writing(self) -> None:
        """Buffer further output; called when the peer accepts no more data."""
        super().pause_writing()
        self._client.on_writable(False)

    def resume_writing(self) -> None:
        """Continue writing; called when the peer has accepted all data."""
        super().resume_writing()
        self._client.on_writable(True)


@dataclass(eq=False, repr=False, slots=True)
class Acceptor:
    """Accepts connections from a listening socket and creates a protocol for each.

    It does so only after a connection's first bytes, because a protocol, and TLS in particular,
    needs memory that silent connections must not use. `protocol` creates the protocol for a
    client; it must call the limiter when the connection is lost.
    """

    listening: socket.socket
    limiter: ConnectionLimiter
    protocol: Callable[[Connection], asyncio.Protocol]
    tls: ssl.SSLContext | None
    _silent: set[socket.socket] = field(default_factory=set, init=False)
    _waiting: asyncio.Queue[tuple[Connection, socket.socket]] = field(
        default_factory=asyncio.Queue, init=False
    )
    _arriving: set[asyncio.Task[None]] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self.listening.setblocking(False)

    async def run(self) -> None:
        """Accept until cancelled; then close connections that wait or are in a handshake."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.limiter.run())
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
                # While connections are pending, accept does not suspend: yield to the loop.
                await asyncio.sleep(0)
            try:
                connection, _ = await loop.sock_accept(self.listening)
            except OSError as error:
                if error.errno in _BROKEN:
                    raise
                if error.errno in _SHORTAGES:
                    _logger.warning("cannot accept", extra={"error": str(error)})
                    self.limiter.make_room()
                    await asyncio.sleep(_SHORTAGE_PAUSE_SECONDS)
                continue
            self._receive(connection, loop)

    def _receive(self, connection: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        client = self.limiter.admit(connection)
        if client.has_unread():
            # In a burst it would be evicted from the silent connections before the loop runs.
            self._let_speak(client, connection)
            return
        self._silent.add(connection)
        loop.add_reader(connection, self._queue, client, connection, loop)

    def _queue(
        self, client: Connection, connection: socket.socket, loop: asyncio.AbstractEventLoop
    ) -> None:
        """Handle first bytes, or a close by the peer or the limiter."""
        loop.remove_reader(connection)
        self._silent.discard(connection)
        if client.has_unread():
            self._let_speak(client, connection)
        else:
            self.limiter.release(client)
            connection.close()

    def _let_speak(self, client: Connection, connection: socket.socket) -> None:
        if self.limiter.received_bytes(client):
            self._waiting.put_nowait((client, connection))
        else:
            self.limiter.release(client)
            connection.close()

    async def _let_in(self) -> NoReturn:
        begun = 0
        most = _BEGUN if self.tls else _BEGUN_PLAIN
        while True:
            # No variable keeps the last connection alive during the wait for the next.
            begun += self._begin(*await self._waiting.get())
            if begun == most:
                begun = 0
                # As above.
                await asyncio.sleep(0)

    def _begin(self, client: Connection, connection: socket.socket) -> bool:
        if not self.limiter.call_in(client, Stage.SHAKING if self.tls else Stage.NEW):
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
        protocol = self.protocol(client)
        outer: asyncio.BaseProtocol = protocol
        if self.tls:
            outer = TlsProtocol(client, protocol, self.tls, handshaken)
        else:
            handshaken.set_result(None)
        transport: asyncio.BaseTransport | None = None
        arrived = False
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: outer, connection)
            await handshaken
            arrived = not transport.is_closing()
        except OSError as error:
            # Clients that are refused, disconnect or time out: not an error of the server.
            _logger.debug("no handshake", extra={"error": str(error)})
        except Exception:
            # A bug with one connection must not be silent, and must not end the others.
            _logger.exception("connection lost: this is a bug")
        finally:
            if not arrived:
                self.limiter.release(client)
                if transport:
                    cast("asyncio.Transport", transport).abort()


def allow_descriptors(limit: int) -> None:
    """Raise the process's limit of open files, as far as permitted, for this many connections.

    Many container runtimes set 1,024, and permit far more.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # As many silent and as many waiting connections, plus the process's own files.
    wanted = 3 * limit + _OWN_DESCRIPTORS
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
