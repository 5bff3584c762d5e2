"""Runs the HTTPS app and the plain health app in one event loop, until drained."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from typing import TYPE_CHECKING, Any, Final

import uvicorn

from webhook.errors import ServingError
from webhook.server.crowd import Crowd
from webhook.server.doorway import Doorway
from webhook.server.protocol import KEEP_ALIVE_SECONDS, BoundedProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence

    from starlette.types import ASGIApp

    from webhook.server.callers import Callers
    from webhook.server.crowd import Visit
    from webhook.server.drain import Drain
    from webhook.server.tls import ServerTls

_logger = logging.getLogger(__name__)

# Connections that wait to be accepted while the loop is busy: tenths of a second at most. The
# kernel has those beyond try again after a second.
BACKLOG: Final = 256
# Connections to the plain port: a kubelet's, and those of whoever scrapes.
_PLAIN_CONNECTIONS: Final = 100
# An answer that is written still has to leave; a peer that does not say goodbye may not hold us.
_GOODBYE_SECONDS: Final = 1.0


def bind(host: str, port: int) -> socket.socket:
    """Listen on an address, and return the socket: connections wait there until they are served.

    `host` is an IP address or a name; "" and "::" mean every address, IPv4 and IPv6. Port 0 takes
    a free one, which `getsockname()[1]` tells. Raises ServingError if the address cannot be had.
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
    # Only where a socket says that it is TCP does asyncio turn Nagle's algorithm off, which would
    # hold back the second part of every answer for 40 ms.
    where = socket.socket(family, kind, socket.IPPROTO_TCP)
    try:
        where.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
    crowd: Crowd,
    callers: Callers | None = None,
    background: Sequence[Callable[[], Coroutine[Any, Any, object]]] = (),
) -> bool:
    """Serve `app` with TLS on `https` and `health` on `plain`, until `drain` is over.

    Then no new connection is taken, requests in flight have `finish_seconds` (at most 30, which
    is what the API server waits for a webhook), and health answers to the last. `crowd` counts the
    connections of `https`. `callers` says which of the clients that TLS asked for a certificate
    may call; None: none was asked. `background` makes coroutines that run as long as requests are
    served; one that raises ends everything, in an ExceptionGroup. The apps' lifespans are not run.
    Both sockets are closed in the end.
    Returns False if the drain was cut short.
    """
    servers = (
        (_Server(_config(app, tls), finish_seconds, crowd, callers), https),
        (_plain_server(health), plain),
    )
    return await _run(servers, drain, background)


async def serve_plain(
    health: ASGIApp,
    *,
    plain: socket.socket,
    drain: Drain,
    background: Sequence[Callable[[], Coroutine[Any, Any, object]]] = (),
) -> bool:
    """Serve `health` alone, beside a process's real work in the background: see serve."""
    return await _run(((_plain_server(health), plain),), drain, background)


async def _run(
    servers: Sequence[tuple[_Server, socket.socket]],
    drain: Drain,
    background: Sequence[Callable[[], Coroutine[Any, Any, object]]],
) -> bool:
    with contextlib.ExitStack() as sockets:
        for _, where in servers:
            sockets.enter_context(contextlib.closing(where))
        async with asyncio.TaskGroup() as group:
            others: list[asyncio.Task[object]] = [
                group.create_task(start()) for start in background
            ]
            running = [
                group.create_task(server.serve(sockets=[where])) for server, where in servers
            ]
            await drain.grace_over()
            for (server, _), task in zip(servers, running, strict=True):
                server.should_exit = True
                await _ended(task, drain)
            for other in others:
                other.cancel()
    return not drain.cut_short


async def _ended(task: asyncio.Task[None], drain: Drain) -> None:
    cut = asyncio.ensure_future(drain.cut())
    await asyncio.wait({task, cut}, return_when=asyncio.FIRST_COMPLETED)
    cut.cancel()
    if not task.done():
        task.cancel()


def _plain_server(health: ASGIApp) -> _Server:
    return _Server(_config(health, None), _GOODBYE_SECONDS, Crowd(_PLAIN_CONNECTIONS))


def _config(app: ASGIApp, tls: ServerTls | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        ssl_context_factory=tls.context_factory if tls else None,
    )


class _Server(uvicorn.Server):
    """A uvicorn server that leaves the signals alone, lets connections in by a doorway of ours,
    and takes its leave as serve() says."""

    def __init__(
        self,
        config: uvicorn.Config,
        finish_seconds: float,
        crowd: Crowd,
        callers: Callers | None = None,
    ) -> None:
        super().__init__(config)
        self._finish_seconds = finish_seconds
        self._crowd = crowd
        self._callers = callers
        self._doors: list[asyncio.Task[None]] = []

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to exit, or cancelled."""
        try:
            await super().serve(sockets)
        finally:
            for door in self._doors:
                door.cancel()
        for door in self._doors:
            with contextlib.suppress(asyncio.CancelledError):
                await door

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the doors."""
        for where in sockets or ():
            doorway = Doorway(where, self._crowd, self._protocol, self.config.ssl)
            door = asyncio.create_task(doorway.run())
            door.add_done_callback(self._shut)
            self._doors.append(door)
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, close the idle ones, finish what is in flight."""
        for door in self._doors:
            door.cancel()
        # Before its socket is closed, or the loop would go on to watch it.
        await asyncio.wait(self._doors)
        for where in sockets or ():
            where.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if not await _emptied(self.server_state.tasks, self._finish_seconds):
            _logger.error("requests cut off", extra={"requests": len(self.server_state.tasks)})
            for task in self.server_state.tasks:
                task.cancel()
        if not await _emptied(self.server_state.connections, _GOODBYE_SECONDS):
            for connection in self.server_state.connections:
                connection.transport.abort()

    def _protocol(self, visit: Visit) -> BoundedProtocol:
        loop = asyncio.get_running_loop()
        return BoundedProtocol(
            self.config,
            self.server_state,
            loop,
            crowd=self._crowd,
            visit=visit,
            callers=self._callers,
        )

    def _shut(self, _door: asyncio.Task[None]) -> None:
        # Nobody comes in any more, be it by a bug: then the process has to go.
        self.should_exit = True


async def _emptied(waited_for: set[Any], seconds: float) -> bool:
    """Wait until the set is empty; tell whether it became so within the seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while waited_for:  # noqa: ASYNC110  uvicorn's sets tell nobody that they changed
                await asyncio.sleep(0.01)
    return not waited_for
