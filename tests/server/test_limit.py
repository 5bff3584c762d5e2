"""Beyond a limit of requests in flight, the next is refused and told when to come again."""

from __future__ import annotations

import asyncio
import threading

from starlette.types import Message, Receive, Scope, Send

from tests.eventually import eventually_async
from tests.server.serving import begin, echo, post, running
from webhook.server.connection_limiter import ConnectionLimiter
from webhook.server.limit import InFlightLimit


class _Held:
    """An app that reads a request's body, tells so, and answers when it may."""

    def __init__(self) -> None:
        self.came = threading.Semaphore(0)
        self.may = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        messages = [await receive()]
        while messages[-1].get("more_body"):
            messages.append(await receive())
        if messages[-1]["type"] == "http.disconnect":
            return
        self.came.release()
        await eventually_async("it may answer", self.may.is_set)

        async def received() -> Message:
            return messages.pop(0)

        await echo(scope, received, send)


def test_a_request_beyond_the_limit_is_told_to_retry() -> None:
    """Two are in flight: the third gets 503 with Retry-After 1, and they get their answers."""
    app = _Held()
    refused: list[str] = []
    limiter = ConnectionLimiter(1000)
    limit = InFlightLimit(
        app, 2, waiting=lambda: limiter.busy, on_refused=lambda: refused.append("refused")
    )
    with running(limit, limiter=limiter) as server:
        first, second, third = (server.connect() for _ in range(3))
        for connection in (first, second):
            begin(connection, b"ok")
            app.came.acquire()
        assert limit.in_flight == 2
        response = post(third, b"body")
        assert (response.status, response.headers["Retry-After"]) == (503, "1")
        assert b"try again" in response.read()
        assert refused == ["refused"]
        app.may.set()
        for connection in (first, second):
            assert connection.getresponse().read() == b"ok"
        # The same connection serves on, once there is room.
        assert post(third, b"again").read() == b"again"
        for connection in (first, second, third):
            connection.close()


def test_slow_bodies_do_not_displace_other_requests() -> None:
    """Or a few slow senders would keep everybody out."""
    limiter = ConnectionLimiter(1000)
    limit = InFlightLimit(echo, 1, waiting=lambda: limiter.busy)
    with running(limit, limiter=limiter) as server:
        slow = [server.connect() for _ in range(5)]
        for connection in slow:
            begin(connection, b"o")
        quick = server.connect()
        assert post(quick, b"quick").read() == b"quick"
        for connection in slow:
            connection.send(b"k")
            assert connection.getresponse().read() == b"ok"
            connection.close()
        quick.close()


def test_there_may_be_another_reason_to_take_no_more() -> None:
    """Such as bodies that fill the memory."""
    full = True
    with running(InFlightLimit(echo, 1, waiting=int, full=lambda: full)) as server:
        connection = server.connect()
        response = post(connection, b"")
        assert response.status == 503
        response.read()
        full = False
        assert post(connection, b"now").read() == b"now"
        connection.close()


def test_a_request_that_fails_leaves_its_place() -> None:
    """An exception in the app is one request less in flight, or the limit would close for good."""

    async def failing(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise ZeroDivisionError

    limit = InFlightLimit(failing, 1, waiting=int)
    with running(limit) as server:
        for _ in range(3):
            connection = server.connect()
            assert post(connection, b"").status == 500
            connection.close()
    assert limit.in_flight == 0


def test_other_scopes_pass() -> None:
    seen: list[str] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(scope["type"])

    async def never() -> Message:
        raise AssertionError

    async def nowhere(_message: Message) -> None:
        raise AssertionError

    asyncio.run(InFlightLimit(app, 0, waiting=int)({"type": "lifespan"}, never, nowhere))
    assert seen == ["lifespan"]
