"""Load shedding: answer 503 above a number of requests in flight."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Final

from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The API server retries after this header's seconds, within the same request.
_REFUSAL: Final = PlainTextResponse(
    "too many requests in flight; try again in a second\n", 503, {"retry-after": "1"}
)


@dataclass(eq=False, repr=False, slots=True)
class InFlightLimit:
    """ASGI middleware that answers 503 with `Retry-After: 1` above `limit` concurrent requests.

    `waiting` returns the number of complete requests without an answer, including this one, as
    counted by the connections: most requests wait before the app is called. Slow senders do not
    count, so that they cannot block clients that send at once. `full` returns True for another
    reason to refuse; `on_refused` is called for each refused request. The connection stays open,
    because a new handshake costs more than a decision. `in_flight` is the number of requests that
    the app has started and not answered yet.
    """

    app: ASGIApp
    limit: int
    _: KW_ONLY
    waiting: Callable[[], int]
    full: Callable[[], bool] = lambda: False
    on_refused: Callable[[], None] = lambda: None
    in_flight: int = field(default=0, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.waiting() > self.limit or self.full():
            await self._refuse(scope, receive, send)
            return

        async def receive_whole() -> Message:
            message = await receive()
            # Other requests may have become complete since this one started.
            if not message.get("more_body", False) and self.waiting() > self.limit:
                await self._refuse(scope, receive, send)
                return {"type": "http.disconnect"}
            return message

        self.in_flight += 1
        try:
            await self.app(scope, receive_whole, send)
        finally:
            self.in_flight -= 1

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.on_refused()
        await _REFUSAL(scope, receive, send)
