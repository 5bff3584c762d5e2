"""The door stays open, whatever goes wrong at it."""

from __future__ import annotations

import errno
import itertools
import os
import socket
from asyncio.selector_events import BaseSelectorEventLoop
from contextlib import suppress
from typing import Any

import pytest

from tests.eventually import eventually
from tests.server.serving import HOST, post, running
from webhook.server.crowd import DOOR_SECONDS, Crowd


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
    crowd = Crowd(1000)
    with running(crowd=crowd) as server:
        waiting = socket.create_connection((HOST, server.https_port))
        eventually("somebody is in", lambda: crowd.connections)
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


def test_a_client_that_speaks_no_tls_is_sent_away_and_counts_no_more() -> None:
    """Such as a scanner, or a probe at the wrong port."""
    crowd = Crowd(1000)
    with running(crowd=crowd) as server:
        with socket.create_connection((HOST, server.https_port)) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            while plain.recv(1000):
                pass
        eventually("no connection is left", lambda: not crowd.connections)


def test_whoever_waited_too_long_at_the_door_is_turned_away_at_once() -> None:
    """His own time is nearly over: the handshake would be lost work. He counts no more."""
    ended: list[str] = []
    late = itertools.count(step=DOOR_SECONDS + 1)
    crowd = Crowd(1000, clock=lambda: next(late), on_ended=ended.append)
    with running(crowd=crowd) as server:
        with socket.create_connection((HOST, server.https_port)) as connection:
            assert connection.recv(1) == b""
        eventually("no connection is left", lambda: not crowd.connections)
    assert ended == ["late"]


def test_nobody_is_left_at_the_door_when_it_is_shut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who was accepted and not yet let in has his connection closed, and waits for nothing."""
    crowd = Crowd(1000)
    monkeypatch.setattr("webhook.server.doorway._BEGUN", 1)
    with running(crowd=crowd) as server:
        waiting = [socket.create_connection((HOST, server.https_port)) for _ in range(50)]
    for each in waiting:
        each.settimeout(30)
        with each, suppress(ConnectionResetError):
            assert each.recv(1) == b""
