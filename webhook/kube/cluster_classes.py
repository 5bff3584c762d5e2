"""Objects that policies may name, and without which pods are rejected."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from webhook.kube.cache import Cache
from webhook.kube.reflector import Reflector
from webhook.policy.refused_pods import PATHS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.kube.client import Client
    from webhook.placement.shapes import JsonObject

_RUNTIME: Final = "RuntimeClass"
# What the API server merges into pods.
_MERGED: Final = ("overhead", "scheduling")


def _keep(raw: Mapping[str, Any]) -> JsonObject:
    return {key: raw[key] for key in _MERGED if key in raw}


class ClusterClasses:
    """A cluster's PriorityClasses and RuntimeClasses. `run()` keeps them current."""

    def __init__(self, client: Client) -> None:
        self._caches: dict[str, Cache[JsonObject]] = {kind: Cache(_keep) for kind in PATHS}
        self._reflectors = {
            kind: Reflector(client, path, self._caches[kind], metadata_only=kind != _RUNTIME)
            for kind, path in PATHS.items()
        }

    async def run(self) -> None:
        """Watch until cancelled."""
        await asyncio.gather(*(each.run() for each in self._reflectors.values()))

    def by_kind(self) -> Mapping[str, Mapping[str, JsonObject]]:
        """Return by kind and name what is kept of each: of a RuntimeClass its overhead and
        scheduling, of a PriorityClass nothing.

        A kind that cannot be watched now is left out.
        """
        return {
            kind: cache.items()
            for kind, cache in self._caches.items()
            if cache.synced and not self._reflectors[kind].last_error
        }

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each change."""
        for cache in self._caches.values():
            cache.subscribe(lambda _change: listener())
