"""Hundreds of connections that stall: real requests are answered, and in the end none is left."""

from __future__ import annotations

import gc
import selectors
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
from starlette.types import Receive, Scope, Send

from tests.eventually import eventually
from tests.server.serving import Running, post, running
from webhook.server import protocol
from webhook.server.connection_limiter import Connection, ConnectionLimiter
from webhook.server.protocol import HEAD_BYTES, BoundedProtocol

CROWD = 300
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"


def silent(server: Running) -> socket.socket:
    """A connection that never begins its handshake."""
    return server.open(tls=False)


def half_a_hello(server: Running) -> socket.socket:
    """One that begins it, and stops."""
    connection = silent(server)
    connection.sendall(b"\x16\x03\x01\x02\x00\x01")
    return connection


def saying(server: Running, text: bytes) -> socket.socket:
    """One that makes its handshake, says this, and no more.

    Where times are short, and where there is little room, it may be closed before it came to that.
    """
    connection = server.open(shakes_hands=False)
    assert isinstance(connection, ssl.SSLSocket)
    with suppress(OSError):
        connection.do_handshake()
        connection.sendall(text)
    return connection


STALLS: dict[str, Callable[[Running], socket.socket]] = {
    "before the handshake": silent,
    "in the handshake": half_a_hello,
    "after the handshake": lambda server: saying(server, b""),
    "in the headers": lambda server: saying(server, HEAD + b"A: b"),
    "in the body": lambda server: saying(server, HEAD + b"Content-Length: 9\r\n\r\nbody"),
    "after empty lines": lambda server: saying(server, b"\r\n" * 10),
}


@contextmanager
def served(limiter: ConnectionLimiter) -> Iterator[Running]:
    with running(limiter=limiter) as server:
        yield server


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times after which nobody needs to wait."""
    monkeypatch.setattr("webhook.server.acceptor.HANDSHAKE_SECONDS", 0.5)
    monkeypatch.setattr("webhook.server.connection_limiter.SILENT_SECONDS", 0.5)
    for name in ("KEEP_ALIVE_SECONDS", "HEAD_SECONDS", "BODY_SECONDS"):
        monkeypatch.setattr(protocol, name, 0.5)


def until_closed(connections: list[socket.socket]) -> None:
    """Wait until the server has closed every one of them."""
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            connection.setblocking(False)
            selector.register(connection, selectors.EVENT_READ, connection)
        while selector.get_map():
            for key, _ in selector.select():
                connection = key.data
                try:
                    over = not connection.recv(65536)
                except (ssl.SSLWantReadError, BlockingIOError):
                    continue
                except OSError:
                    over = True
                if over:
                    selector.unregister(connection)


@pytest.mark.parametrize("stall", STALLS.values(), ids=STALLS.keys())
@pytest.mark.usefixtures("impatient")
def test_a_stalled_connection_is_closed(stall: Callable[[Running], socket.socket]) -> None:
    limiter = ConnectionLimiter(1000)
    with served(limiter) as server, ExitStack() as stack:
        connections = [stack.enter_context(stall(server)) for _ in range(5)]
        until_closed(connections)
        eventually("no connection is left", lambda: not limiter.connections)


def test_a_body_that_trickles_on_after_its_answer_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each byte of it would else begin the idle time again."""
    monkeypatch.setattr(protocol, "BODY_SECONDS", 2)
    limiter = ConnectionLimiter(1000)

    async def refusing(_scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [(b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    with running(refusing, limiter=limiter) as server:
        connection = saying(server, HEAD + b"Content-Length: 1000000\r\n\r\n")
        try:
            assert b" 413 " in connection.recv(1000)
            while limiter.connections:
                connection.sendall(b"x")
        except OSError:
            pass
        finally:
            connection.close()
        eventually("no connection is left", lambda: not limiter.connections)


def test_hundreds_of_stalled_connections_block_no_new_one() -> None:
    """There is room for far fewer; each request is answered, on fresh connections and kept ones.

    As many again may be there that say nothing, or wait at the door.
    """
    limiter = ConnectionLimiter(60)
    with served(limiter) as server, ExitStack() as stack:
        kept = server.connect()
        for number in range(CROWD):
            stall = list(STALLS.values())[number % len(STALLS)]
            stack.enter_context(stall(server))
            assert post(kept, b"kept").read() == b"kept"
            if number % 10 == 0:
                fresh = server.connect()
                assert post(fresh, b"fresh").read() == b"fresh"
                fresh.close()
            assert limiter.connections <= 3 * 60
        kept.close()


def left_behind() -> int:
    """How many objects there are that belong to one connection each."""
    gc.collect()
    return sum(
        isinstance(each, (Connection, BoundedProtocol, SSLProtocol)) for each in gc.get_objects()
    )


def test_connections_that_come_and_go_leave_nothing_behind() -> None:
    limiter = ConnectionLimiter(1000)
    with served(limiter) as server:
        for _ in range(2):
            with ExitStack() as stack:
                for number in range(CROWD):
                    stack.enter_context(list(STALLS.values())[number % len(STALLS)](server))
            eventually("nothing is left", lambda: not limiter.connections and not left_behind())


def test_headers_just_within_the_limit_are_read() -> None:
    with running() as server:
        header = b"A: " + b"b" * (HEAD_BYTES - 100)
        with saying(server, HEAD) as connection:
            for start in range(0, len(header), 1000):
                connection.sendall(header[start : start + 1000])
            connection.sendall(b"\r\nContent-Length: 2\r\n\r\nok")
            assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
