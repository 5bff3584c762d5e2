"""Sheds load: with more requests in flight than a limit, the next is told to come again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_BODY: Final = b"too many requests in flight; try again in a second\n"
# The API server tries again by itself after this header's seconds, within the same request.
_HEADERS: Final = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", str(len(_BODY)).encode()),
    (b"retry-after", b"1"),
)


class InFlightLimit:
    """ASGI middleware that answers 503 with `Retry-After: 1` beyond `limit` requests at a time.

    `waiting` tells how many whole requests have come that are not answered, this one included: as
    the connections see it, for most of them wait before the app hears of them. Slow senders are
    not among them, lest they keep out whoever sends at once. `full` says whether there is another
    reason to take no more; `on_refused` is called for each request that was refused. The
    connection stays: a new handshake costs more than a decision.
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
        """How many requests the app has taken and not answered yet."""
        return self._in_flight

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it without reading its body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._waiting() > self._limit or self._full():
            await self._refuse(send)
            return

        async def receive_whole() -> Message:
            message = await receive()
            # Others may have come whole since this one began.
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
