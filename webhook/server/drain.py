"""The way out: unready at once, answering while endpoints change, then no more.

The API server retries no connection that is refused or breaks, so a server that leaves first
lets callers leave it: it answers as ever, each answer with `Connection: close`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from typing import TYPE_CHECKING

from webhook.server.readiness import Condition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_logger = logging.getLogger(__name__)


class Drain:
    """Whether the process is on its way out. Used on the event loop's thread only.

    `grace` is in seconds, and is meant to be longer than endpoints take to change.
    """

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._begun = asyncio.Event()
        self._cut = asyncio.Event()

    @property
    def draining(self) -> bool:
        """Whether the way out has begun."""
        return self._begun.is_set()

    @property
    def cut_short(self) -> bool:
        """Whether somebody would not wait."""
        return self._cut.is_set()

    def begin(self) -> None:
        """Begin the way out; called again, cut it short."""
        if self.draining:
            _logger.warning("told again to stop: ending at once")
            self._cut.set()
        else:
            _logger.info("draining", extra={"grace_seconds": self._grace})
            self._begun.set()

    async def grace_over(self) -> None:
        """Wait until the way out has begun and its grace time is over, or cut short."""
        await self._begun.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                await self._cut.wait()

    async def cut(self) -> None:
        """Wait until the way out is cut short, maybe for ever."""
        await self._cut.wait()

    def condition(self) -> Condition:
        """Not ready from the first signal on."""
        return Condition(not self.draining, "draining" if self.draining else "not draining")


@contextlib.contextmanager
def drain_on_signals(drain: Drain) -> Iterator[None]:
    """Let SIGTERM and SIGINT begin the drain, within a running loop on the main thread."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, drain.begin)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


class ClosingConnections:
    """ASGI middleware that adds `Connection: close` to every answer while draining.

    Without a `drain`, always.
    """

    def __init__(self, app: ASGIApp, drain: Drain | None = None) -> None:
        self._app = app
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and the answer back."""

        async def send_closing(message: Message) -> None:
            # Asked when the answer starts: the request may have come before the signal.
            closing = self._drain is None or self._drain.draining
            if closing and message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        await self._app(scope, receive, send_closing)
