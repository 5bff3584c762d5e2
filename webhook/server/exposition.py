"""A process's metrics as Prometheus reads them."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Final

import prometheus_client
from prometheus_client import CollectorRegistry, Gauge, ProcessCollector
from prometheus_client.exposition import choose_encoder

if TYPE_CHECKING:
    from collections.abc import Callable

# Seconds from the beginning of one rendering to that of the next: each takes milliseconds, and
# whoever reaches the port may ask.
RENDER_PAUSE: Final = 0.1


class Exposition:
    """A registry of its own, with what the process itself uses on it already."""

    def __init__(self) -> None:
        # The `_created` series would double the exposition, and nobody reads them.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._ready = Gauge(
            "fairlead_ready", "Whether /readyz answers 200: 1 or 0.", registry=self.registry
        )
        self._turn = asyncio.Lock()
        self._began = -math.inf
        self._next: dict[str, asyncio.Task[bytes]] = {}

    def tell_ready(self, *, ready: bool) -> None:
        """Note whether every condition of the process is ready."""
        self._ready.set(ready)

    async def render(self, accept: str) -> tuple[bytes, str]:
        """Return the exposition that an Accept header asks for, and its content type.

        All who ask before a rendering begins share it.
        """
        encode, content_type = choose_encoder(accept)
        task = self._next.get(content_type)
        if task is None:
            task = asyncio.create_task(self._begin(encode, content_type))
            self._next[content_type] = task
        # Who goes away must not take it from the others.
        return await asyncio.shield(task), content_type

    async def _begin(
        self, encode: Callable[[CollectorRegistry], bytes], content_type: str
    ) -> bytes:
        loop = asyncio.get_running_loop()
        async with self._turn:
            await asyncio.sleep(self._began + RENDER_PAUSE - loop.time())
            self._began = loop.time()
            del self._next[content_type]
            return await asyncio.to_thread(encode, self.registry)
