"""The names of objects that policies may name, and without which pods are rejected."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from webhook.kube.cache import Cache
from webhook.kube.reflector import Reflector
from webhook.policy.refused_pods import PATHS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from webhook.kube.client import Client


def _keep(_raw: Mapping[str, Any]) -> bool:
    return True


class ClassNames:
    """The names of a cluster's PriorityClasses and RuntimeClasses. `run()` keeps them current."""

    def __init__(self, client: Client) -> None:
        self._caches: dict[str, Cache[bool]] = {kind: Cache(_keep) for kind in PATHS}
        self._reflectors = {
            kind: Reflector(client, path, self._caches[kind], metadata_only=True)
            for kind, path in PATHS.items()
        }

    async def run(self) -> None:
        """Watch until cancelled."""
        await asyncio.gather(*(each.run() for each in self._reflectors.values()))

    def names(self) -> Mapping[str, Collection[str]]:
        """Return the names by kind; a kind that cannot be watched now is left out."""
        return {
            kind: cache.items().keys()
            for kind, cache in self._caches.items()
            if cache.synced and not self._reflectors[kind].last_error
        }

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each change."""
        for cache in self._caches.values():
            cache.subscribe(lambda _change: listener())
