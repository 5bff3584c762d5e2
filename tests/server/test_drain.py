"""A process that is told to stop leaves without failing a single request."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from certs.pair import Pair
from tests.eventually import eventually
from tests.server.serving import HOST, connect, post, readiness, running
from tests.wording import Wording

if TYPE_CHECKING:
    import http.client
    from collections.abc import Iterator

# Longer than any test takes, where the grace time must not end by itself.
NEVER = 3600.0


@dataclass(frozen=True, slots=True)
class Program:
    """The small program, running."""

    process: subprocess.Popen[str]
    https_port: int
    plain_port: int
    trust: Pair

    def connect(self) -> http.client.HTTPSConnection:
        """Return a connection to its HTTPS port."""
        return connect(self.https_port, self.trust)

    def signal_and_wait_unready(self, number: signal.Signals) -> None:
        """Send a signal, and return once the program says that it is draining."""
        self.process.send_signal(number)
        eventually("it drains", self._drains)

    def _drains(self) -> bool:
        return not readiness(self.plain_port)[1]["conditions"]["drain"]["ready"]

    def refuses(self) -> bool:
        """Tell whether the HTTPS port takes no more connections."""
        try:
            # No TLS over it: Python leaves a socket open that is reset just before that begins.
            socket.create_connection((HOST, self.https_port)).close()
        except ConnectionRefusedError:
            return True
        return False

    def ended(self) -> tuple[int, list[str]]:
        """Wait for the end; return the exit code and the messages that it logged."""
        _, stderr = self.process.communicate()
        return self.process.returncode, [
            json.loads(line)["message"] for line in stderr.splitlines()
        ]


@contextmanager
def program(grace: float) -> Iterator[Program]:
    """Start the program, and kill it if the test leaves it running."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.server.program", str(grace)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        hello = json.loads(process.stdout.readline())
        trust = Pair(hello["trust"].encode(), b"")
        yield Program(process, hello["https"], hello["plain"], trust)
    finally:
        process.kill()
        process.communicate()


def _begin(connection: http.client.HTTPConnection) -> None:
    """Send a request up to the last byte of its body."""
    connection.putrequest("POST", "/")
    connection.putheader("Content-Length", "2")
    connection.endheaders(b"o")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_during_the_grace_time_it_answers_and_asks_callers_to_leave(
    number: signal.Signals,
) -> None:
    """Unready at once; standing, in-flight and new connections get answers that say close."""
    with program(NEVER) as server:
        standing, in_flight = server.connect(), server.connect()
        response = post(standing, b"before")
        assert response.read() == b"before"
        assert response.headers["Connection"] is None
        _begin(in_flight)
        server.signal_and_wait_unready(number)
        status, detail = readiness(server.plain_port)
        assert (status, detail["conditions"]["drain"]["reason"]) == (503, "draining")
        assert detail["conditions"]["tls"]["ready"]
        response = post(standing, b"standing")
        assert (response.read(), response.headers["Connection"]) == (b"standing", "close")
        fresh = server.connect()
        response = post(fresh, b"fresh")
        assert (response.read(), response.headers["Connection"]) == (b"fresh", "close")
        in_flight.send(b"k")
        response = in_flight.getresponse()
        assert (response.read(), response.headers["Connection"]) == (b"ok", "close")
        for connection in (standing, in_flight, fresh):
            connection.close()


def test_after_the_grace_time_requests_in_flight_are_finished() -> None:
    """No new connection is taken, the one in flight is answered, and the exit code is 0."""
    with program(0.2) as server:
        idle, in_flight = server.connect(), server.connect()
        assert post(idle, b"idle").read() == b"idle"
        _begin(in_flight)
        # The answer to a request on another connection tells that this one has been taken.
        assert post(idle, b"again").read() == b"again"
        server.process.send_signal(signal.SIGTERM)
        # Not in a rush: connections could have the place of one whose request is not whole.
        eventually("nobody is let in", server.refuses)
        # Longer than a goodbye takes: what is waited for is the request.
        time.sleep(1.5)
        # The plain port answers to the last.
        assert readiness(server.plain_port)[0] == 503
        assert server.process.poll() is None
        in_flight.send(b"k")
        response = in_flight.getresponse()
        assert (response.read(), response.headers["Connection"]) == (b"ok", "close")
        in_flight.close()
        code, messages = server.ended()
        idle.close()
    assert code == 0
    assert "draining" in messages
    assert "requests cut off" not in messages


def test_a_request_that_never_ends_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    """A client that stalls holds the end for so long and no longer, and the log tells of it."""
    with running(finish_seconds=0) as server:
        idle, stalled = server.connect(), server.connect()
        assert post(idle, b"idle").read() == b"idle"
        _begin(stalled)
        assert post(idle, b"again").read() == b"again"
    idle.close()
    stalled.close()
    assert "requests cut off" in caplog.messages


def test_an_idle_program_leaves_with_0_after_the_grace_time() -> None:
    """With no caller there is nothing to wait for but the grace time."""
    with program(0) as server:
        assert readiness(server.plain_port)[0] == 200
        server.process.send_signal(signal.SIGTERM)
        code, _ = server.ended()
    assert code == 0


def test_a_second_signal_ends_it_at_once(wording: Wording) -> None:
    """Neither the grace time nor a request in flight holds it, and the exit code tells."""
    with program(NEVER) as server:
        in_flight = server.connect()
        _begin(in_flight)
        server.signal_and_wait_unready(signal.SIGTERM)
        server.process.send_signal(signal.SIGTERM)
        code, messages = server.ended()
        in_flight.close()
    assert code == 1
    (message,) = (each for each in messages if "at once" in each)
    wording(message)


def test_a_second_signal_ends_a_wait_for_requests_in_flight() -> None:
    """Past the grace time too, whoever will not wait need not."""
    with program(0) as server:
        idle, in_flight = server.connect(), server.connect()
        assert post(idle, b"idle").read() == b"idle"
        _begin(in_flight)
        assert post(idle, b"again").read() == b"again"
        server.process.send_signal(signal.SIGTERM)
        # Not in a rush: connections could have the place of one whose request is not whole.
        eventually("nobody is let in", server.refuses)
        server.process.send_signal(signal.SIGTERM)
        code, _ = server.ended()
        idle.close()
        in_flight.close()
    assert code == 1


def test_answers_keep_their_own_connection_header_until_draining() -> None:
    """Before the drain an answer's headers are the app's, and the connection serves on."""
    with running(grace=NEVER) as server:
        connection = server.connect()
        for body in (b"one", b"two"):
            response = post(connection, body)
            assert response.read() == body
            assert response.headers["Connection"] is None
        connection.close()
        server.begin_drain()
        server.begin_drain()
