"""The health of nodes under runs' pods, and whether they may be interrupted."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from pydantic import ValidationError

from webhook import names
from webhook.kube.cache import Cache
from webhook.kube.sharing import Sharing
from webhook.placement import capacity, nodes
from webhook.placement.capacity import InvalidClass
from webhook.placement.nodes import InvalidNode, Node
from webhook.policy.compile import capacity_class
from webhook.policy.model import CapacityClass
from webhook.policy.node_settings import is_of
from webhook.recent import Recent
from webhook.run.observed import NodeHealth
from webhook.times import parse_span, to_second

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from webhook.kube.cache import Change

# Limit on the names of deleted nodes, kept with the time when the deletion was noticed.
REMEMBERED: Final = 10_000
# More than one in so many silent nodes of a class is no loss of nodes.
MOST_SILENT: Final = 5
_KIND: Final = {"apiVersion": names.API_VERSION, "kind": names.CLASS_KIND}


class WatchedNode(NamedTuple):
    """A node in the cache: its placement view and its Ready condition.

    since: the last transition of that condition. A heartbeat does not change it.
    """

    node: Node
    uid: str
    created: str
    ready: Literal["True", "False", "Unknown"]
    since: str

    def has_taint(self, key: str) -> bool:
        """Return whether the node has a taint of this key, whatever its value and effect."""
        return any(taint.get("key") == key for taint in self.node.taints)


class _Class(NamedTuple):
    """A capacity class, and how its nodes are lost."""

    name: str
    interruptible: bool | None
    compiled: capacity.CapacityClass
    lost_after: float | None


_UNCLASSED: Final = (True, "", None)


class Nodes:
    """The nodes and capacity classes, kept current by informers; `now` is the wall clock."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._now = now
        self._sharing = Sharing()
        self.cache: Cache[WatchedNode] = Cache(self._keep, clock=clock)
        self.classes: Cache[CapacityClass] = Cache(_read_class, clock=clock)
        self._gone: Recent[str, NodeHealth] = Recent(REMEMBERED)
        self._compiled: list[_Class] | None = None
        self._known: dict[str, tuple[WatchedNode, NodeHealth]] = {}
        self.cache.subscribe(self._node_changed)
        self.classes.subscribe(self._class_changed)

    def health(self, wanted: Iterable[str]) -> Mapping[str, NodeHealth] | None:
        """Return the nodes of these names; None before the first list.

        Nodes that were never observed are missing; the caller reads them from the API.
        """
        if not self.cache.synced:
            return None
        found = ((name, self.get(name)) for name in wanted)
        return {name: health for name, health in found if health}

    def get(self, name: str) -> NodeHealth | None:
        """Return one node; None if it was never observed."""
        watched = self.cache.get(name)
        if watched is None:
            return self._gone.get(name)
        known = self._known.get(name)
        if known is None or known[0] is not watched:
            known = self._known[name] = watched, self._health(watched)
        return self._unless_many(known[1])

    def health_of_deleted(self, name: str) -> NodeHealth:
        """Return the health of a deleted node, with the class that it was of."""
        return self._gone.get(name) or NodeHealth(name)

    def lost(self, name: str) -> None:
        """Record that the API server has no node of this name."""
        _, before = self._known.pop(name, (None, NodeHealth(name)))
        if self._gone.get(name) is None:
            since, of = to_second(self._now()), before.capacity_class
            self._gone.put(name, NodeHealth(name, since=since, capacity_class=of))

    def health_of_raw(self, raw: dict[str, Any]) -> NodeHealth:
        """Store a node from an API response, and return its health."""
        watched = self._keep(raw)
        self.cache.offer(watched.node.name, watched, raw["metadata"]["resourceVersion"])
        return self._unless_many(self._health(watched))

    def _keep(self, raw: dict[str, Any]) -> WatchedNode:
        metadata, status = raw["metadata"], raw.get("status") or {}
        try:
            node = self._sharing.shared(nodes.parse_node(raw))
        except InvalidNode:
            # The node exists, and its readiness matters even if it cannot be parsed.
            node = Node(metadata["name"], {}, ())
        conditions = status.get("conditions") or ()
        ready: dict[str, Any] = next((each for each in conditions if each["type"] == "Ready"), {})
        reported = ready.get("status")
        # The node controller sets Unknown for a silent kubelet. A missing condition does not
        # prove that the kubelet is silent.
        state: Literal["True", "False", "Unknown"] = (
            "True" if reported == "True" else "Unknown" if reported == "Unknown" else "False"
        )
        since = ready.get("lastTransitionTime") or ""
        created = metadata.get("creationTimestamp") or ""
        return WatchedNode(node, metadata["uid"], created, state, since)

    def _health(self, watched: WatchedNode) -> NodeHealth:
        interruptible, of, lost_after = self._class_of(watched.node)
        return NodeHealth(
            watched.node.name,
            watched.uid,
            watched.created,
            watched.ready,
            watched.since,
            watched.has_taint(names.TAINT_SHUTDOWN),
            interruptible,
            of,
            lost_after,
            leaving=watched.node.unschedulable or any(map(watched.has_taint, names.TAINTS_LEAVING)),
        )

    def _unless_many(self, health: NodeHealth) -> NodeHealth:
        """Return the health; never lost by silence while so many nodes of its class are silent that
        their network may be broken."""
        if health.lost_after is None or health.ready != "Unknown":
            return health
        silent = [
            each.ready == "Unknown"
            for each in self.cache.items().values()
            if self._class_of(each.node)[1] == health.capacity_class
        ]
        many = sum(silent) > max(1, len(silent) / MOST_SILENT)
        return health._replace(lost_after=math.inf) if many else health

    def _class_of(self, node: Node) -> tuple[bool, str, float | None]:
        """Return whether the node may be interrupted, the class that says so, and the seconds of
        silence after which it is lost by that class."""
        if self._compiled is None:
            # Interruptible classes first, and last those that do not say.
            self._compiled = sorted(
                _compiled(self.classes.items()),
                key=lambda each: ((True, False, None).index(each.interruptible), each.name),
            )
        for each in self._compiled:
            if is_of(each.compiled, node):
                return each.interruptible is not False, each.name, each.lost_after
        # By default every node is interruptible, unless a class sets otherwise.
        return _UNCLASSED

    def _node_changed(self, change: Change[WatchedNode]) -> None:
        if change.after is None:
            self.lost(change.key)
        else:
            self._gone.forget(change.key)

    def _class_changed(self, _: Change[CapacityClass]) -> None:
        self._compiled = None
        self._known.clear()


def _read_class(raw: dict[str, Any]) -> CapacityClass | None:
    document = {**raw, **_KIND, "metadata": {"name": raw["metadata"]["name"]}}
    document.pop("status", None)
    try:
        return CapacityClass.model_validate(document, by_alias=True, by_name=False)
    except ValidationError:
        # The class's status reports the error.
        return None


def _compiled(classes: Mapping[str, CapacityClass]) -> Iterator[_Class]:
    """Yield the classes, including complements."""
    for name, document in classes.items():
        spec, of = document.spec, document.spec.complement_of
        described = classes.get(of) if of else document
        if described is None or described.spec.complement_of:
            continue
        try:
            compiled = capacity_class(described)
        except InvalidClass:
            continue
        yield _Class(
            name,
            True if spec.lost_after and spec.interruptible is None else spec.interruptible,
            capacity.complement(name, compiled) if of else compiled,
            parse_span(spec.lost_after).total_seconds() if spec.lost_after else None,
        )
