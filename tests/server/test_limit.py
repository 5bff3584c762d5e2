"""Beyond a limit of requests in flight, the next is refused and told when to come again."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from tests.server.serving import echo, post, running
from webhook.server.limit import InFlightLimit

if TYPE_CHECKING:
    import http.client

    from starlette.types import Message, Receive, Scope, Send


class _Announced:
    """The echo, which tells when a request has come in."""

    def __init__(self) -> None:
        self.came = threading.Semaphore(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.came.release()
        await echo(scope, receive, send)


def _begin(connection: http.client.HTTPConnection) -> None:
    """Send a request up to the last byte of its body."""
    connection.putrequest("POST", "/")
    connection.putheader("Content-Length", "2")
    connection.endheaders(b"o")


def test_a_request_beyond_the_limit_is_told_to_come_again() -> None:
    """Two are in flight: the third gets 503 with Retry-After 1, and they get their answers."""
    app = _Announced()
    refused: list[str] = []
    limit = InFlightLimit(app, 2, on_refused=lambda: refused.append("refused"))
    with running(limit) as server:
        first, second, third = (server.connect() for _ in range(3))
        for connection in (first, second):
            _begin(connection)
            app.came.acquire()
        assert limit.in_flight == 2
        response = post(third, b"body")
        assert (response.status, response.headers["Retry-After"]) == (503, "1")
        assert b"try again" in response.read()
        assert refused == ["refused"]
        for connection in (first, second):
            connection.send(b"k")
            assert connection.getresponse().read() == b"ok"
        # The same connection serves on, once there is room.
        assert post(third, b"again").read() == b"again"
        for connection in (first, second, third):
            connection.close()


def test_a_request_that_fails_leaves_its_place() -> None:
    """An exception in the app is one request less in flight, or the limit would close for good."""

    async def failing(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise ZeroDivisionError

    limit = InFlightLimit(failing, 1)
    with running(limit) as server:
        for _ in range(3):
            connection = server.connect()
            assert post(connection, b"").status == 500
            connection.close()
    assert limit.in_flight == 0


def test_what_is_no_request_passes() -> None:
    """A lifespan scope is handed on, whatever is in flight."""
    seen: list[str] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(scope["type"])

    async def never() -> Message:
        raise AssertionError

    async def nowhere(_message: Message) -> None:
        raise AssertionError

    asyncio.run(InFlightLimit(app, 0)({"type": "lifespan"}, never, nowhere))
    assert seen == ["lifespan"]
