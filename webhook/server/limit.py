"""Load shedding: answer 503 above a number of requests in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_BODY: Final = b"too many requests in flight; try again in a second\n"
# The API server retries after this header's seconds, within the same request.
_HEADERS: Final = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", str(len(_BODY)).encode()),
    (b"retry-after", b"1"),
)


class InFlightLimit:
    """ASGI middleware that answers 503 with `Retry-After: 1` above `limit` concurrent requests.

    `waiting` returns the number of complete requests without an answer, including this one, as
    counted by the connections: most requests wait before the app is called. Slow senders do not
    count, so that they cannot block clients that send at once. `full` returns True for another
    reason to refuse; `on_refused` is called for each refused request. The connection stays open,
    because a new handshake costs more than a decision.
    """

    def __init__(
        self,
        app: ASGIApp,
        limit: int,
        *,
        waiting: Callable[[], int],
        full: Callable[[], bool] = lambda: False,
        on_refused: Callable[[], None] = lambda: None,
    ) -> None:
        self._app = app
        self._limit = limit
        self._waiting = waiting
        self._full = full
        self._on_refused = on_refused
        self._in_flight = 0

    @property
    def in_flight(self) -> int:
        """The number of requests that the app has started and not answered yet."""
        return self._in_flight

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, or refuse it without reading its body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._waiting() > self._limit or self._full():
            await self._refuse(send)
            return

        async def receive_whole() -> Message:
            message = await receive()
            # Other requests may have become complete since this one started.
            if not message.get("more_body", False) and self._waiting() > self._limit:
                await self._refuse(send)
                return {"type": "http.disconnect"}
            return message

        self._in_flight += 1
        try:
            await self._app(scope, receive_whole, send)
        finally:
            self._in_flight -= 1

    async def _refuse(self, send: Send) -> None:
        self._on_refused()
        await send({"type": "http.response.start", "status": 503, "headers": list(_HEADERS)})
        await send({"type": "http.response.body", "body": _BODY})
