"""Each hostile request gets what the table says, once and quietly, and leaves nothing behind."""

from __future__ import annotations

import http.client
import json
import logging
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pytest

from tests.admission.reviews import SPOT, Webhook, policy_set
from tests.eventually import eventually
from tests.server.hostile import CLOSED, REQUESTS, REVIEW, WAITS, Hostile
from tests.server.serving import Running, running
from webhook.server import protocol
from webhook.server.connection_limiter import ConnectionLimiter
from webhook.server.limit import InFlightLimit
from webhook.server.logs import JsonFormatter

# Characters that one request may have us log.
_MOST_LOGGED = 4096

_ANSWER = re.compile(rb"HTTP/1\.1 (\d{3}) ")


@dataclass
class Attacked:
    """A server with the app of the product, its connections, and an honest caller."""

    server: Running
    limiter: ConnectionLimiter
    limit: InFlightLimit
    honest: http.client.HTTPSConnection

    def review(self) -> None:
        """Have the honest caller ask, over the connection that it had from the beginning."""
        self.honest.request("POST", "/mutate", REVIEW, {"Content-Type": "application/json"})
        response = self.honest.getresponse()
        assert response.status == 200
        assert json.loads(response.read())["response"]["allowed"]


@contextmanager
def attacked() -> Iterator[Attacked]:
    limiter = ConnectionLimiter(100)
    limit = InFlightLimit(
        Webhook(policy_set(SPOT)).app, 10, waiting=lambda: limiter.busy, full=limiter.full
    )
    with running(limit, limiter=limiter) as server:
        honest = server.connect()
        found = Attacked(server, limiter, limit, honest)
        found.review()
        yield found
        found.review()
        honest.close()


@pytest.fixture(scope="module")
def patient() -> Iterator[Attacked]:
    """One that waits as long as the product does."""
    with attacked() as found:
        yield found


@pytest.fixture(scope="module")
def impatient() -> Iterator[Attacked]:
    """One that closes soon what it waits for."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HEAD_SECONDS", "BODY_SECONDS"):
            patch.setattr(protocol, name, 0.5)
        with attacked() as found:
            yield found


def _receive(connection: socket.socket) -> bytes:
    """The next bytes; none where the connection is closed, or broken off."""
    with suppress(ConnectionError, ssl.SSLError):
        return connection.recv(65536)
    return b""


def _send(connection: socket.socket, content: bytes) -> None:
    with suppress(OSError):
        connection.sendall(content)


def _first_answer(connection: socket.socket) -> tuple[int, bytes]:
    """Status and head of the first answer, other than "go on"; CLOSED where there is none."""
    received = b""
    while b"\r\n\r\n" not in received.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n"):
        piece = _receive(connection)
        if not piece:
            return CLOSED, received
        received += piece
    head = received.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").partition(b"\r\n\r\n")[0]
    status = _ANSWER.match(head)
    assert status, head
    return int(status[1]), head


def _closed(connection: socket.socket) -> bytes:
    """What still comes until the connection is closed."""
    rest = b""
    while piece := _receive(connection):
        rest += piece
    return rest


@pytest.mark.parametrize(
    "hostile", [each for each in REQUESTS if each.gets != WAITS], ids=lambda each: each.name
)
def test_a_hostile_request_gets_its_answer(
    hostile: Hostile, patient: Attacked, caplog: pytest.LogCaptureFixture
) -> None:
    """One at most, without a traceback; and others are answered meanwhile."""
    with patient.server.open(tls=hostile.tls) as connection:
        _send(connection, hostile.sent)
        status, head = _first_answer(connection)
        assert status == hostile.gets, head
        if status != CLOSED and b"connection: close" in head.lower():
            assert not _ANSWER.search(_closed(connection))
        patient.review()
    _nothing_is_left(patient, caplog)


@pytest.mark.parametrize(
    "hostile", [each for each in REQUESTS if each.gets == WAITS], ids=lambda each: each.name
)
def test_a_request_without_an_end_is_closed_when_its_time_is_over(
    hostile: Hostile, impatient: Attacked, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody else waits for it."""
    with impatient.server.open() as connection:
        _send(connection, hostile.sent)
        impatient.review()
        assert not _ANSWER.search(_closed(connection))
    _nothing_is_left(impatient, caplog)


def _nothing_is_left(attack: Attacked, caplog: pytest.LogCaptureFixture) -> None:
    eventually("the honest caller alone is left", lambda: attack.limiter.connections == 1)
    eventually("nothing is in flight", lambda: not (attack.limiter.busy or attack.limit.in_flight))
    assert not attack.limiter.full()
    # A review that cannot be read is logged by the app, with its reason.
    loud = [
        each
        for each in caplog.records
        if each.levelno >= logging.WARNING
        and each.message not in {"invalid review", "not ready to decide"}
    ]
    assert loud == []
    assert sum(len(JsonFormatter().format(each)) for each in caplog.records) < _MOST_LOGGED
