"""Graceful shutdown: unready at once, still answering while endpoints change.

The API server does not retry a connection that is refused or breaks. So the server first lets
clients leave: it continues to answer, with `Connection: close` in each answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from webhook.server.readiness import Condition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_logger = logging.getLogger(__name__)


@dataclass(eq=False, repr=False, slots=True)
class Drain:
    """The state of a graceful shutdown. Used only on the event loop's thread.

    `grace` is in seconds, and should exceed the time in which endpoints are updated.
    """

    grace: float
    _begun: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _cut: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    @property
    def draining(self) -> bool:
        """True after the shutdown has started."""
        return self._begun.is_set()

    @property
    def cut_short(self) -> bool:
        """True if a second signal arrived."""
        return self._cut.is_set()

    def begin(self) -> None:
        """Start the shutdown; a second call cuts it short."""
        if self.draining:
            _logger.warning("second signal: stopping at once")
            self._cut.set()
        else:
            _logger.info("draining", extra={"grace_seconds": self.grace})
            self._begun.set()

    async def grace_over(self) -> None:
        """Wait until the shutdown has started and its grace period is over or cut short."""
        await self._begun.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.grace):
                await self._cut.wait()

    async def cut(self) -> None:
        """Wait until the shutdown is cut short, possibly forever."""
        await self._cut.wait()

    def condition(self) -> Condition:
        """Return not ready after the first signal."""
        return Condition(not self.draining, "draining" if self.draining else "not draining")


@contextlib.contextmanager
def drain_on_signals(drain: Drain) -> Iterator[None]:
    """Start the drain on SIGTERM and SIGINT, within a running loop on the main thread."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, drain.begin)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@dataclass(eq=False, repr=False, slots=True)
class ClosingConnections:
    """ASGI middleware that adds `Connection: close` to every answer while draining.

    Without a `drain`, it always does.
    """

    app: ASGIApp
    drain: Drain | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_closing(message: Message) -> None:
            # Checked when the answer starts: the request may be older than the signal.
            closing = self.drain is None or self.drain.draining
            if closing and message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        await self.app(scope, receive, send_closing)
