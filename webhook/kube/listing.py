"""A whole collection, read page by page."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from webhook.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

T = TypeVar("T")


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
