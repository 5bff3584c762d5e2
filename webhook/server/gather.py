"""Write an answer at once, or in parts to a slow reader.

uvicorn writes head and body one after the other. Over TLS each becomes a separate record and
segment, and wakes the API server. Also, a transport encrypts and buffers its input at once, several
times over, however slowly the peer reads.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

# Bytes to encrypt at once. OpenSSL's buffer never shrinks during a connection.
PIECE: Final = 32 * 1024


@dataclass(eq=False, repr=False, slots=True)
class GatheringTransport:
    """A transport that passes on its input at the end of an iteration of the event loop.

    Data that the peer does not accept waits here, unencrypted. `below` is the connection itself,
    whose buffer shows whether the peer accepts more; `report` is called with the number of
    unwritten bytes whenever it may have changed.
    """

    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    _: KW_ONLY
    below: asyncio.WriteTransport
    report: Callable[[int], None]
    _parts: list[bytes] = field(default_factory=list, init=False)
    # The data that is being written, and the number of bytes that were passed on.
    _data: bytes = field(default=b"", init=False)
    _passed: int = field(default=0, init=False)
    _closing: bool = field(default=False, init=False)

    @property
    def pending(self) -> bool:
        """True if some data is not written yet."""
        return bool(self._parts or self._data or self.below.get_write_buffer_size())

    def write(self, data: bytes) -> None:
        """Buffer the data until the end of the iteration."""
        if self._closing:
            return
        if not self._parts:
            self.loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        """Pass on the buffered data, then close; at once, if the peer accepts it."""
        if not self._closing:
            self._closing = True
            self._flush()

    def drop(self) -> None:
        """Discard the buffer and the callback, because the connection is lost."""
        self._closing = True
        self._parts.clear()
        self._data, self._passed = b"", 0
        self.report = lambda _count: None

    def is_closing(self) -> bool:
        """Return True if no more data is accepted."""
        return self._closing or self.transport.is_closing()

    def writable(self, more: bool) -> None:
        """Handle a change: the connection has written all its data, or cannot write."""
        if more:
            # Not at once: asyncio is in the middle of a write. If this write found the connection
            # lost, asyncio would report the loss twice.
            self.loop.call_soon(self._flush)
        else:
            self._report_size()

    def _flush(self) -> None:
        if self._parts:
            self._data = b"".join((self._data[self._passed :], *self._parts))
            self._passed = 0
            self._parts.clear()
        if self._data:
            self._pass_on()
        if self._closing and not self._data and not self.transport.is_closing():
            self.transport.close()
        self._report_size()

    def _pass_on(self) -> None:
        size = len(self._data)
        # A write calls `writable` if the peer accepts no more.
        while self._passed < size and not self.below.get_write_buffer_size():
            if self._is_lost():
                break
            piece = self._data[self._passed : self._passed + PIECE]
            self._passed += len(piece)
            self.transport.write(piece)
        if self._passed == size or self._is_lost():
            self._data, self._passed = b"", 0

    def _is_lost(self) -> bool:
        # TLS notices one iteration later that the connection below it has ended.
        return self.transport.is_closing() or self.below.is_closing()

    def _report_size(self) -> None:
        self.report(len(self._data) + self.below.get_write_buffer_size())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)
