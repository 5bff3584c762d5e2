"""HTTP/1.1 on one connection: uvicorn's protocol, with limits."""

from __future__ import annotations

import logging
import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import httptools
from starlette.responses import PlainTextResponse
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from webhook.server.connection_limiter import Stage
from webhook.server.gather import GatheringTransport
from webhook.server.tls import refuse_caller

if TYPE_CHECKING:
    import asyncio

    import uvicorn
    from uvicorn.server import ServerState

    from webhook.server.connection_limiter import Connection, ConnectionLimiter

_logger = logging.getLogger(__name__)

# Above the API server's 90 s idle time, so that it closes first: a request that meets a closing
# connection is not retried.
KEEP_ALIVE_SECONDS: Final = 120
# Seconds from a request's first byte to the end of its headers, which are a few hundred bytes.
HEAD_SECONDS: Final = 10
# Bytes of headers, of the data between two parts of a body, and of trailers.
HEAD_BYTES: Final = 16 * 1024
# Headers of a request. An API server sends six; each costs the app and uvicorn microseconds.
MOST_HEADERS: Final = 100
# Seconds to the end of the body. Above the app's own limit, after which it answers 408.
BODY_SECONDS: Final = 45
# Bytes of a body that may arrive after its answer. They are dropped, but the connection must stay
# open so that the client reads the answer. The API server may send a pod of 3 MiB in this way,
# where Go writes each < of one byte as six.
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
    """A request arrived before the previous answer was written."""


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol for one client of a listener.

    Time limits are deadlines that the limiter checks periodically: a timer per request would cost
    more than all other work.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        loop: asyncio.AbstractEventLoop,
        *,
        limiter: ConnectionLimiter,
        client: Connection,
        callers: frozenset[str],
    ) -> None:
        super().__init__(config, server_state, {}, loop)
        self._limiter = limiter
        self._client = client
        self._callers = callers
        # Bytes since a request started or since its last part of the body. Bytes in the same chunk
        # as a part count too, whether they precede or follow it.
        self._beside_body = 0
        self._received = 0
        self._body_came = False
        # True after the end of a request's headers: further headers are trailers.
        self._in_body = False
        self._surplus = 0
        self._answer_to_fault = _INVALID

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for a request; check the client's certificate."""
        client = self._client
        below = client.transport = client.transport or transport
        # By default asyncio reports a full buffer only above 64 KiB.
        below.set_write_buffer_limits(high=0)
        self._gathering = GatheringTransport(
            transport, self.loop, below=below, report=partial(self._limiter.left_unwritten, client)
        )
        client.on_writable = self._gathering.writable
        super().connection_made(cast("asyncio.Transport", self._gathering))
        self._limiter.advance(client, Stage.NEW)
        self._wait_for_a_request()
        if self._callers:
            peer = transport.get_extra_info("peercert") or {}
            refusal = refuse_caller(self._callers, peer)
            if refusal:
                answer = PlainTextResponse(f"{refusal}\n", 403, {"connection": "close"})
                self.app = cast("Any", answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the limiter, and break reference cycles."""
        self._limiter.release(self._client)
        self._client.on_writable = lambda _writable: None
        self._gathering.drop()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Record that the peer accepts no more data; TLS calls Connection.on_writable instead."""
        super().pause_writing()
        self._gathering.writable(False)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._gathering.writable(True)

    def timeout_keep_alive_handler(self) -> None:
        """Do nothing: the limiter closes idle connections."""

    def data_received(self, data: bytes) -> None:
        """Parse the data; refuse invalid requests, and requests without an end."""
        if self.transport.is_closing():
            return
        self._received = len(data)
        self._body_came = False
        self._beside_body += self._received
        try:
            self.parser.feed_data(data)
        except _FAULTS as error:
            if isinstance(error.__context__, _Pipelined):
                self._limiter.end(self._client, "pipelined")
            else:
                self._refuse(self._answer_to_fault)
        else:
            if self._beside_body > HEAD_BYTES:
                self._refuse(_TOO_LARGE)

    def on_message_begin(self) -> None:
        if self._gathering.pending or not (self.cycle is None or self.cycle.response_complete):
            # The API server does not pipeline, and each such request would have to be buffered.
            raise _Pipelined
        client = self._client
        client.since = self.loop.time()
        client.deadline = client.since + HEAD_SECONDS
        client.reading = True
        self._in_body = False
        self._surplus = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header; trailers are ignored."""
        if not self._in_body:
            if len(self.headers) >= MOST_HEADERS:
                self._reject(_TOO_MANY)
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Check complete headers, and call the app."""
        if self.parser.get_http_version() not in _VERSIONS:
            self._reject(_INVALID)
        if self.parser.should_upgrade():
            self._reject(_UPGRADE)
        # The bytes may include a part of the body, so the exact count is only needed here.
        if self._beside_body > HEAD_BYTES:
            sizes = (len(name) + len(value) + len(b": \r\n") for name, value in self.headers)
            if len(self.url) + sum(sizes) > HEAD_BYTES:
                self._reject(_TOO_LARGE)
        self._client.deadline = self._client.since + BODY_SECONDS
        self._in_body = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._body_came:
            self._body_came = True
            self._beside_body = self._received
        self._beside_body -= len(body)
        if not self.cycle.response_complete:
            super().on_body(body)
            self._limiter.took(self._client, len(body))
        else:
            self._surplus += len(body)
            if self._surplus > SURPLUS_BYTES:
                self._limiter.end(self._client, "large")

    def on_message_complete(self) -> None:
        self._client.reading = False
        self._beside_body = 0
        super().on_message_complete()
        self._settle()

    def on_response_complete(self) -> None:
        self._limiter.advance(self._client, Stage.ANSWERED)
        self._limiter.freed(self._client)
        super().on_response_complete()
        self._settle()

    def _settle(self) -> None:
        """Update the state after a complete request or answer; after both, wait for the next."""
        client = self._client
        busy = not (client.reading or self.cycle.response_complete)
        self._limiter.mark(client, busy=busy)
        if busy:
            client.deadline = math.inf
        elif not client.reading:
            self._wait_for_a_request()

    def _wait_for_a_request(self) -> None:
        self._client.since = self.loop.time()
        self._client.deadline = self._client.since + KEEP_ALIVE_SECONDS

    def _reject(self, answer: bytes) -> NoReturn:
        """Stop the parser, within one of its callbacks."""
        self._answer_to_fault = answer
        raise httptools.HttpParserError

    def _refuse(self, answer: bytes) -> None:
        """Answer without the app, unless an answer has started, and close the connection."""
        _logger.debug("refused a request", extra={"answer": answer[9:12].decode()})
        self._limiter.refused()
        cycle = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(answer)
        self.transport.close()
        # The limiter closes a peer that neither reads nor closes.
        self._client.deadline = self.loop.time() + HEAD_SECONDS


_FAULTS: Final = (httptools.HttpParserError, httptools.HttpParserUpgrade)
