"""The cluster's default PriorityClass."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from webhook.errors import NotSynced
from webhook.kube.cache import Cache, Change
from webhook.kube.reflector import Reflector
from webhook.policy.refused_pods import PATHS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.kube.client import Client


def value_of_default(priority_class: Mapping[str, Any]) -> int | None:
    """Return a PriorityClass's value if it is a global default; else None, so not cached."""
    if not priority_class.get("globalDefault"):
        return None
    value: int = priority_class.get("value", 0)
    return value


class PriorityClasses:
    """The default PriorityClass. `run()` keeps it current and must run all the time."""

    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._default: str | None = None
        self.cache: Cache[int] = Cache(value_of_default, clock=clock)
        self.cache.subscribe(self._choose)
        self.reflector = Reflector(client, PATHS["PriorityClass"], self.cache, clock=clock)

    async def run(self) -> None:
        """Watch until cancelled."""
        await self.reflector.run()

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
