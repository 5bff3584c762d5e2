"""A client for one request at a time over one kept connection, as lean as Python allows.

It makes requests beforehand and does not decode answers: what it costs is taken from the two cores
that are measured.
"""

from __future__ import annotations

import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_END_OF_HEADERS: Final = b"\r\n\r\n"
_LAST_CHUNK: Final = b"\r\n0\r\n\r\n"
_LENGTH: Final = b"\r\ncontent-length: "
_PATIENCE: Final = 60
AT_ONCE: Final = 8


class Connection:
    """One TLS connection to 127.0.0.1, kept open."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        plain = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = context.wrap_socket(plain, server_hostname="127.0.0.1")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send a request that post() made; the answer's status and body, chunked if it came so.

        Raises ConnectionError if the server hangs up.
        """
        self._socket.sendall(request)
        received = self._more(b"")
        while (end := received.find(_END_OF_HEADERS)) < 0:
            received = self._more(received)
        head = received[: end + 2].lower()
        body_at = end + len(_END_OF_HEADERS)
        status = int(head[9:12])
        if (found := head.find(_LENGTH)) >= 0:
            start = found + len(_LENGTH)
            length = int(head[start : head.index(b"\r\n", start)])
            while len(received) < body_at + length:
                received = self._more(received)
        else:
            # The line end before the first chunk is the headers' own.
            while not received.endswith(_LAST_CHUNK):
                received = self._more(received)
        return status, received[body_at:]

    def must(self, request: bytes, wanted: int = 200) -> bytes:
        """Ask, and return the body. Raises RuntimeError for another status."""
        status, body = self.ask(request)
        if status != wanted:
            raise RuntimeError(f"answered {status}: {body[:1000].decode(errors='replace')}")
        return body

    def _more(self, received: bytes) -> bytes:
        part = self._socket.recv(65536)
        if not part:
            raise ConnectionError(f"the server hung up after {len(received)} bytes")
        return received + part


def post(path: str, body: bytes, agent: str) -> bytes:
    """The bytes of a POST of JSON."""
    return _request("POST", path, "application/json", body, agent)


def patch(path: str, body: bytes, agent: str) -> bytes:
    """The bytes of a PATCH with a JSON merge patch."""
    return _request("PATCH", path, "application/merge-patch+json", body, agent)


def _request(method: str, path: str, content_type: str, body: bytes, agent: str) -> bytes:
    lines = (
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        f"User-Agent: {agent}",
        "Accept: application/json",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join(lines).encode() + _END_OF_HEADERS + body


def ask_all(
    connect: Callable[[], Connection], requests: Sequence[bytes], count: int = 0, wanted: int = 200
) -> None:
    """Send each request, or `count` in turn, over AT_ONCE connections. Raises RuntimeError."""

    def part(first: int) -> None:
        with connect() as connection:
            for request in islice(cycle(requests), first, count or len(requests), AT_ONCE):
                connection.must(request, wanted)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(part, range(AT_ONCE)))


def listens(port: int, authority: Path) -> bool:
    """Whether somebody serves TLS there, with a certificate of the authority."""
    try:
        with Connection(port, ssl.create_default_context(cafile=str(authority))):
            return True
    except OSError:
        return False
