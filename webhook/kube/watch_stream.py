"""The events of a watch's stream, line by line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from webhook.errors import ClusterError
from webhook.kube.answers import decode, from_status
from webhook.kube.cache import version_of

if TYPE_CHECKING:
    from webhook.kube.failure_text import Call

# Bytes. Far above what etcd stores (1.5 MiB per object, several times more as JSON). A server that
# never ends a line must not exhaust the memory.
LINE_MAX_BYTES: Final = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Event:
    """A watch event. A bookmark has only a version, up to which the watch is complete."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: dict[str, Any]
    resource_version: str


def parse_event(line: bytes, call: Call) -> Event:
    """Parse one line. Raises ClusterError for an ERROR event or an invalid line."""
    event = decode(line, call)
    kind, raw = event.get("type"), event.get("object")
    if not isinstance(raw, dict):
        raise ClusterError(f"cannot {call}: an event without an object came")
    if kind == "ERROR":
        raise from_status(raw, call)
    if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
        raise ClusterError(f"cannot {call}: an event of the unknown type {kind!r} came")
    version = version_of(raw)
    if not version:
        raise ClusterError(f"cannot {call}: an event without a resourceVersion came")
    return Event(kind, raw, version)


class Lines:
    """The lines of one stream. A line must end in a newline."""

    def __init__(self, *, longest: int = LINE_MAX_BYTES) -> None:
        self._longest = longest
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes, without their newlines.

        Raises ClusterError if a line exceeds `longest` bytes.
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
        """Record the end of the stream. Raises ClusterError if a line is incomplete."""
        if self._rest:
            raise ClusterError(f"the stream broke off within a line, after {len(self._rest)} bytes")
