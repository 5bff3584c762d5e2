"""What decides which pods the cluster's nodes admit, from a watch; small in memory."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

from webhook.kube.cache import Cache, Change
from webhook.kube.reflector import Reflector
from webhook.kube.sharing import Sharing
from webhook.placement import nodes
from webhook.placement.nodes import InvalidNode, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from webhook.kube.client import Client

PATH: Final = "/api/v1/nodes"
# A node is some 20 KB of JSON, most of it the images that it holds: a page of 500 would take more
# memory for a moment than all that is kept of 5,000.
_PAGE: Final = 50
_MOST_TOLD: Final = 3

_logger = logging.getLogger(__name__)


class NodeView:
    """The nodes: of each labels, taints, cordon and allocatable. `run()` keeps them current.

    Whoever reads it keeps no node for long: that would be memory that is not shared any more.
    """

    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._sharing = Sharing()
        self._version = 0
        self._tuple: tuple[Node, ...] | None = None
        self._unreadable: dict[str, str] = {}
        self.cache: Cache[Node] = Cache(self._keep, clock=clock)
        self.cache.subscribe(self._changed)
        self.reflector = Reflector(client, PATH, self.cache, page_size=_PAGE, clock=clock)

    async def run(self) -> NoReturn:
        """Watch until cancelled."""
        await self.reflector.run()

    @property
    def version(self) -> int:
        """Rises with each change of what is kept of a node; a heartbeat is none."""
        return self._version

    def nodes(self) -> Sequence[Node] | None:
        """Every node, by name; None before the first list. The same object while nothing changes.

        A node that cannot be read is not among them.
        """
        if not self.cache.synced:
            return None
        if self._tuple is None:
            known = self.cache.items()
            self._tuple = tuple(known[name] for name in sorted(known))
        return self._tuple

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each change of a node: as often as there are nodes at first."""
        self.cache.subscribe(lambda _change: listener())

    def trouble(self) -> str:
        """Why the view is not what the cluster has; "" if it is."""
        found = [str(self.reflector.last_error)] if self.reflector.last_error else []
        found += [f"node {name} is left out: {why}" for name, why in self._unreadable.items()]
        return "; ".join(found[:_MOST_TOLD])

    def _keep(self, seen: dict[str, Any]) -> Node | None:
        name = str((seen.get("metadata") or {}).get("name"))
        try:
            node = self._sharing.shared(nodes.read(seen))
        except InvalidNode as error:
            # One odd node is no reason to be blind to all others.
            if self._unreadable.get(name) != str(error):
                if len(self._unreadable) >= _MOST_TOLD:
                    self._unreadable.clear()
                _logger.warning("node left out", extra={"node": name, "reason": str(error)})
                self._unreadable[name] = str(error)
            return None
        self._unreadable.pop(name, None)
        return node

    def _changed(self, _: Change[Node]) -> None:
        self._version += 1
        self._tuple = None
