"""One kept connection to the API server or a webhook, for a loop that has many of them."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from typing import Final, Self

# Below the 90 s after which the API server closes an idle connection.
_FRESH: Final = 45.0
# Connections that are opened at once.
_BATCH: Final = 50


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers as they came (names in lower case, line by line), and body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def all(self, name: str) -> list[str]:
        """The values of one header."""
        return [value for key, value in self.headers if key == name]


class Connection:
    """HTTP/1.1 over TLS, one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._used = asyncio.get_running_loop().time()
        self._closing = False

    @classmethod
    async def open(cls, host: str, port: int, context: ssl.SSLContext, name: str) -> Self:
        """Connect; `name` is what the certificate has to be for. Raises OSError."""
        reader, writer = await asyncio.open_connection(
            host, port, ssl=context, server_hostname=name, limit=2**20
        )
        return cls(reader, writer)

    @property
    def usable(self) -> bool:
        """Whether the other side will take another request on it."""
        age = asyncio.get_running_loop().time() - self._used
        return age < _FRESH and not self._closing and not self._reader.at_eof()

    async def ask(self, request: bytes) -> Answer:
        """Send the bytes of a request, and read the answer. Raises OSError or EOFError."""
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = tuple((key.lower(), value.strip()) for key, _, value in pairs)
        answer = Answer(int(head[0].split()[1]), headers, b"")
        body = await self._body(answer)
        self._used = asyncio.get_running_loop().time()
        self._closing = "close" in answer.all("connection")
        return Answer(answer.status, headers, body)

    async def _body(self, answer: Answer) -> bytes:
        if length := answer.all("content-length"):
            return await self._reader.readexactly(int(length[0]))
        parts = []
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            parts.append((await self._reader.readexactly(size + 2))[:-2])
        await self._reader.readuntil(b"\r\n")
        return b"".join(parts)

    def close(self) -> None:
        """Let it go without a goodbye, which nobody waits for."""
        self._writer.transport.abort()


class Pool:
    """Connections to one server: the last one that came free is taken first."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext, name: str) -> None:
        self._where = (host, port, context, name)
        self._idle: list[Connection] = []

    async def fill(self, count: int) -> None:
        """Open connections until so many are free, a few at a time. Raises OSError."""
        while (missing := count - len(self._idle)) > 0:
            batch = (Connection.open(*self._where) for _ in range(min(missing, _BATCH)))
            self._idle += await asyncio.gather(*batch)

    async def ask(self, request: bytes) -> Answer:
        """Ask on a connection that is free, or a new one. Raises OSError or EOFError."""
        connection = await self._free()
        try:
            answer = await connection.ask(request)
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return answer

    async def _free(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            connection.close()
        return await Connection.open(*self._where)

    def close(self) -> None:
        """Close those that are free."""
        while self._idle:
            self._idle.pop().close()


def post(path: str, body: bytes, host: str) -> bytes:
    """The bytes of a POST of JSON."""
    lines = (
        f"POST {path} HTTP/1.1",
        f"Host: {host}",
        "User-Agent: fairlead-chaos",
        "Accept: application/json",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
