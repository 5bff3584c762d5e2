"""Objects that policies may name, and without which pods are rejected."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from webhook.errors import NotSynced
from webhook.kube.cache import Cache, Change
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
        self._reflectors: Mapping[str, Reflector[JsonObject]] = {
            kind: Reflector(client, path, Cache(_keep), metadata_only=kind != _RUNTIME)
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
            kind: each.cache.items()
            for kind, each in self._reflectors.items()
            if each.cache.synced and not each.last_error
        }

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each change."""
        for each in self._reflectors.values():
            each.cache.subscribe(lambda _change: listener())


def value_of_default(priority_class: Mapping[str, Any]) -> int | None:
    """Return a PriorityClass's value if it is a global default; else None, so not cached."""
    if not priority_class.get("globalDefault"):
        return None
    value: int = priority_class.get("value", 0)
    return value


class PriorityClasses(Reflector[int]):
    """The default PriorityClass. `run()` keeps it current and must run all the time."""

    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._default: str | None = None
        cache = Cache(value_of_default, clock=clock)
        cache.subscribe(self._choose)
        super().__init__(client, PATHS["PriorityClass"], cache, clock=clock)

    @property
    def default(self) -> str | None:
        """The name of the cluster's default PriorityClass; None if it has none.

        A race can create several defaults; the Priority plugin uses the one with the lowest value.
        Raises NotSynced before the first list.
        """
        if not self.cache.synced:
            raise NotSynced("the cluster's default PriorityClass is not known yet")
        return self._default

    def _choose(self, _: Change[int]) -> None:
        found = self.cache.items()
        self._default = min(found, key=lambda name: (found[name], name), default=None)
