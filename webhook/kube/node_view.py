"""The facts of nodes that decide about pods, from a watch."""

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

    from webhook.kube.client import Client

PATH: Final = "/api/v1/nodes"
# The size of a list page. A node has about 20 KB of JSON, most of it its list of images. A page of
# 500 would take more memory than the cache of 5,000 nodes.
_PAGE: Final = 50
_MOST_TOLD: Final = 3

_logger = logging.getLogger(__name__)


class NodeView(Reflector[Node]):
    """The nodes' labels, taints, cordons and allocatable resources. `run()` keeps them current.

    `version` rises with each change of a cached field; heartbeats do not count. Callers must not
    keep a node for long, because outdated nodes do not share memory.
    """

    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._sharing = Sharing()
        self.version = 0
        self._tuple: tuple[Node, ...] | None = None
        self._unreadable: dict[str, str] = {}
        cache = Cache(self._keep, clock=clock)
        cache.subscribe(self._changed)
        super().__init__(client, PATH, cache, page_size=_PAGE, clock=clock)

    def nodes(self) -> Sequence[Node] | None:
        """Return all nodes, by name; None before the first list. The same object until a change.

        Nodes that cannot be parsed are left out.
        """
        if not self.cache.synced:
            return None
        if self._tuple is None:
            known = self.cache.items()
            self._tuple = tuple(known[name] for name in sorted(known))
        return self._tuple

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each change of a node, also for each node of the first list."""
        self.cache.subscribe(lambda _change: listener())

    def trouble(self) -> str:
        """Return why the view may differ from the cluster; "" if it does not."""
        found = [str(self.last_error)] if self.last_error else []
        found += [f"node {name} is left out: {why}" for name, why in self._unreadable.items()]
        return "; ".join(found[:_MOST_TOLD])

    def _keep(self, raw: dict[str, Any]) -> Node | None:
        name = str((raw.get("metadata") or {}).get("name"))
        try:
            node = self._sharing.shared(nodes.parse_node(raw))
        except InvalidNode as error:
            # One invalid node must not hide all others.
            if self._unreadable.get(name) != str(error):
                if len(self._unreadable) >= _MOST_TOLD:
                    self._unreadable.clear()
                _logger.warning("node left out", extra={"node": name, "reason": str(error)})
                self._unreadable[name] = str(error)
            return None
        self._unreadable.pop(name, None)
        return node

    def _changed(self, _: Change[Node]) -> None:
        self.version += 1
        self._tuple = None
