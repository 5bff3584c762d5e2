"""One connection: who does not read, sends two requests at once, or never comes to an end."""

from __future__ import annotations

import asyncio
import inspect
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib.metadata import version
from typing import cast

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from tests.eventually import eventually
from tests.server.serving import HOST, Running, echo, post, running
from webhook.server import connection_limiter as crowds
from webhook.server.connection_limiter import ConnectionLimiter, Reason
from webhook.server.limit import InFlightLimit

# More than the kernel takes on both sides before anybody reads.
LARGE = bytes(range(256)) * 32 * 1024
GET_LARGE = b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n"
GET_SMALL = b"GET /small HTTP/1.1\r\nHost: x\r\n\r\n"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer /large with much, anything else with its own body."""
    if scope["path"] != "/large":
        await echo(scope, receive, send)
        return
    headers = [(b"content-length", b"%d" % len(LARGE))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": LARGE})


class Served:
    """A server with room for three requests in flight, and why it closed connections."""

    def __init__(self, held_bytes: int) -> None:
        self.ended: list[Reason] = []
        self.connection_limiter = ConnectionLimiter(
            100, held_bytes=held_bytes, on_ended=self.ended.append
        )
        self.limit = InFlightLimit(
            app,
            3,
            waiting=lambda: self.connection_limiter.busy,
            full=lambda: self.connection_limiter.full(),
        )
        self.server: Running | None = None

    def connect(self, text: bytes) -> socket.socket:
        assert self.server
        return self.server.open(text)

    def answers(self) -> None:
        assert self.server
        with closing(self.server.connect()) as connection:
            response = post(connection, b"honest")
            found = (response.status, response.read())
        connection_limiter = self.connection_limiter
        state = (
            connection_limiter.busy,
            connection_limiter.full(),
            connection_limiter.connections,
            self.limit.in_flight,
            self.ended,
        )
        assert found == (200, b"honest"), f"busy, full, connections, in flight, ended: {state}"


def received(connection: socket.socket) -> bytes:
    """All that comes until the connection is closed, or broken off."""
    result = b""
    with suppress(OSError):
        while piece := connection.recv(65536):
            result += piece
    return result


def taken(connection: socket.socket, piece: bytes) -> int:
    """How many bytes could be sent, piece by piece, until the connection was closed."""
    sent = 0
    with suppress(OSError):
        while sent < 20 * len(LARGE):
            connection.sendall(piece)
            sent += len(piece)
    return sent


@contextmanager
def served(held_bytes: int = 10 * len(LARGE)) -> Iterator[Served]:
    found = Served(held_bytes)
    with running(found.limit, limiter=found.connection_limiter) as server:
        found.server = server
        yield found


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has long to read an answer."""
    monkeypatch.setattr(crowds, "WRITE_SECONDS", 0.5)


async def headers_back(scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer with the values of the request's headers x-own."""
    own = [value for name, value in scope["headers"] if name == b"x-own"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b" ".join(own)})


def test_each_request_of_a_connection_has_its_own_headers() -> None:
    """And what stands behind a body is no header, of this one or of the next."""
    with running(headers_back) as server, closing(server.connect()) as connection:
        for number in (b"one", b"two"):
            connection.putrequest("POST", "/")
            connection.putheader("x-own", number)
            connection.putheader("Transfer-Encoding", "chunked")
            connection.endheaders(b"1\r\na\r\n0\r\nx-own: trailer\r\n\r\n")
            assert connection.getresponse().read() == number


@pytest.mark.parametrize(
    "text", [GET_LARGE, GET_LARGE * 2 + GET_SMALL], ids=["one request each", "three at once"]
)
def test_a_client_that_does_not_read_displaces_no_other(text: bytes) -> None:
    with served() as found, ExitStack() as stack:
        for _ in range(12):
            stack.enter_context(found.connect(text))
            eventually("nobody is in flight", lambda: not found.connection_limiter.busy)
            found.answers()


@pytest.mark.usefixtures("impatient")
def test_an_answer_that_is_not_read_ends_the_connection() -> None:
    """Once its time is over; it is let go of then."""
    with served() as found:
        with found.connect(GET_LARGE):
            eventually("it is closed", lambda: found.ended)
            eventually("no connection is left", lambda: not found.connection_limiter.connections)
        assert found.ended == ["unread"]


@pytest.mark.usefixtures("impatient")
def test_reading_byte_by_byte_gains_no_time() -> None:
    """The time is for the whole answer."""
    with served() as found, found.connect(GET_LARGE) as connection:
        try:
            while connection.recv(1):
                pass
        except OSError:
            pass
        assert found.ended == ["unread"]


@pytest.mark.usefixtures("impatient")
def test_an_answer_that_closes_the_connection_has_the_same_time() -> None:
    """Where the client has said goodbye and does not read, nothing else would end it."""
    with served() as found:
        text = GET_LARGE.replace(b"Host", b"Connection: close\r\nHost")
        with found.connect(text) as connection:
            assert connection.recv(1)
            connection.setblocking(False)
            assert isinstance(connection, ssl.SSLSocket)
            with suppress(ssl.SSLError):
                # It is said, and the answer to it would have to be read.
                connection.unwrap()
            eventually("no connection is left", lambda: not found.connection_limiter.connections)


def test_unread_answers_take_a_bounded_memory() -> None:
    """Beyond it the longest to read goes, and others are answered all the time."""
    with served(held_bytes=3 * len(LARGE)) as found, ExitStack() as stack:
        for number in range(1, 7):
            stack.enter_context(found.connect(GET_LARGE))

            def answered(number: int = number) -> bool:
                came = found.connection_limiter.connections + len(found.ended)
                return came == number and not found.connection_limiter.busy

            eventually("it is answered", answered)
            found.answers()
            assert not found.connection_limiter.full()
        eventually("some are closed", lambda: len(found.ended) >= 3)
        assert set(found.ended) == {"large"}


@pytest.mark.parametrize("closing", [False, True], ids=["kept", "closed"])
def test_a_large_answer_comes_whole_to_who_reads_it(closing: bool) -> None:
    """At his pace, and over a connection that serves on unless he wants it closed."""
    with served() as found:
        text = GET_LARGE
        if closing:
            text = text.replace(b"Host", b"Connection: close\r\nHost")
        with found.connect(text) as connection:
            answer = b""
            while len(answer.partition(b"\r\n\r\n")[2]) < len(LARGE):
                piece = connection.recv(65536)
                assert piece
                answer += piece
            assert answer.partition(b"\r\n\r\n")[2] == LARGE
            if not closing:
                connection.sendall(GET_SMALL)
                assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
        assert found.ended == []


def test_a_request_behind_another_ends_the_connection() -> None:
    """The API server never sends one before it has the answer; one after it is served."""
    with served() as found:
        with found.connect(GET_SMALL * 2) as connection:
            assert received(connection) == b""
        assert found.ended == ["pipelined"]
        with found.connect(GET_SMALL) as connection:
            assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
            connection.sendall(GET_SMALL)
            assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
        eventually("no connection is left", lambda: not found.connection_limiter.connections)
        assert (found.ended, found.connection_limiter.busy) == (["pipelined"], 0)


def test_trailers_without_an_end_are_refused() -> None:
    with served() as found:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        with found.connect(head + b"2\r\nok\r\n0\r\n") as connection:
            assert taken(connection, b"x: y\r\n" * 1000) < len(LARGE)
        assert found.ended == ["malformed"]


def test_a_body_without_an_end_behind_its_answer_is_closed() -> None:
    """Else it could go on, as fast as it can, for as long as a body may take."""

    async def refusing(_scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [(b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    ended: list[Reason] = []
    connection_limiter = ConnectionLimiter(10, on_ended=ended.append)
    with running(refusing, limiter=connection_limiter) as server:
        sent = b"POST / HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n"
        with server.open(sent) as connection:
            assert taken(connection, bytes(65536)) < 10 * len(LARGE)
    assert ended == ["large"]


def test_the_plain_port_has_the_same_limits(impatient: None) -> None:  # noqa: ARG001
    """Whoever reaches it could else hold what probes need."""
    with served() as found:
        assert found.server
        text = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
        with socket.create_connection((HOST, found.server.plain_port)) as connection:
            connection.sendall(text * 2)
            assert received(connection) == b""
        assert found.server.get("/livez")[0] == 200


def test_the_names_of_uvicorn_that_are_built_on_are_there() -> None:
    """uvicorn documents none of them: see decision 44."""
    moved = f"uvicorn {version('uvicorn')}: {{}} has moved; BoundedProtocol builds on it"
    parameters = list(inspect.signature(HttpToolsProtocol).parameters)
    assert parameters == ["config", "server_state", "app_state", "_loop"], moved.format(
        "HttpToolsProtocol's arguments"
    )
    callbacks = {
        "connection_made": ["transport"],
        "connection_lost": ["exc"],
        "data_received": ["data"],
        "pause_writing": [],
        "resume_writing": [],
        "on_message_begin": [],
        "on_header": ["name", "value"],
        "on_headers_complete": [],
        "on_body": ["body"],
        "on_message_complete": [],
        "on_response_complete": [],
        "timeout_keep_alive_handler": [],
        "shutdown": [],
    }
    for name, wanted in callbacks.items():
        there = list(inspect.signature(getattr(HttpToolsProtocol, name)).parameters)[1:]
        assert there == wanted, moved.format(f"HttpToolsProtocol.{name}")
    asyncio.run(_attributes(moved))


async def _attributes(moved: str) -> None:
    state = ServerState()
    for name, kind in (("connections", set), ("tasks", set), ("default_headers", list)):
        assert isinstance(getattr(state, name, None), kind), moved.format(f"ServerState.{name}")
    config = uvicorn.Config(app, interface="asgi3", lifespan="off", log_config=None)
    config.load()
    protocol = HttpToolsProtocol(config, state, {}, asyncio.get_running_loop())
    for name in ("app", "cycle", "headers", "loop", "parser", "transport"):
        assert hasattr(protocol, name), moved.format(f"HttpToolsProtocol.{name}")
    for name in ("feed_data", "get_http_version", "should_upgrade"):
        assert hasattr(protocol.parser, name), moved.format(f"HttpToolsProtocol.parser.{name}")
    transport = _Nowhere()
    protocol.connection_made(cast("asyncio.Transport", transport))
    assert state.connections == {protocol}, moved.format("that connections are in ServerState")
    protocol.data_received(GET_SMALL)
    assert protocol.url == b"/small", moved.format("HttpToolsProtocol.url")
    assert len(state.tasks) == 1, moved.format("that requests are in ServerState.tasks")
    for name in ("response_started", "response_complete"):
        there = getattr(protocol.cycle, name, None)
        assert there is False, moved.format(f"RequestResponseCycle.{name}")
    await asyncio.gather(*state.tasks)
    assert protocol.cycle.response_complete, moved.format("RequestResponseCycle.response_complete")
    protocol.connection_lost(None)


class _Nowhere:
    """A transport without a connection."""

    def write(self, data: bytes) -> None:
        """Drop it."""

    def get_extra_info(self, name: str) -> None:
        """Know nothing."""

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        """Do nothing."""
