"""An HTTP server on loopback that does what a real API server cannot be made to do."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlsplit

from certs.authority import new_authority
from tests.eventually import eventually_async
from webhook.api_paths import CollectionPath
from webhook.kube.client import Client
from webhook.kube.config import load

T = TypeVar("T")

# Paths for tests to which it does not matter what is there.
THINGS: Final = CollectionPath("v1", "things")
THING: Final = THINGS.path_of("b")


@dataclass(frozen=True)
class Request:
    """One request as it came; header names in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") == "1"


class Answer:
    """Writes one answer; each connection carries only one."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def json(self, body: object, status: int = 200, **headers: str) -> None:
        await self.raw(json.dumps(body).encode(), status, **headers)

    async def status(self, code: int, reason: str, message: str, **headers: str) -> None:
        """A refusal, as the API server words it."""
        body = {"kind": "Status", "code": code, "reason": reason, "message": message}
        await self.json(body, code, **headers)

    async def raw(self, body: bytes, status: int = 200, **headers: str) -> None:
        await self._head(status, {**headers, "Content-Length": str(len(body))})
        self._writer.write(body)
        await self._writer.drain()

    async def begin(self) -> None:
        await self._head(200, {"Transfer-Encoding": "chunked"})

    async def event(self, type: str, seen: object) -> None:  # noqa: A002 (the field's name)
        await self.chunk(json.dumps({"type": type, "object": seen}).encode() + b"\n")

    async def chunk(self, data: bytes) -> None:
        self._writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await self._writer.drain()

    async def end(self) -> None:
        """The proper end of an answer that goes on; without it the connection just breaks."""
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def _head(self, status: int, headers: dict[str, str]) -> None:
        names = {"Content-Type": "application/json", "Connection": "close", **headers}
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in names.items()]
        self._writer.write(f"HTTP/1.1 {status} X\r\n".encode())
        self._writer.write("\r\n".join([*lines, "", ""]).encode())
        await self._writer.drain()


@dataclass
class FakeApi:
    """Every request is noted, and answered by `handler`."""

    handler: Callable[[Request, Answer], Awaitable[None]]
    requests: list[Request] = field(default_factory=list)
    url: str = ""

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            method, target, _ = first.split(" ")
            headers = {name.lower(): value for name, value in (x.split(": ", 1) for x in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            parts = urlsplit(target)
            request = Request(method, parts.path, dict(parse_qsl(parts.query)), headers, body)
            self.requests.append(request)
            await self.handler(request, Answer(writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away
        finally:
            writer.close()


@asynccontextmanager
async def fake_api(
    handler: Callable[[Request, Answer], Awaitable[None]],
    *,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[FakeApi]:
    """Serve on a free port of loopback, in plain text or by TLS."""
    api = FakeApi(handler)
    open_connections: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_connections[writer] = asyncio.create_task(api.connection(reader, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    host, port = server.sockets[0].getsockname()
    api.url = f"{'https' if tls else 'http'}://{host}:{port}"
    try:
        yield api
    finally:
        server.close()
        for _ in range(10):
            await asyncio.sleep(0)  # what was accepted just now becomes a connection
        for writer, task in open_connections.items():
            task.cancel()
            writer.transport.abort()
        failures = await asyncio.gather(*open_connections.values(), return_exceptions=True)
        await server.wait_closed()
    for failure in failures:
        if isinstance(failure, Exception):
            raise failure


@cache
def _authority() -> str:
    """An authority that signs nothing: without one, each client loads the system's for 50 ms."""
    pair = new_authority("nobody", datetime.now(UTC))
    return base64.b64encode(pair.certificate).decode()


def write_kubeconfig(folder: Path, server: str, **user: Any) -> Path:
    cluster = {"server": server}
    if server.startswith("http:"):
        cluster["certificate-authority-data"] = _authority()
    file = folder / "kubeconfig"
    file.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "test",
                "clusters": [{"name": "test", "cluster": cluster}],
                "users": [{"name": "test", "user": user}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            }
        )
    )
    return file


def client_of(api: FakeApi, folder: Path, *, timeout: float = 60.0, **user: Any) -> Client:
    file = write_kubeconfig(folder, api.url, **user)
    return Client(lambda: load(file, environ={}), timeout=timeout)


def answering(
    objects: Mapping[str, Any], forbidden: Collection[str] = ()
) -> Callable[[Request, Answer], Awaitable[None]]:
    """Answers by path: an object, a list of objects, or a text; 404 for what is not there."""

    async def handle(request: Request, answer: Answer) -> None:
        found = objects.get(request.path)
        if request.path in forbidden:
            await answer.status(403, "Forbidden", f"you may not read {request.path}")
        elif found is None:
            await answer.status(404, "NotFound", request.path)
        elif isinstance(found, str):
            await answer.raw(found.encode())
        elif isinstance(found, list | tuple):
            await answer.json({"metadata": {"resourceVersion": "1"}, "items": list(found)})
        else:
            await answer.json(found)

    return handle


def answer_of(
    objects: Mapping[str, Any],
    folder: Path,
    question: Callable[[Client], Awaitable[T]],
    forbidden: Collection[str] = (),
    paths: list[str] | None = None,
) -> T:
    """What a question comes to beside an API server with these objects; its `paths` are kept."""

    async def run() -> T:
        async with (
            fake_api(answering(objects, forbidden)) as api,
            client_of(api, folder) as client,
        ):
            try:
                return await question(client)
            finally:
                if paths is not None:
                    paths.extend(request.path for request in api.requests)

    return asyncio.run(run())


async def until(condition: Callable[[], bool]) -> None:
    """Let other tasks run until `condition` holds."""
    await eventually_async("what the test waits for", condition, period=0.001)
