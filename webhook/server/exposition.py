"""A process's metrics as Prometheus reads them."""

from __future__ import annotations

import asyncio

import prometheus_client
from prometheus_client import CollectorRegistry, Gauge, ProcessCollector
from prometheus_client.exposition import choose_encoder


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

    def tell_ready(self, *, ready: bool) -> None:
        """Note whether every condition of the process is ready."""
        self._ready.set(ready)

    async def render(self, accept: str) -> tuple[bytes, str]:
        """Return the exposition that an Accept header asks for, and its content type.

        Rendering takes milliseconds, so it is done on another thread.
        """
        encode, content_type = choose_encoder(accept)
        return await asyncio.to_thread(encode, self.registry), content_type
