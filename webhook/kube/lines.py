"""Bytes as they come from the network, cut into whole lines of any length."""

from __future__ import annotations

from typing import Final

from webhook.errors import ClusterError

# Far above what etcd stores (1.5 MiB an object, some times more as JSON): a server that never
# ends a line must not take all our memory.
LONGEST: Final = 64 * 2**20


class Lines:
    """The lines of one stream. Only what ended in a newline is a line."""

    def __init__(self, *, longest: int = LONGEST) -> None:
        self._longest = longest
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without their newlines.

        Raises ClusterError if a line grows beyond `longest` bytes.
        """
        first, *others = chunk.split(b"\n")
        self._rest += first
        if not others:
            if len(self._rest) > self._longest:
                raise ClusterError(f"a line of over {self._longest} bytes came from the API server")
            return []
        whole = [bytes(self._rest), *others[:-1]]
        self._rest = bytearray(others[-1])
        return whole

    def finish(self) -> None:
        """The stream has ended: raises ClusterError if that was in the middle of a line."""
        if self._rest:
            raise ClusterError(f"the stream broke off within a line, after {len(self._rest)} bytes")
