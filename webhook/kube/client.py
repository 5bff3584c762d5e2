"""Requests to the API server: raw objects, typed errors, limited waits."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

import aiohttp

from webhook.api_paths import ApiPath, ObjectPath
from webhook.errors import ClusterError
from webhook.kube.answers import decode, refusal, transport_errors
from webhook.kube.config import load
from webhook.kube.failing_writes import FailingWrites
from webhook.kube.failure_text import Call
from webhook.kube.throttling import retry_throttled
from webhook.kube.transport import JSON, Transport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from kubernetes.aio.client.configuration import Configuration

    from webhook.api_paths import CollectionPath

T = TypeVar("T")
PatchType = Literal["json", "merge", "strategic", "apply"]

_PATCH_TYPES: Final[dict[PatchType, str]] = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_CONNECT: Final = 5.0  # seconds
USUAL_TIMEOUT: Final = 30.0  # seconds
# Objects of one page of a list, which is decoded in one turn of the event loop: 100 objects of
# 10 KB take 5 ms, and 500 take 100 ms, because Python then looks for garbage several times.
A_PAGE: Final = 100
# Bytes of a page of several objects. Decoded it takes up to six times as much, and an object may
# have a megabyte and a half, whoever has written it.
LONGEST_PAGE: Final = 8 * 2**20
# Lists that may expire before one of them raises an error.
_LISTS_BEFORE_ERROR: Final = 3
# Media types for metadata only, for example of ConfigMaps, which may have a megabyte of data each.
METADATA_LIST: Final = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"
METADATA: Final = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{JSON}"


def connect(
    kubeconfig: Path | None = None,
    *,
    context: str = "",
    environ: Mapping[str, str] = os.environ,
    on_answer: Callable[[str, int | None], None] | None = None,
    timeout: float = USUAL_TIMEOUT,
    waits: bool = False,
    trace: Callable[[str], None] | None = None,
) -> Client:
    """Return a client for `kubeconfig`, else $KUBECONFIG, else the cluster of this pod.

    `context` overrides the kubeconfig's current context. Use it as `async with connect() as
    client`: nothing is read or opened before that.
    """
    credentials = partial(load, kubeconfig, context=context, environ=environ)
    return Client(credentials, on_answer=on_answer, timeout=timeout, waits=waits, trace=trace)


class Client:
    """Calls the API server with raw dicts, as in JSON, at paths of checked parts.

    `credentials` reads address and credentials, on entry and again whenever the server answers 401.
    `timeout` limits a call, in seconds; the server gets a slightly shorter limit. Every call raises
    ClusterError, with the status if there was an answer. The 401 is retried here; with `waits` also
    429, which is right where nothing else limits the calls: other callers know what may be
    repeated, and respect `retry_after`. `trace` gets a line about each request. `on_answer` is
    called after each call except a stream: with its HTTP verb, and the status, or None without an
    answer. `failing_writes` knows for how long writes have failed.
    """

    def __init__(
        self,
        credentials: Callable[[], Awaitable[Configuration]],
        *,
        timeout: float = USUAL_TIMEOUT,
        on_answer: Callable[[str, int | None], None] | None = None,
        waits: bool = False,
        trace: Callable[[str], None] | None = None,
    ) -> None:
        self._transport = Transport(credentials, trace)
        self._waits = waits
        self._timeout = timeout
        self._on_answer = on_answer
        self.failing_writes = FailingWrites()

    async def __aenter__(self) -> Self:
        """Read the credentials and trusted certificates. Nothing is sent yet."""
        await self._transport.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._transport.close()

    async def get(
        self,
        path: ApiPath,
        *,
        query: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (the server gets it too)
        accept: str = JSON,
    ) -> dict[str, Any]:
        """Read the object, or one page of the list, at `path`; `accept` is the media type."""
        return await self._call("GET", path, query=query, timeout=timeout, accept=accept)

    async def find(self, path: ApiPath) -> dict[str, Any] | None:
        """Read the object at `path`; None if there is none."""
        try:
            return await self.get(path)
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    async def resources(self, version: ApiPath) -> Sequence[Mapping[str, Any]]:
        """Return the resources of an API version by discovery; none if it is not served.

        All clients may read discovery. Raises ClusterError.
        """
        return (await self.find(version) or {}).get("resources") or ()

    async def create(
        self,
        path: CollectionPath | ObjectPath,
        body: Mapping[str, Any],
        *,
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Create `body` in the collection (or as the subresource) at `path`; return the result."""
        return await self._call("POST", path, query=query, body=body)

    async def replace(
        self, path: ObjectPath, body: Mapping[str, Any], *, query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Replace the object at `path`; return the object as stored.

        With `metadata.resourceVersion` in `body`, only that version is replaced: otherwise the
        server answers 409 with the reason Conflict. Creating a name that exists is a 409 too, with
        the reason AlreadyExists.
        """
        return await self._call("PUT", path, query=query, body=body)

    async def patch(
        self,
        path: ObjectPath,
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
        path: ObjectPath,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Delete the object at `path`; `body` is DeleteOptions. Returns it, or a Status.

        No path of a collection is taken: the API server would delete all of it.
        """
        return await self._call("DELETE", path, query=query, body=body)

    async def list(
        self,
        path: CollectionPath,
        keep: Callable[[dict[str, Any]], T],
        *,
        query: Mapping[str, str] | None = None,
        page_size: int = A_PAGE,
        accept: str = JSON,
    ) -> Listing[T]:
        """Read the whole collection at `path` in pages; return the result of `keep` per object.

        Of objects that make a page of more than LONGEST_PAGE bytes a page has fewer.
        Objects in a list have no kind and apiVersion. Every answer is a page, also after the API
        server has dropped the list's position, which it does after some minutes.
        """
        for _ in range(_LISTS_BEFORE_ERROR - 1):
            try:
                return await self._collected(path, keep, query or {}, page_size, accept)
            except ClusterError as error:
                if error.status != HTTPStatus.GONE:
                    raise
        return await self._collected(path, keep, query or {}, page_size, accept)

    async def _collected(
        self,
        path: CollectionPath,
        keep: Callable[[dict[str, Any]], T],
        query: Mapping[str, str],
        page_size: int,
        accept: str,
    ) -> Listing[T]:
        items: list[T] = []
        oldest = ""
        pages = self.pages(path, query=query, page_size=page_size, accept=accept)
        async for page_items, version in pages:
            items.extend(map(keep, page_items))
            # All that is listed is at least as new as the first page: a watch from its version
            # misses nothing. If that version is gone too, the watch reports it.
            oldest = oldest or version
            # Holding two pages at a time would take twice the memory.
            del page_items
        return Listing(items, oldest)

    async def pages(
        self,
        path: CollectionPath,
        *,
        query: Mapping[str, str] | None = None,
        page_size: int = A_PAGE,
        accept: str = JSON,
    ) -> AsyncIterator[tuple[Sequence[dict[str, Any]], str]]:
        """Yield the collection at `path` page by page: objects, and the version of the page.

        Of objects that make a page of more than LONGEST_PAGE bytes a page has fewer.
        """
        position = ""
        expired = False
        limit = page_size
        while True:
            at = {"limit": str(limit), **({"continue": position} if position else {})}
            longest = LONGEST_PAGE if limit > 1 else None
            try:
                data = await self._fetch(
                    "GET", path, query={**(query or {}), **at}, accept=accept, longest=longest
                )
            except _TooLongError:
                limit = max(1, limit // 4)
                continue
            except ClusterError as error:
                # With the position that a 410 has, the list continues from the current state
                # (k8s.io/apimachinery, ListMeta.continue). It cannot expire before its first page.
                if error.status != HTTPStatus.GONE or not error.position or expired:
                    raise
                position, expired = error.position, True
                continue
            expired = False
            page = decode(data, Call("GET", path))
            if 2 * len(data) <= LONGEST_PAGE:
                limit = min(page_size, 2 * limit)
            metadata = page.get("metadata") or {}
            version = metadata.get("resourceVersion")
            if "items" not in page or not version:
                raise ClusterError(f"cannot {Call('GET', path)}: the answer is not a list")
            # Go serializes a nil slice as null.
            page_items = page["items"] or ()
            del data, page
            yield page_items, version
            del page_items
            position = metadata.get("continue") or ""
            if not position:
                return

    @asynccontextmanager
    async def stream(
        self, path: ApiPath, *, query: Mapping[str, str], silence: float | None, accept: str = JSON
    ) -> AsyncIterator[Callable[[], Awaitable[bytes]]]:
        """Open a streaming answer; yields a function for the next bytes, b"" at the regular end.

        The function raises ClusterError if the connection breaks, or after `silence` seconds
        without data; None: no limit, as for logs.
        """
        call = _checked("GET", path)
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT, sock_read=silence)

        async def begin() -> aiohttp.ClientResponse:
            with transport_errors(call):
                async with asyncio.timeout(self._timeout):
                    response = await self._transport.send(
                        "GET", path, query, accept=accept, limits=limits
                    )
                    if response.status < 300:
                        return response
                    data = await response.read()
            raise refusal(response.status, response.headers, data, call)

        response = await self._patiently(begin)
        try:

            async def read() -> bytes:
                with transport_errors(call):
                    return await response.content.readany()

            yield read
        finally:
            response.close()

    async def _call(
        self,
        method: str,
        path: ApiPath,
        *,
        query: Mapping[str, str] | None,
        body: object = None,
        content_type: str = JSON,
        timeout: float | None = None,  # noqa: ASYNC109 (see get)
        accept: str = JSON,
    ) -> dict[str, Any]:
        data = await self._fetch(
            method,
            path,
            query=query,
            body=body,
            content_type=content_type,
            timeout=timeout,
            accept=accept,
        )
        return decode(data, Call(method, path))

    async def _fetch(
        self,
        method: str,
        path: ApiPath,
        *,
        query: Mapping[str, str] | None,
        body: object = None,
        content_type: str = JSON,
        timeout: float | None = None,  # noqa: ASYNC109 (see get)
        accept: str = JSON,
        longest: int | None = None,
    ) -> bytes:
        """Return the answer. Raises _TooLongError after `longest` bytes of it; None: no limit."""
        call = _checked(method, path)
        seconds = self._timeout if timeout is None else timeout
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT)
        # The server times out first, and reports it: after our own limit the result is unknown.
        limited = {**(query or {}), "timeout": f"{int(seconds * 900)}ms"}

        async def ask() -> bytes:
            answered: int | None = None
            try:
                with transport_errors(call):
                    async with asyncio.timeout(seconds):
                        response = await self._transport.send(
                            method, path, limited, body, content_type, accept=accept, limits=limits
                        )
                        data = await _read(response, longest)
                answered = response.status
                if answered >= 300:
                    raise refusal(answered, response.headers, data or b"", call)
            except ClusterError as error:
                self.failing_writes.note(method, path, error)
                raise
            finally:
                if self._on_answer:
                    self._on_answer(method, answered)
            self.failing_writes.note(method, path, None)
            if data is None:
                raise _TooLongError
            return data

        return await self._patiently(ask)

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a call; if this client waits, it is made again after 429."""
        return await (retry_throttled(call, asyncio.sleep) if self._waits else call())


class _TooLongError(Exception):
    """A page that would take too much memory."""


async def _read(response: aiohttp.ClientResponse, longest: int | None) -> bytes | None:
    """Return the answer, or None if it is longer; the rest is not read then."""
    if longest is None:
        return await response.read()
    data = bytearray()
    while chunk := await response.content.readany():
        data += chunk
        if len(data) > longest:
            response.close()
            return None
    return bytes(data)


def _checked(method: str, path: ApiPath) -> Call:
    """Return the call, for messages. Raises TypeError for a text, which nothing has checked,
    and if a collection would be deleted.
    """
    if not isinstance(path, ObjectPath if method == "DELETE" else ApiPath):
        raise TypeError(f"{method} {path!r}: want a path of webhook.api_paths")
    return Call(method, path)


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """The kept objects of a list, and the version from which a watch misses no change of them."""

    items: list[T]
    resource_version: str
