"""Collections of a cluster that pages show, each kept current by one watch."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from typing import TypeVar

    from webhook.api_paths import CollectionPath
    from webhook.kube.cache import Cache, Change
    from webhook.kube.watches import Watch, Watches

    T = TypeVar("T")


class _Collection(NamedTuple):
    path: CollectionPath
    cache: Cache[Any]
    required: bool


class Watching:
    """The collections of one page. `version` rises with each change."""

    def __init__(self, watches: Watches) -> None:
        self.client = watches.client
        self._watches = watches
        self._collections: list[_Collection] = []
        self._begun: list[Watch[Any]] = []
        self.version = 0

    def add(self, path: CollectionPath, cache: Cache[T], *, may_lack: bool = False) -> Cache[T]:
        """Keep the cache current; `may_lack`: without what may not be read, or is not there."""
        cache.subscribe(self._on_change)
        self._collections.append(_Collection(path, cache, required=not may_lack))
        return cache

    def _on_change(self, _change: Change[Any]) -> None:
        self.version += 1

    def begin(self) -> bool:
        """Watch from now on. False if it does already."""
        if self._begun:
            return False
        self._begun = [
            self._watches.add(path, cache, required=required)
            for path, cache, required in self._collections
        ]
        return True

    @property
    def _needed(self) -> list[_Collection]:
        return [collection for collection in self._collections if collection.required]

    async def synced(self, seconds: float) -> None:
        """Return when all are read once, or after so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                for collection in self._needed:
                    await collection.cache.wait_synced()
        except TimeoutError:
            return

    @property
    def trouble(self) -> str:
        """Why what is shown may be old or missing; empty if it is current."""
        troubles = dict.fromkeys(watch.trouble() for watch in self._begun if watch.required)
        if text := "; ".join(filter(None, troubles)):
            return f"This may be old or not whole: {text}"
        if not all(collection.cache.synced for collection in self._needed):
            return "The cluster is not read yet."
        return ""
