"""HTTP on one connection: uvicorn's, with limits of size and time, and answers in one piece."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from webhook.server.gather import GatheringTransport
from webhook.server.refused import Refused

if TYPE_CHECKING:
    import asyncio

    import uvicorn
    from uvicorn.server import ServerState

    from webhook.server.callers import Callers
    from webhook.server.crowd import Crowd, Visit

# Above the API server's 90 s idle time, so that it closes first: a request that meets a closing
# connection is not retried.
KEEP_ALIVE_SECONDS: Final = 120
# From a request's first byte to the end of its headers, which are a few hundred bytes.
HEAD_SECONDS: Final = 10
HEAD_BYTES: Final = 16 * 1024
# And to the end of its body. Above what the app itself waits, which then answers 408.
BODY_SECONDS: Final = 45
_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol for one visit of a crowd.

    Its times are deadlines that the crowd looks at now and then: a timer for each request would
    cost more than the rest of it.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        loop: asyncio.AbstractEventLoop,
        *,
        crowd: Crowd,
        visit: Visit,
        callers: Callers | None,
    ) -> None:
        super().__init__(config, server_state, {}, loop)
        self._crowd = crowd
        self._visit = visit
        self._callers = callers
        # Bytes that have come of a request's headers; -1 while its body comes.
        self._head = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request; ask who the client is."""
        gathering = GatheringTransport(transport, self.loop)
        super().connection_made(cast("asyncio.Transport", gathering))
        self._visit.transport = transport
        self._wait_for_a_request()
        if self._callers:
            refusal = self._callers.refusal(transport.get_extra_info("peercert") or {})
            if refusal:
                self.app = cast("Any", Refused(403, refusal))

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the crowd."""
        self._crowd.gone(self._visit)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came; more than HEAD_BYTES and still no end of the headers is refused."""
        if self._head >= 0:
            self._head += len(data)
        super().data_received(data)
        if self._head > HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        """A request's first byte has come."""
        visit = self._visit
        visit.since = self.loop.time()
        visit.deadline = visit.since + HEAD_SECONDS
        visit.reading = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its headers are whole: the app is called."""
        self._visit.deadline = self._visit.since + BODY_SECONDS
        came, self._head = self._head, -1
        # With so much of the body, perhaps: only then is it worth counting.
        if came > HEAD_BYTES and _size(self.headers) > HEAD_BYTES:
            self.app = cast("Any", Refused(431, f"the headers have over {HEAD_BYTES} bytes"))
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some of its body has come."""
        if not self.cycle.response_complete:
            super().on_body(body)
            self._crowd.took(self._visit, len(body))

    def on_message_complete(self) -> None:
        """All of it has come."""
        self._visit.reading = False
        self._head = 0
        super().on_message_complete()
        self._settle()

    def on_response_complete(self) -> None:
        """It is answered."""
        self._visit.answered = True
        self._crowd.freed(self._visit)
        super().on_response_complete()
        self._settle()

    def _settle(self) -> None:
        """A request has come whole, or was answered: if both, wait for the next."""
        visit = self._visit
        busy = not (visit.reading or self.cycle.response_complete)
        self._crowd.mark(visit, busy=busy)
        if busy:
            visit.deadline = math.inf
        elif not visit.reading:
            self._wait_for_a_request()

    def _wait_for_a_request(self) -> None:
        self._visit.since = self.loop.time()
        self._visit.deadline = self._visit.since + KEEP_ALIVE_SECONDS


def _size(headers: list[tuple[bytes, bytes]]) -> int:
    return sum(len(name) + len(value) for name, value in headers)
