"""Serve HTTPS and the plain port in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from dataclasses import dataclass
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final, NoReturn

import uvicorn
from uvicorn.server import ServerState

from webhook.errors import ServingError
from webhook.server.acceptor import Acceptor, allow_descriptors
from webhook.server.connection_limiter import ConnectionLimiter
from webhook.server.drain import ClosingConnections
from webhook.server.protocol import BoundedProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from starlette.types import ASGIApp

    from webhook.server.connection_limiter import Connection
    from webhook.server.drain import Drain
    from webhook.server.tls import ServerTls

_logger = logging.getLogger(__name__)

# Connections that wait to be accepted while the loop is busy, at most tenths of a second. Beyond
# this number, the kernel makes clients retry after a second.
BACKLOG: Final = 256
# Bytes of an answer that the kernel buffers before the peer reads it; the kernel doubles the value.
# They count as the pod's memory, and by default grow to 4 MiB per connection. An answer has about
# ten thousand bytes.
_SEND_BYTES: Final = 64 * 1024
# Connections to the plain port, from kubelets and scrapers. Each has one request, and is closed
# about five iterations of the loop after its answer; an iteration accepts 64.
_PLAIN_CONNECTIONS: Final = 400
# The backlog of the plain port: a probe that retries after a second is late.
_PLAIN_BACKLOG: Final = 1024
# Seconds to send a written answer; a peer that never closes must not delay the exit.
_GOODBYE_SECONDS: Final = 1.0


def bind(host: str, port: int) -> socket.socket:
    """Listen on an address and return the socket; connections wait until they are served.

    `host` is an IP address or a name; "" and "::" mean every address, IPv4 and IPv6. Port 0 takes
    a free port, which `getsockname()[1]` returns. Raises ServingError if the address is not
    available.
    """
    if not 0 <= port <= 65535:
        raise ServingError(f"cannot listen on port {port}: choose one from 1 to 65535, or 0")
    try:
        return _listen(host, port)
    except OSError as error:
        raise ServingError(
            f"cannot listen on {host or 'every address'} port {port}: {error.strerror}; "
            f"choose another address or port"
        ) from error


def _listen(host: str, port: int) -> socket.socket:
    every = host in {"", "::"} and socket.has_dualstack_ipv6()
    family, kind, _, _, address = socket.getaddrinfo(
        "::" if every else host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    # asyncio disables Nagle's algorithm only for sockets with the protocol TCP. The algorithm would
    # delay the second part of every answer by 40 ms.
    where = socket.socket(family, kind, socket.IPPROTO_TCP)
    try:
        where.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit the options of their listening socket.
        where.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
        if family == socket.AF_INET6:
            where.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not every)
        where.bind(address)
        where.listen(BACKLOG)
    except BaseException:
        where.close()
        raise
    return where


async def serve(
    app: ASGIApp,
    health: ASGIApp,
    *,
    https: socket.socket,
    plain: socket.socket,
    tls: ServerTls,
    drain: Drain,
    finish_seconds: float = 30,
    limiter: ConnectionLimiter,
    callers: frozenset[str] = frozenset(),
    background: Sequence[Callable[[], Coroutine[Any, Any, object]]] = (),
) -> bool:
    """Serve `app` with TLS on `https` and `health` on `plain`, until `drain` is over.

    Then no new connection is accepted, requests in flight have `finish_seconds` (at most 30, the
    API server's maximum timeout), and health answers until the end. `limiter` counts the
    connections of `https`. `callers` are the names of permitted clients in their certificates;
    without names every client is permitted that `tls` accepts. `background` creates coroutines
    that run while requests are served; if one raises, everything ends with an ExceptionGroup. The
    apps' lifespans are not run. Both sockets are closed at the end. Returns False if the drain was
    cut short.
    """
    ports = (
        _Port(app, https, limiter, finish_seconds, tls, callers),
        _plain_port(health, plain),
    )
    return await _run(ports, (https, plain), drain, background)


async def serve_plain(
    health: ASGIApp,
    *,
    plain: socket.socket,
    drain: Drain,
    background: Sequence[Callable[[], Coroutine[Any, Any, object]]] = (),
) -> bool:
    """Serve only `health`, with a process's real work in the background: see serve."""
    allow_descriptors(_PLAIN_CONNECTIONS)
    return await _run((_plain_port(health, plain),), (plain,), drain, background)


async def serve_people(
    app: ASGIApp,
    *,
    sockets: Sequence[socket.socket],
    limiter: ConnectionLimiter,
    drain: Drain,
    finish_seconds: float,
) -> None:
    """Serve only `app`, without TLS, on all sockets, whose connections `limiter` counts: see
    serve.
    """
    allow_descriptors(limiter.limit)
    ports = [_Port(app, listening_socket, limiter, finish_seconds) for listening_socket in sockets]
    await _run(ports, sockets, drain, ())


async def _run(
    ports: Sequence[_Port],
    sockets: Sequence[socket.socket],
    drain: Drain,
    background: Sequence[Callable[[], Coroutine[Any, Any, object]]],
) -> bool:
    with contextlib.ExitStack() as open_sockets:
        for where in sockets:
            open_sockets.enter_context(contextlib.closing(where))
        async with asyncio.TaskGroup() as group:
            others: list[asyncio.Task[object]] = [
                group.create_task(start()) for start in background
            ]
            running = [group.create_task(port.serve()) for port in ports]
            await drain.grace_over()
            for port, task in zip(ports, running, strict=True):
                port.leave()
                await _ended(task, drain)
            for other in others:
                other.cancel()
    return not drain.cut_short


def _plain_port(health: ASGIApp, where: socket.socket) -> _Port:
    where.listen(_PLAIN_BACKLOG)
    # Connections are not kept alive, so a client with many requests queues behind probes.
    return _Port(
        ClosingConnections(health), where, ConnectionLimiter(_PLAIN_CONNECTIONS), _GOODBYE_SECONDS
    )


async def _ended(task: asyncio.Task[None], drain: Drain) -> None:
    cut = asyncio.ensure_future(drain.cut())
    await asyncio.wait({task, cut}, return_when=asyncio.FIRST_COMPLETED)
    cut.cancel()
    if not task.done():
        task.cancel()


@dataclass(eq=False, repr=False)
class _Port:
    """A listening socket and its connections, each with uvicorn's HTTP protocol.

    Only uvicorn's protocol is used. Its server would handle signals, accept without a limit, and
    shut down differently from serve().
    """

    app: ASGIApp
    where: socket.socket
    limiter: ConnectionLimiter
    finish_seconds: float
    tls: ServerTls | None = None
    callers: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._config = uvicorn.Config(
            self.app,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            # uvicorn's timer would only keep a reference to a lost connection.
            timeout_keep_alive=0,
        )
        self._config.load()
        self._state = ServerState()
        context = self.tls.context if self.tls else None
        self._acceptor = Acceptor(self.where, self.limiter, self._protocol, context)
        self._leaving = asyncio.Event()

    def leave(self) -> None:
        self._leaving.set()

    async def serve(self) -> None:
        """Serve until `leave` or cancellation. Raises the acceptor's error, which is a bug."""
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(self._acceptor.run()),
                group.create_task(self._keep_date()),
            ]
            await self._leaving.wait()
            for task in background:
                task.cancel()
        # Only after the tasks, or the loop would continue to watch the socket.
        self.where.close()
        await self._finish()

    async def _keep_date(self) -> NoReturn:
        while True:
            date = formatdate(usegmt=True).encode()
            self._state.default_headers = [(b"date", date)]
            await asyncio.sleep(1)

    async def _finish(self) -> None:
        for connection in list(self._state.connections):
            connection.shutdown()
        if not await _emptied(self._state.tasks, self.finish_seconds):
            _logger.error("requests cut off", extra={"requests": len(self._state.tasks)})
            for task in self._state.tasks:
                task.cancel()
        if not await _emptied(self._state.connections, _GOODBYE_SECONDS):
            self.limiter.end_all()

    def _protocol(self, client: Connection) -> BoundedProtocol:
        loop = asyncio.get_running_loop()
        return BoundedProtocol(
            self._config,
            self._state,
            loop,
            limiter=self.limiter,
            client=client,
            callers=self.callers,
        )


async def _emptied(waited_for: set[Any], seconds: float) -> bool:
    """Wait until the set is empty; return whether it was within the seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while waited_for:  # noqa: ASYNC110  uvicorn's sets have no change event
                await asyncio.sleep(0.01)
    return not waited_for
