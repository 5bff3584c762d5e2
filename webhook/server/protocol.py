"""HTTP on one connection: uvicorn's, with limits of size and time, and answers in one piece."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from webhook.server.connection_limiter import Stage
from webhook.server.gather import GatheringTransport

if TYPE_CHECKING:
    import asyncio

    import uvicorn
    from starlette.types import Receive, Scope, Send
    from uvicorn.server import ServerState

    from webhook.server.callers import Callers
    from webhook.server.connection_limiter import Connection, ConnectionLimiter

_logger = logging.getLogger(__name__)

# Above the API server's 90 s idle time, so that it closes first: a request that meets a closing
# connection is not retried.
KEEP_ALIVE_SECONDS: Final = 120
# From a request's first byte to the end of its headers, which are a few hundred bytes.
HEAD_SECONDS: Final = 10
# Of headers, of what stands between two parts of a body, and of trailers.
HEAD_BYTES: Final = 16 * 1024
# Headers of a request. An API server sends six; each costs the app and uvicorn some microseconds.
MOST_HEADERS: Final = 100
# And to the end of its body. Above what the app itself waits, which then answers 408.
BODY_SECONDS: Final = 45
# Bytes of a body that still come after its answer. They are dropped; but who sends them reads the
# answer only on a connection that is still there, and the API server may send a pod of 3 MiB that
# way, of which Go writes each < of one byte as six.
SURPLUS_BYTES: Final = 24 * 1024 * 1024


_VERSIONS: Final = ("1.1", "1.0")


def _refusal(status: bytes, reason: str) -> bytes:
    body = f"{reason}\n".encode()
    return (
        b"HTTP/1.1 %s\r\ncontent-type: text/plain; charset=utf-8\r\n"
        b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (status, len(body), body)
    )


_INVALID: Final = _refusal(b"400 Bad Request", "this is not a valid HTTP/1.1 request")
_UPGRADE: Final = _refusal(
    b"400 Bad Request", "Upgrade and CONNECT: not supported, send plain HTTP/1.1"
)
_TOO_LARGE: Final = _refusal(
    b"431 Request Header Fields Too Large",
    f"the path and the headers, or the trailers, have over {HEAD_BYTES} bytes",
)
_TOO_MANY: Final = _refusal(
    b"431 Request Header Fields Too Large", f"the request has over {MOST_HEADERS} headers"
)


class _Pipelined(Exception):
    """A request began to come before the answer to the one before was written."""


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol for one client of a limiter.

    Its times are deadlines that the limiter looks at now and then: a timer for each request would
    cost more than the rest of it.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        loop: asyncio.AbstractEventLoop,
        *,
        limiter: ConnectionLimiter,
        client: Connection,
        callers: Callers | None,
    ) -> None:
        super().__init__(config, server_state, {}, loop)
        self._crowd = limiter
        self._visit = client
        self._callers = callers
        # Bytes that have come since a request began, or since some of its body came; those that
        # came in one piece with it are counted, be they before it or after.
        self._beside_body = 0
        self._received = 0
        self._body_came = False
        # Whether a request's headers are whole: what looks like a header then is a trailer.
        self._in_body = False
        self._surplus = 0
        self._answer_to_fault = _INVALID

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request; ask who the client is."""
        client = self._visit
        below = client.transport = client.transport or transport
        # Else it says that it cannot write only with 64 KiB in its buffer.
        below.set_write_buffer_limits(high=0)
        self._gathering = GatheringTransport(
            transport, self.loop, below=below, report=self._note_unwritten
        )
        client.on_writable = self._gathering.writable
        super().connection_made(cast("asyncio.Transport", self._gathering))
        self._crowd.advance(client, Stage.NEW)
        self._wait_for_a_request()
        if self._callers:
            refusal = self._callers.refusal(transport.get_extra_info("peercert") or {})
            if refusal:
                self.app = cast("Any", _Refused(refusal))

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the limiter, with nothing that only a collection of garbage would find."""
        self._crowd.gone(self._visit)
        self._visit.on_writable = lambda _writable: None
        self._gathering.drop()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Note that the peer takes no more; over TLS, Connection.on_writable is told so instead."""
        super().pause_writing()
        self._gathering.writable(False)

    def resume_writing(self) -> None:
        """Write on."""
        super().resume_writing()
        self._gathering.writable(True)

    def timeout_keep_alive_handler(self) -> None:
        """Do nothing: the limiter looks after idle connections."""

    def data_received(self, data: bytes) -> None:
        """Parse what came, and refuse what is no request, or one without an end."""
        if self.transport.is_closing():
            return
        self._received = len(data)
        self._body_came = False
        self._beside_body += self._received
        try:
            self.parser.feed_data(data)
        except _FAULTS as error:
            if isinstance(error.__context__, _Pipelined):
                self._crowd.end(self._visit, "pipelined")
            else:
                self._refuse(self._answer_to_fault)
        else:
            if self._beside_body > HEAD_BYTES:
                self._refuse(_TOO_LARGE)

    def on_message_begin(self) -> None:
        """A request's first byte has come."""
        if self._gathering.pending or not (self.cycle is None or self.cycle.response_complete):
            # The API server never does that, and each such request would be kept until its turn.
            raise _Pipelined
        client = self._visit
        client.since = self.loop.time()
        client.deadline = client.since + HEAD_SECONDS
        client.reading = True
        self._in_body = False
        self._surplus = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; a trailer has no meaning here, and would be one more header."""
        if not self._in_body:
            if len(self.headers) >= MOST_HEADERS:
                self._reject(_TOO_MANY)
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Its headers are whole: the app is called."""
        if self.parser.get_http_version() not in _VERSIONS:
            self._reject(_INVALID)
        if self.parser.should_upgrade():
            self._reject(_UPGRADE)
        # With so much of the body, perhaps: only then is it worth counting.
        if self._beside_body > HEAD_BYTES and len(self.url) + _size(self.headers) > HEAD_BYTES:
            self._reject(_TOO_LARGE)
        self._visit.deadline = self._visit.since + BODY_SECONDS
        self._in_body = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some of its body has come."""
        if not self._body_came:
            self._body_came = True
            self._beside_body = self._received
        self._beside_body -= len(body)
        if not self.cycle.response_complete:
            super().on_body(body)
            self._crowd.took(self._visit, len(body))
        else:
            self._surplus += len(body)
            if self._surplus > SURPLUS_BYTES:
                self._crowd.end(self._visit, "large")

    def on_message_complete(self) -> None:
        """All of it has come."""
        self._visit.reading = False
        self._beside_body = 0
        super().on_message_complete()
        self._settle()

    def on_response_complete(self) -> None:
        """It is answered."""
        self._crowd.advance(self._visit, Stage.ANSWERED)
        self._crowd.freed(self._visit)
        super().on_response_complete()
        self._settle()

    def _settle(self) -> None:
        """A request has come whole, or was answered: if both, wait for the next."""
        client = self._visit
        busy = not (client.reading or self.cycle.response_complete)
        self._crowd.mark(client, busy=busy)
        if busy:
            client.deadline = math.inf
        elif not client.reading:
            self._wait_for_a_request()

    def _wait_for_a_request(self) -> None:
        self._visit.since = self.loop.time()
        self._visit.deadline = self._visit.since + KEEP_ALIVE_SECONDS

    def _note_unwritten(self, count: int) -> None:
        self._crowd.left_unwritten(self._visit, count)

    def _reject(self, answer: bytes) -> NoReturn:
        """Have the parser stop, within one of its callbacks."""
        self._answer_to_fault = answer
        raise httptools.HttpParserError

    def _refuse(self, answer: bytes) -> None:
        """Answer without the app, if nothing is answered yet, and close the connection."""
        _logger.debug("refused a request", extra={"answer": answer[9:12].decode()})
        self._crowd.refused()
        cycle = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(answer)
        self.transport.close()
        # A peer that neither reads nor closes is closed by the limiter.
        self._visit.deadline = self.loop.time() + HEAD_SECONDS


_FAULTS: Final = (httptools.HttpParserError, httptools.HttpParserUpgrade)


@dataclass(frozen=True, slots=True)
class _Refused:
    """An ASGI app that answers every request with 403 and a reason, and closes the connection."""

    reason: str

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer without reading the body."""
        body = f"{self.reason}\n".encode()
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _size(headers: list[tuple[bytes, bytes]]) -> int:
    return sum(len(name) + len(value) + len(b": \r\n") for name, value in headers)
