"""Writes an answer's head and body as one: one TLS record, one packet, one wake-up of the caller.

uvicorn writes the two one after the other. Over TLS each becomes a record and a segment of its
own, and the API server is woken for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


class GatheringTransport:
    """A transport that passes on at the end of a turn of the loop what was written in it."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Keep the data until the turn ends."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        """Pass on what is kept, then close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._parts:
            data = b"".join(self._parts)
            self._parts.clear()
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        """Whatever else a transport does, the transport does."""
        return getattr(self._transport, name)
