"""The door stays open, whatever goes wrong at it."""

from __future__ import annotations

import asyncio
import errno
import inspect
import itertools
import os
import resource
import socket
import ssl
from asyncio.selector_events import BaseSelectorEventLoop
from asyncio.sslproto import SSLProtocol
from contextlib import suppress
from typing import Any

import pytest

from tests.eventually import eventually
from tests.server.serving import HOST, post, running
from webhook.server.acceptor import READ_BYTES, TlsProtocol, allow_descriptors
from webhook.server.connection_limiter import DOOR_SECONDS, Connection, ConnectionLimiter


@pytest.mark.parametrize(
    ("number", "makes_room"), [(errno.EMFILE, True), (errno.ECONNABORTED, False)]
)
def test_without_descriptors_the_longest_waiting_makes_room(
    number: int, makes_room: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a connection that broke before it was accepted costs nobody anything."""
    accept = BaseSelectorEventLoop.sock_accept
    errors: list[int] = []

    async def short(loop: BaseSelectorEventLoop, listening: socket.socket) -> Any:
        connection, address = await accept(loop, listening)
        if errors:
            connection.close()
            raise OSError(number, os.strerror(errors.pop()))
        return connection, address

    monkeypatch.setattr(BaseSelectorEventLoop, "sock_accept", short)
    limiter = ConnectionLimiter(1000)
    with running(limiter=limiter) as server:
        waiting = socket.create_connection((HOST, server.https_port))
        eventually("somebody is in", lambda: limiter.connections)
        errors.append(number)
        socket.create_connection((HOST, server.https_port)).close()
        eventually("the error is over", lambda: not errors)
        connection = server.connect()
        assert post(connection, b"served").read() == b"served"
        connection.close()
        waiting.setblocking(False)
        if makes_room:
            waiting.setblocking(True)
            assert waiting.recv(1) == b""
        else:
            with pytest.raises(BlockingIOError):
                waiting.recv(1)
        waiting.close()


@pytest.mark.parametrize("number", [errno.ECONNABORTED, errno.EPROTO, errno.EPERM])
def test_an_error_of_one_connection_does_not_block_others(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only without descriptors or memory is accepting tried again later: here, an hour."""
    accept = BaseSelectorEventLoop.sock_accept
    errors = [number] * 200

    async def failing(loop: BaseSelectorEventLoop, listening: socket.socket) -> Any:
        if errors:
            raise OSError(errors.pop(), "no connection")
        return await accept(loop, listening)

    monkeypatch.setattr(BaseSelectorEventLoop, "sock_accept", failing)
    monkeypatch.setattr("webhook.server.acceptor._SHORTAGE_PAUSE_SECONDS", 3600)
    with running() as server:
        connection = server.connect()
        connection.timeout = 60
        assert post(connection, b"served").read() == b"served"
        connection.close()
    assert not errors


def test_a_listening_socket_that_is_broken_ends_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody would come in any more; tried again, it would keep the loop busy."""

    async def broken(_loop: BaseSelectorEventLoop, _listening: socket.socket) -> Any:
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(BaseSelectorEventLoop, "sock_accept", broken)
    with pytest.raises(ExceptionGroup) as caught, running():
        pass
    assert caught.group_contains(OSError, match="Bad file descriptor")


async def test_the_names_of_asyncio_that_are_built_on_are_there() -> None:
    """They are not asyncio's public ones: see decision 44."""
    wanted = [
        "loop",
        "app_protocol",
        "sslcontext",
        "waiter",
        "server_side",
        "ssl_handshake_timeout",
        "ssl_shutdown_timeout",
    ]
    moved = "asyncio.sslproto.SSLProtocol: {} has moved; TlsProtocol (acceptor.py) builds on it"
    there = list(inspect.signature(SSLProtocol).parameters)
    assert there[:4] == wanted[:4], moved.format("the order of the first four arguments")
    for name in wanted:
        assert name in there, moved.format(f"the argument {name}")
    for name in ("max_size", "get_buffer", "connection_made", "pause_writing", "resume_writing"):
        assert hasattr(SSLProtocol, name), moved.format(name)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    near, far = socket.socketpair()
    with near, far:
        handshaken = asyncio.get_running_loop().create_future()
        tls = TlsProtocol(Connection(near, 0), asyncio.Protocol(), context, handshaken)
        size = len(tls.get_buffer(-1))
        tls.connection_lost(None)
        result = size
    assert result == READ_BYTES, moved.format("that max_size is the buffer's size")


def test_a_client_that_speaks_no_tls_is_sent_away_and_counts_no_more() -> None:
    """Such as a scanner, or a probe at the wrong port."""
    limiter = ConnectionLimiter(1000)
    with running(limiter=limiter) as server:
        with socket.create_connection((HOST, server.https_port)) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            while plain.recv(1000):
                pass
        eventually("no connection is left", lambda: not limiter.connections)


def test_a_connection_that_waited_too_long_is_closed_at_once() -> None:
    """His own time is nearly over: the handshake would be lost work. He counts no more."""
    ended: list[str] = []
    late = itertools.count(step=DOOR_SECONDS + 1)
    limiter = ConnectionLimiter(1000, clock=lambda: next(late), on_ended=ended.append)
    with running(limiter=limiter) as server:
        with socket.create_connection((HOST, server.https_port)) as connection:
            connection.sendall(b"\x16")
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""
        eventually("no connection is left", lambda: not limiter.connections)
    assert ended == ["late"]


def test_a_closing_listener_closes_waiting_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who was accepted and not yet let in has his connection closed, and waits for nothing."""
    limiter = ConnectionLimiter(1000)
    monkeypatch.setattr("webhook.server.acceptor._BEGUN", 1)
    with running(limiter=limiter) as server:
        waiting = [socket.create_connection((HOST, server.https_port)) for _ in range(50)]
    for each in waiting:
        each.settimeout(30)
        with each, suppress(ConnectionResetError):
            assert each.recv(1) == b""


def test_as_many_descriptors_are_allowed_as_connections_need() -> None:
    """Where the hard limit lets them be: the soft one of many runtimes is 1,024."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
        allow_descriptors(100)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(1800, before[1])
        allow_descriptors(1)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(1800, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
