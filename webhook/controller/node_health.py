"""The health of nodes under runs' pods, and whether they may be interrupted."""

from __future__ import annotations

import math
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from pydantic import ValidationError

from webhook import names
from webhook.cluster_objects.sharing import Sharing
from webhook.kube.cache import Cache
from webhook.lenient import salvage
from webhook.placement import capacity, nodes
from webhook.placement.capacity import InvalidClass
from webhook.placement.nodes import InvalidNode, Node
from webhook.policy.compile import capacity_class
from webhook.policy.model import CapacityClass, Illness
from webhook.policy.node_settings import is_of
from webhook.recent import Recent
from webhook.run.observed import NodeHealth
from webhook.strict import NOT_KNOWN
from webhook.times import span_seconds, to_second

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

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
    conditions: tuple[tuple[str, str, str], ...] = ()
    """All of them: type, status, last transition."""

    def has_taint(self, key: str) -> bool:
        """Return whether the node has a taint of this key, whatever its value and effect."""
        return any(taint.get("key") == key for taint in self.node.taints)


class _Class(NamedTuple):
    """A capacity class, and how its nodes are lost."""

    name: str
    interruptible: bool | None
    compiled: capacity.CapacityClass
    lost_after: float | None
    unhealthy: tuple[Illness, ...]


class Nodes:
    """The nodes and capacity classes, kept current by informers; `now` is the wall clock."""

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
        self._gone: Recent[str, NodeHealth] = Recent(REMEMBERED)
        self._compiled: list[_Class] | None = None
        self._known: dict[str, tuple[WatchedNode, NodeHealth]] = {}
        self._ill: tuple[NodeHealth, ...] | None = None
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
        return self._unless_many(*known)

    def ill(self) -> tuple[NodeHealth, ...]:
        """Return all nodes that are ill, by the classes that say so."""
        if self._ill is None:
            judged = any(each.unhealthy for each in self._classes())
            found = map(self.get, self.cache.items()) if judged else ()
            self._ill = tuple(each for each in found if each and each.ill)
        return self._ill

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
        return self._unless_many(watched, self._health(watched))

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
        kept = tuple(
            (
                sys.intern(each["type"]),
                sys.intern(each.get("status") or ""),
                each.get("lastTransitionTime") or "",
            )
            for each in conditions
        )
        return WatchedNode(node, metadata["uid"], created, state, since, kept)

    def _health(self, watched: WatchedNode) -> NodeHealth:
        classes = self._classes_of(watched.node)
        first = classes[0] if classes else None
        illnesses = (illness for of in classes for illness in _illnesses(of, watched))
        ill, since, after = min(illnesses, default=("", "", 0.0))
        return NodeHealth(
            watched.node.name,
            watched.uid,
            watched.created,
            watched.ready,
            watched.since,
            watched.has_taint(names.TAINT_SHUTDOWN),
            # By default every node is interruptible, unless a class sets otherwise.
            first is None or first.interruptible is not False,
            first.name if first else "",
            min((of.lost_after for of in classes if of.lost_after), default=None),
            ill=ill,
            ill_since=since,
            ill_after=after,
            leaving=watched.node.unschedulable or any(map(watched.has_taint, self.leaving)),
        )

    def _unless_many(self, watched: WatchedNode, health: NodeHealth) -> NodeHealth:
        """Return the health; never lost by silence while many nodes of a class that says so are
        silent, and never ill while many are ill or silent: what reports it may be broken."""
        silent = health.lost_after is not None and health.ready == "Unknown"
        for of in self._classes_of(watched.node) if silent or health.ill else ():
            of_silence, of_illness = silent and of.lost_after, any(_illnesses(of, watched))
            if not (of_silence or of_illness):
                continue
            nodes = [
                (each.ready == "Unknown", any(_illnesses(of, each)))
                for each in self.cache.items().values()
                if is_of(of.compiled, each.node)
            ]
            most = max(1, len(nodes) / MOST_SILENT)
            if of_silence and sum(one for one, _ in nodes) > most:
                health = health._replace(lost_after=math.inf, many_of=of.name)
            if of_illness and sum(one or other for one, other in nodes) > most:
                health = health._replace(ill_after=math.inf, many_of=of.name)
        return health

    def _classes_of(self, node: Node) -> Sequence[_Class]:
        """Return the classes of the node; the first says whether it is interruptible."""
        return [each for each in self._classes() if is_of(each.compiled, node)]

    def _classes(self) -> Sequence[_Class]:
        if self._compiled is None:
            # Interruptible classes first, and last those that do not say.
            self._compiled = sorted(
                _compiled(self.classes.items()),
                key=lambda each: ((True, False, None).index(each.interruptible), each.name),
            )
        return self._compiled

    def _node_changed(self, change: Change[WatchedNode]) -> None:
        self._ill = None
        if change.after is None:
            self.lost(change.key)
        else:
            self._gone.forget(change.key)

    def _class_changed(self, _: Change[CapacityClass]) -> None:
        self._compiled = self._ill = None
        self._known.clear()


def _illnesses(of: _Class, watched: WatchedNode) -> Iterator[tuple[str, str, float]]:
    """Yield by which conditions the node is ill, since when, and the seconds until it counts."""
    for rule in of.unhealthy:
        for kind, status, since in watched.conditions:
            if (kind, status) == (rule.condition, rule.status) and since:
                yield f"{kind}={status}", since, span_seconds(rule.lasts)


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
    found, _ = salvage(CapacityClass, document)
    if found is None or len(found.spec.nodes or ()) != len(document["spec"].get("nodes") or ()):
        # Nodes that are not known to be of the class would be of its complement.
        return None
    spec = found.spec.model_copy(update={"lost_after": None, "unhealthy": None})
    return found.model_copy(update={"spec": spec})


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
            span_seconds(spec.lost_after) if spec.lost_after else None,
            tuple(spec.unhealthy or ()),
        )
