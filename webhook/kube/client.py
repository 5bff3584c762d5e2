"""The API server's verbs: raw objects by path, errors typed, every wait limited."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

import aiohttp

from webhook.errors import ClusterError
from webhook.kube.answers import decode, refusal, transport_errors
from webhook.kube.config import load
from webhook.kube.transport import JSON, Transport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from kubernetes.aio.client.configuration import Configuration

T = TypeVar("T")
PatchType = Literal["json", "merge", "strategic", "apply"]

_PATCH_TYPES: Final[dict[PatchType, str]] = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_CONNECT: Final = 5.0  # seconds


def connect(
    kubeconfig: Path | None = None,
    *,
    context: str = "",
    environ: Mapping[str, str] = os.environ,
    timeout: float = 30.0,
    on_answer: Callable[[str, int | None], None] | None = None,
) -> Client:
    """A client for `kubeconfig`, else $KUBECONFIG, else the cluster that this pod runs in.

    `context` names one of the kubeconfig, instead of its current one. Use it as
    `async with connect() as client`: only then is anything read or opened.
    """
    credentials = partial(load, kubeconfig, context=context, environ=environ)
    return Client(credentials, timeout=timeout, on_answer=on_answer)


class Client:
    """Calls the API server with raw dicts, as JSON has them.

    `credentials` reads address and credentials, on entry and again whenever the server answers 401.
    `timeout` limits a call, in seconds; the server is told to give up a little earlier. Every call
    raises ClusterError, with the status if there was an answer. Nothing is retried here but that
    401: callers know what may be repeated, and heed `retry_after`. `on_answer` is called after each
    call but a stream: with its HTTP verb, and the status, or None if no answer came.
    """

    def __init__(
        self,
        credentials: Callable[[], Awaitable[Configuration]],
        *,
        timeout: float = 30.0,
        on_answer: Callable[[str, int | None], None] | None = None,
    ) -> None:
        self._transport = Transport(credentials)
        self._timeout = timeout
        self._on_answer = on_answer

    async def __aenter__(self) -> Self:
        """Read the credentials and the trusted certificates. Nothing is sent yet."""
        await self._transport.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close every connection."""
        await self._transport.close()

    async def get(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (the server is told of it too)
    ) -> dict[str, Any]:
        """Read the object, or one page of the list, at `path`."""
        return await self._call("GET", path, query=query, timeout=timeout)

    async def create(
        self, path: str, body: Mapping[str, Any], *, query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Create `body` in the collection at `path`; the answer is the object as stored."""
        return await self._call("POST", path, query=query, body=body)

    async def replace(
        self, path: str, body: Mapping[str, Any], *, query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Replace the object at `path`; the answer is the object as stored.

        With `metadata.resourceVersion` in `body` only that version is replaced: else the server
        answers 409 with the reason Conflict. A create of a name that is taken is 409 too, with the
        reason AlreadyExists.
        """
        return await self._call("PUT", path, query=query, body=body)

    async def patch(
        self,
        path: str,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        patch_type: PatchType,
        *,
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Patch the object at `path`; `apply` needs `fieldManager` in `query`."""
        content_type = _PATCH_TYPES[patch_type]
        return await self._call("PATCH", path, query=query, body=body, content_type=content_type)

    async def delete(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Delete the object at `path`; `body` are DeleteOptions. Answers it, or a Status."""
        return await self._call("DELETE", path, query=query, body=body)

    async def list(
        self,
        path: str,
        keep: Callable[[dict[str, Any]], T],
        *,
        query: Mapping[str, str] | None = None,
        page_size: int = 500,
    ) -> Listing[T]:
        """Read the whole collection at `path` by pages, and of each object what `keep` makes of it.

        Objects in a list have no kind and apiVersion. A list that expired half way begins anew.
        """
        return await list_all(self.get, path, keep, query=query or {}, page_size=page_size)

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str], silence: float | None
    ) -> AsyncIterator[Callable[[], Awaitable[bytes]]]:
        """Open an answer that goes on: gives a function for its next bytes, b"" once it ended well.

        That function raises ClusterError if the connection breaks, or if nothing came for `silence`
        seconds; None: however long that takes, as with logs.
        """
        where = f"GET {path}"
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT, sock_read=silence)
        with transport_errors(where):
            async with asyncio.timeout(self._timeout):
                response = await self._transport.send("GET", path, query, limits=limits)
        try:
            if response.status >= 300:
                with transport_errors(where):
                    async with asyncio.timeout(self._timeout):
                        data = await response.read()
                raise refusal(response.status, response.headers, data, where)

            async def read() -> bytes:
                with transport_errors(where):
                    return await response.content.readany()

            yield read
        finally:
            response.close()

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None,
        body: object = None,
        content_type: str = JSON,
        timeout: float | None = None,  # noqa: ASYNC109 (see get)
    ) -> dict[str, Any]:
        where = f"{method} {path}"
        seconds = self._timeout if timeout is None else timeout
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT)
        # The server gives up first, and says so: our own limit cannot tell what was done.
        limited = {**(query or {}), "timeout": f"{int(seconds * 900)}ms"}
        answered: int | None = None
        try:
            with transport_errors(where):
                async with asyncio.timeout(seconds):
                    response = await self._transport.send(
                        method, path, limited, body, content_type, limits=limits
                    )
                    data = await response.read()
            answered = response.status
        finally:
            if self._on_answer:
                self._on_answer(method, answered)
        if response.status >= 300:
            raise refusal(response.status, response.headers, data, where)
        return decode(data, where)


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """What was made of each object, and the version of the collection: a watch begins there."""

    items: list[T]
    resource_version: str


async def list_all(
    get: Callable[..., Awaitable[dict[str, Any]]],
    path: str,
    keep: Callable[[dict[str, Any]], T],
    *,
    query: Mapping[str, str],
    page_size: int,
) -> Listing[T]:
    """Read every page of `path` with `get(path, query=...)`; of each object only `keep` remains.

    The API server forgets where a list was after some minutes (410): then it is read again in one
    piece, which cannot expire. Raises ClusterError.
    """
    try:
        return await _pages(get, path, keep, {**query, "limit": str(page_size)})
    except ClusterError as error:
        if error.status != HTTPStatus.GONE:
            raise
    return await _pages(get, path, keep, query)


async def _pages(
    get: Callable[..., Awaitable[dict[str, Any]]],
    path: str,
    keep: Callable[[dict[str, Any]], T],
    query: Mapping[str, str],
) -> Listing[T]:
    items: list[T] = []
    position: dict[str, str] = {}
    while True:
        page = await get(path, query={**query, **position})
        metadata = page.get("metadata") or {}
        version = metadata.get("resourceVersion")
        if "items" not in page or not version:
            raise ClusterError(f"GET {path}: the answer is no list")
        # Go's nil slice is null in JSON.
        items.extend(keep(item) for item in page["items"] or ())
        if not metadata.get("continue"):
            return Listing(items, version)
        position = {"continue": metadata["continue"]}
