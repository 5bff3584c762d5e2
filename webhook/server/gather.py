"""Writes an answer in one piece if the peer takes it, else as the peer takes it.

uvicorn writes head and body one after the other. Over TLS each becomes a record and a segment of
its own, and the API server is woken for each. And what a transport is given it encrypts and keeps
at once, several times over, however slowly the peer reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

# Bytes that are encrypted at once. OpenSSL keeps its buffer as large as it ever was, for as long
# as the connection lasts.
PIECE: Final = 32 * 1024


class GatheringTransport:
    """A transport that passes on at the end of a turn of the loop what was written in it.

    What the peer does not take waits here, unencrypted. `below` is the connection itself, whose
    buffer tells whether the peer takes more; `report` is called with the number of bytes that are
    not written yet, whenever that may have changed.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        *,
        below: asyncio.WriteTransport,
        report: Callable[[int], None],
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._below = below
        self._report = report
        self._parts: list[bytes] = []
        # What is being written, and how many bytes of it were passed on.
        self._data = b""
        self._passed = 0
        self._closing = False

    @property
    def pending(self) -> bool:
        """Whether something is not written yet."""
        return bool(self._parts or self._data or self._below.get_write_buffer_size())

    def write(self, data: bytes) -> None:
        """Keep the data until the turn ends."""
        if self._closing:
            return
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        """Pass on what is kept, then close; at once, if the peer takes it."""
        if not self._closing:
            self._closing = True
            self._flush()

    def drop(self) -> None:
        """Let go of what is kept, and of who is told: the connection is lost."""
        self._closing = True
        self._parts.clear()
        self._data, self._passed = b"", 0
        self._report = lambda _count: None

    def is_closing(self) -> bool:
        """Return whether nothing more is written."""
        return self._closing or self._transport.is_closing()

    def writable(self, more: bool) -> None:
        """Take note that the connection has written all that it had, or cannot."""
        if more:
            # Not at once: asyncio is in the midst of writing, and were the connection found lost
            # by what is written now, it would say so twice.
            self._loop.call_soon(self._flush)
        else:
            self._tell()

    def _flush(self) -> None:
        if self._parts:
            self._data = b"".join((self._data[self._passed :], *self._parts))
            self._passed = 0
            self._parts.clear()
        if self._data:
            self._pass_on()
        if self._closing and not self._data and not self._transport.is_closing():
            self._transport.close()
        self._tell()

    def _pass_on(self) -> None:
        size = len(self._data)
        # Writing calls `writable` where the peer takes no more.
        while self._passed < size and not self._below.get_write_buffer_size():
            if self._is_lost():
                break
            piece = self._data[self._passed : self._passed + PIECE]
            self._passed += len(piece)
            self._transport.write(piece)
        if self._passed == size or self._is_lost():
            self._data, self._passed = b"", 0

    def _is_lost(self) -> bool:
        # TLS hears a turn of the loop later that the connection below it was ended.
        return self._transport.is_closing() or self._below.is_closing()

    def _tell(self) -> None:
        self._report(len(self._data) + self._below.get_write_buffer_size())

    def __getattr__(self, name: str) -> Any:
        """Whatever else a transport does, the transport does."""
        return getattr(self._transport, name)
