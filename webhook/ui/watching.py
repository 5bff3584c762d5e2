"""Collections of a cluster that pages show, each kept current by one watch."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from webhook.kube.reflector import Reflector

if TYPE_CHECKING:
    from typing import TypeVar

    from webhook.kube.cache import Cache, Change
    from webhook.kube.client import Client

    T = TypeVar("T")


class Watching:
    """Reflectors of one page. `version` rises with each change."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._reflectors: list[Reflector[Any]] = []
        self._needed: list[Reflector[Any]] = []
        self._changed = asyncio.Event()
        self.version = 0

    def add(self, path: str, cache: Cache[T], *, may_lack: bool = False) -> Cache[T]:
        """Keep the cache current; `may_lack`: without what may not be read, or is not there."""
        cache.subscribe(self._on_change)
        reflector = Reflector(self.client, path, cache)
        self._reflectors.append(reflector)
        if not may_lack:
            self._needed.append(reflector)
        return cache

    def _on_change(self, _change: Change[Any]) -> None:
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """List and watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for each in self._reflectors:
                group.create_task(each.run())

    async def synced(self, seconds: float) -> None:
        """Return when all are read once, or after so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                for each in self._needed:
                    await each.cache.wait_synced()
        except TimeoutError:
            return

    async def change(self, version: int, seconds: float) -> None:
        """Return when something has changed since that version, or after so many seconds."""
        if self.version != version:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    @property
    def trouble(self) -> str:
        """Why what is shown may be old or missing; empty if it is current."""
        errors = [str(each.last_error) for each in self._needed if each.last_error]
        if errors:
            return f"This may be old or not whole: {'; '.join(dict.fromkeys(errors))}"
        if not all(each.cache.synced for each in self._needed):
            return "The cluster is not read yet."
        return ""
