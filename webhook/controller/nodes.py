"""The nodes under runs' pods: their health, and whether they may be interrupted."""

from __future__ import annotations

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
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from webhook.kube.cache import Change

# Names of nodes that are gone, and when that was noticed.
REMEMBERED: Final = 10_000
_KIND: Final = {"apiVersion": names.API_VERSION, "kind": names.CLASS_KIND}


class WatchedNode(NamedTuple):
    """What is remembered of a node: what its node view has, and the condition Ready.

    since: when that condition changed last. A heartbeat changes nothing here.
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
    """A capacity class that says whether its nodes may be interrupted."""

    name: str
    interruptible: bool
    compiled: capacity.CapacityClass


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
        self._gone: Recent[str, str] = Recent(REMEMBERED)
        self._compiled: list[_Class] | None = None
        self._known: dict[str, tuple[WatchedNode, NodeHealth]] = {}
        self.cache.subscribe(self._node_changed)
        self.classes.subscribe(self._class_changed)

    def health(self, wanted: Iterable[str]) -> Mapping[str, NodeHealth] | None:
        """Return the nodes of these names; None before the first list.

        A node of which nothing was ever heard is not among them: read it.
        """
        if not self.cache.synced:
            return None
        found = ((name, self.get(name)) for name in wanted)
        return {name: health for name, health in found if health}

    def get(self, name: str) -> NodeHealth | None:
        """Return one node; None if nothing was ever heard of it."""
        watched = self.cache.get(name)
        if watched is None:
            return None if self._gone.get(name) is None else self.gone(name)
        known = self._known.get(name)
        if known is None or known[0] is not watched:
            known = self._known[name] = watched, self._judged(watched)
        return known[1]

    def gone(self, name: str) -> NodeHealth:
        """Return what is known of a node that is not there any more."""
        return NodeHealth(name, since=self._gone.get(name) or "")

    def lost(self, name: str) -> None:
        """Take note that the API server does not know a node of this name."""
        if self._gone.get(name) is None:
            self._gone.put(name, to_second(self._now()))

    def read(self, raw: dict[str, Any]) -> NodeHealth:
        """Take what the API server answered; the health of that node."""
        watched = self._keep(raw)
        self.cache.offer(watched.node.name, watched, raw["metadata"]["resourceVersion"])
        return self._judged(watched)

    def _keep(self, raw: dict[str, Any]) -> WatchedNode:
        metadata, status = raw["metadata"], raw.get("status") or {}
        try:
            node = self._sharing.shared(nodes.read(raw))
        except InvalidNode:
            # That it is there, and whether it is ready, matters all the same.
            node = Node(metadata["name"], {}, ())
        conditions = status.get("conditions") or ()
        ready: dict[str, Any] = next((each for each in conditions if each["type"] == "Ready"), {})
        told = ready.get("status")
        # Unknown is the node controller's word for a silent kubelet. That nobody has said a word
        # yet proves no silence.
        state: Literal["True", "False", "Unknown"] = (
            "True" if told == "True" else "Unknown" if told == "Unknown" else "False"
        )
        since = ready.get("lastTransitionTime") or ""
        created = metadata.get("creationTimestamp") or ""
        return WatchedNode(node, metadata["uid"], created, state, since)

    def _judged(self, watched: WatchedNode) -> NodeHealth:
        interruptible, of = self._interruptible(watched.node)
        return NodeHealth(
            watched.node.name,
            watched.uid,
            watched.created,
            watched.ready,
            watched.since,
            watched.has_taint(names.TAINT_SHUTDOWN),
            interruptible,
            of,
        )

    def _interruptible(self, node: Node) -> tuple[bool, str]:
        """Whether the node may be interrupted, and the class that says so."""
        if self._compiled is None:
            # Those that say yes first.
            self._compiled = sorted(
                _compiled(self.classes.items()),
                key=lambda each: (not each.interruptible, each.name),
            )
        for each in self._compiled:
            if is_of(each.compiled, node):
                return each.interruptible, each.name
        # Any machine may be lost, unless an admin says that these are not.
        return True, ""

    def _node_changed(self, change: Change[WatchedNode]) -> None:
        if change.after is None:
            self._known.pop(change.key, None)
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
        # The status of the class says what is wrong with it.
        return None


def _compiled(classes: Mapping[str, CapacityClass]) -> Iterator[_Class]:
    """The classes that say whether they are interruptible, complements among them."""
    for name, document in classes.items():
        interruptible, of = document.spec.interruptible, document.spec.complement_of
        described = classes.get(of) if of else document
        if interruptible is None or described is None or described.spec.complement_of:
            continue
        try:
            compiled = capacity_class(described)
        except InvalidClass:
            continue
        yield _Class(name, interruptible, capacity.complement(name, compiled) if of else compiled)
