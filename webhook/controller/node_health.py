"""The health of nodes under runs' pods, and whether they may be interrupted."""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import ValidationError

from webhook import names
from webhook.cluster_objects.sharing import Sharing
from webhook.controller.classed_nodes import ClassedNodes, WatchedNode, compile_classes
from webhook.kube.cache import Cache
from webhook.lenient import salvage
from webhook.placement import nodes
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import InvalidNode, Node
from webhook.policy.model import CapacityClass
from webhook.recent import Recent
from webhook.run.observed import NodeHealth
from webhook.strict import NOT_KNOWN
from webhook.times import parse_time, to_second

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from typing import NoReturn

    from webhook.controller.classed_nodes import NodeClass
    from webhook.kube.cache import Change
    from webhook.placement.capacity import CapacityClass as CompiledClass

# Limit on the names of deleted nodes, kept with the time when the deletion was noticed.
DELETED_NODES_KEPT: Final = 10_000
# Nodes that are judged again in one turn of the event loop after a change of a class: 2 ms.
SLICE: Final = 200
_KIND: Final = {"apiVersion": names.API_VERSION, "kind": names.CLASS_KIND}
# Years outside of which a time is none: sums of times must stay valid, too.
_YEARS: Final = range(1970, 9000)


class Nodes:
    """The nodes and capacity classes, kept current by informers; `now` is the wall clock.

    After a change of a class all nodes are judged again, beside the judgement before it, which
    counts until that is done: by `run` in many turns of the event loop, else at the next look.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._now = now
        # Keys of taints by which a node is announced to be taken away.
        self.leaving: Collection[str] = names.TAINTS_LEAVING
        self._sharing = Sharing()
        self.cache: Cache[WatchedNode] = Cache(self._keep, clock=clock)
        self.classes: Cache[CapacityClass] = Cache(_read_class, clock=clock)
        self.groups = NodeGroups()
        self._gone: Recent[str, NodeHealth] = Recent(DELETED_NODES_KEPT)
        # Those of them that went before the classes were listed.
        self._unclassed: Recent[str, Node] = Recent(DELETED_NODES_KEPT)
        self._judged = ClassedNodes()
        self._next: ClassedNodes | None = None
        self._stale = asyncio.Event()
        self._runs = False
        self._leaving: set[str] = set()
        self.cache.subscribe(self._node_changed)
        self.classes.subscribe(self._class_changed)

    def health(self, wanted: Iterable[str]) -> Mapping[str, NodeHealth] | None:
        """Return the nodes of these names; None before the first list.

        Nodes that were never observed are missing; the caller reads them from the API.
        """
        if not self.cache.synced:
            return None
        pairs = ((name, self.get(name)) for name in wanted)
        return {name: health for name, health in pairs if health}

    def get(self, name: str) -> NodeHealth | None:
        """Return one node; None if it was never observed."""
        return self._current().health(name) or self._find_gone(name)

    def ill(self) -> tuple[NodeHealth, ...]:
        """Return the ill nodes, except those that are silent or of a class with too many."""
        return self._current().ill()

    def compiled_class(self, name: str) -> CompiledClass | None:
        """Return the capacity class of this name; None if it is not known."""
        return self._current().compiled(name)

    def names_leaving(self) -> Collection[str]:
        """Return the names of the nodes that are about to be taken away. For any thread."""
        return tuple(self._leaving)

    def health_of_deleted(self, name: str) -> NodeHealth:
        """Return the health of a deleted node, with the class that it was of."""
        return self._find_gone(name) or NodeHealth(name)

    def lost(self, name: str) -> None:
        """Record that the API server has no node of this name."""
        if self._gone.get(name) is None:
            watched = self._judged.watched(name)
            class_name = self._judged.class_of(watched.node) if watched else ""
            since = to_second(self._now())
            self._gone.put(name, NodeHealth(name, since=since, capacity_class=class_name))
            if watched and not class_name and not self.classes.synced:
                self._unclassed.put(name, watched.node)

    def health_of_raw(self, raw: dict[str, Any]) -> NodeHealth:
        """Store a node from an API response, and return its health."""
        watched = self._keep(raw)
        self.cache.offer(watched.node.name, watched, raw["metadata"]["resourceVersion"])
        return self._current().health_of(watched)

    async def run(self) -> NoReturn:
        """Judge all nodes again after changes of classes, until cancelled.

        Changes meanwhile are the next round: so each round ends, however often classes change.
        """
        self._runs = True
        try:
            while True:
                await self._stale.wait()
                for _ in self._judge_all():
                    await asyncio.sleep(0)
        finally:
            self._runs = False
            # The round that was cut off.
            self._stale.set()

    def _current(self) -> ClassedNodes:
        if self._stale.is_set() and not self._runs:
            for _ in self._judge_all():
                pass
        return self._judged

    def _judge_all(self) -> Iterator[None]:
        """Judge all nodes by the classes as they are now; yields after each slice of the work."""
        self._stale.clear()
        classes: list[NodeClass] = []
        for node_class in compile_classes(dict(self.classes.items())):
            if node_class:
                classes.append(node_class)
            yield
        self._next = fresh = ClassedNodes(classes)
        for number, name in enumerate(self._judged.names(), 1):
            # As it is by then: changes go to both judgements.
            fresh.put(name, self._judged.watched(name))
            if number % SLICE == 0:
                yield
        self._judged, self._next = fresh, None

    def _find_gone(self, name: str) -> NodeHealth | None:
        gone = self._gone.get(name)
        node = self._unclassed.get(name)
        if gone and node and (class_name := self._current().class_of(node)):
            self._unclassed.forget(name)
            gone = gone._replace(capacity_class=class_name)
            self._gone.put(name, gone)
        return gone

    def _keep(self, raw: dict[str, Any]) -> WatchedNode:
        metadata, status = raw["metadata"], raw.get("status") or {}
        try:
            node = self._sharing.shared(nodes.parse_node(raw))
        except InvalidNode:
            # The node exists, and its readiness matters even if it cannot be parsed.
            node = Node(metadata["name"], {}, ())
        conditions = status.get("conditions") or ()
        ready: dict[str, Any] = next(
            (condition for condition in conditions if condition["type"] == "Ready"), {}
        )
        reported = ready.get("status")
        # The node controller sets Unknown for a silent kubelet. A missing condition does not
        # prove that the kubelet is silent.
        state: Literal["True", "False", "Unknown"] = (
            "True" if reported == "True" else "Unknown" if reported == "Unknown" else "False"
        )
        keys = {taint.get("key") for taint in node.taints}
        return WatchedNode(
            node,
            metadata["uid"],
            metadata.get("creationTimestamp") or "",
            state,
            _valid_time(ready.get("lastTransitionTime")),
            tuple(
                (
                    sys.intern(condition["type"]),
                    sys.intern(condition.get("status") or ""),
                    _valid_time(condition.get("lastTransitionTime")),
                )
                for condition in conditions
            ),
            shut_down=names.TAINT_SHUTDOWN in keys,
            leaving=node.unschedulable or not keys.isdisjoint(self.leaving),
        )

    def _node_changed(self, change: Change[WatchedNode]) -> None:
        name, after = change.key, change.after
        if after is None:
            self.lost(name)
        else:
            self._gone.forget(name)
            self._unclassed.forget(name)
        for judged in filter(None, (self._judged, self._next)):
            judged.put(name, after)
        if change.before is None or after is None or change.before.node != after.node:
            self.groups.update(name, after.node if after else None)
        if after and after.leaving:
            self._leaving.add(name)
        else:
            self._leaving.discard(name)

    def _class_changed(self, _: Change[CapacityClass]) -> None:
        self._stale.set()


def _valid_time(text: object) -> str:
    """Return a timestamp as it is; empty if it is none. Kubelets write the times of conditions."""
    try:
        return text if isinstance(text, str) and parse_time(text).year in _YEARS else ""
    except ValueError:
        return ""


def _read_class(raw: dict[str, Any]) -> CapacityClass | None:
    """Return the class; without what makes pods go, if another version knows more of it."""
    document = {**raw, **_KIND, "metadata": {"name": raw["metadata"]["name"]}}
    document.pop("status", None)
    try:
        return CapacityClass.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        if any(line["type"] not in NOT_KNOWN for line in error.errors(include_url=False)):
            # The class's status reports the error.
            return None
    capacity_class, _ = salvage(CapacityClass, document)
    if capacity_class is None or len(capacity_class.spec.nodes or ()) != len(
        document["spec"].get("nodes") or ()
    ):
        # Nodes that are not known to be of the class would be of its complement.
        return None
    spec = capacity_class.spec.model_copy(update={"lost_after": None, "unhealthy": None})
    return capacity_class.model_copy(update={"spec": spec})
