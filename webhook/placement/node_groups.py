"""Groups of nodes that are equal for scheduling, kept current."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from webhook.placement import node_affinity
from webhook.placement.topology import topology_keys

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement

# Both bound the cache: pods' authors choose the keys.
_MOST_GROUPINGS: Final = 256
_MOST_GROUPS: Final = 20_000
# No label's key has a space in it.
_NAME: Final = "the name"

_Key: TypeAlias = tuple[Any, ...]
# Sorted: equal sets may be walked in different orders.
_Keys: TypeAlias = tuple[str, ...]


class Alike:
    """Nodes with the same values of some labels, the same taints and the same cordon.

    `node` stands for all of them, with the labels that they have in common. `rooms` are their
    different allocatables with how many nodes have each, by identity: nodes that share one are one
    entry.
    """

    __slots__ = ("count", "node", "rooms")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.count = 0
        self.rooms: dict[int, tuple[Mapping[str, int] | None, int]] = {}

    def add(self, node: Node, by: int) -> None:
        """Add the node to the count, or with -1 remove it."""
        self.count += by
        room = node.allocatable
        _, node_count = self.rooms.get(id(room), (room, 0))
        if node_count + by:
            self.rooms[id(room)] = (room, node_count + by)
        else:
            del self.rooms[id(room)]


class _Entry(NamedTuple):
    node: Node
    closed: _Key


class NodeGroups:
    """All nodes of a cluster; `of` gives them in as few groups as a pod needs.

    `version` rises with each change. A node's change costs one step for each grouping in use, not
    one for each node.
    """

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        self._nodes: dict[str, _Entry] = {}
        self._label_keys: dict[str, int] = {}
        self._groupings: dict[_Keys, dict[_Key, Alike]] = {}
        self.version = 0
        rooms: dict[frozenset[tuple[str, int]], Mapping[str, int]] = {}
        for node in nodes:
            if node.allocatable is not None:
                room = rooms.setdefault(frozenset(node.allocatable.items()), node.allocatable)
                node = node._replace(allocatable=room)
            self.update(node.name, node)

    def __len__(self) -> int:
        return len(self._nodes)

    def update(self, name: str, node: Node | None) -> None:
        """Store the node as it is now; None: it was deleted."""
        self.version += 1
        before = self._nodes.pop(name, None)
        if before is not None:
            self._count(before, -1)
        if node is not None:
            entry = self._nodes[name] = _Entry(node, _closed(node))
            self._count(entry, 1)

    def groups_for(self, pod: PodPlacement, also: Iterable[str] = ()) -> Collection[Alike]:
        """Return the groups that this pod distinguishes, by its conditions on labels and names.

        The labels `also` distinguish groups too.
        """
        terms = pod.required or ()
        asked = {*pod.node_selector, *node_affinity.keys(terms), *topology_keys(pod), *also}
        keys = {key for key in asked if key in self._label_keys}
        if pod.node_name or any(term.get("matchFields") for term in terms):
            keys.add(_NAME)
        return self._grouping(tuple(sorted(keys))).values()

    def rooms(self) -> Iterator[Mapping[str, int] | None]:
        """Yield the different allocatables of all nodes."""
        yield from (room for room, _ in self.counted_rooms())

    def counted_rooms(self) -> Iterator[tuple[Mapping[str, int] | None, int]]:
        """Yield the different allocatables, each with how many nodes have it."""
        for alike in self._grouping(()).values():
            yield from alike.rooms.values()

    def _grouping(self, keys: _Keys) -> dict[_Key, Alike]:
        groups = self._groupings.pop(keys, None)
        if groups is None:
            groups = {}
            for entry in self._nodes.values():
                _add_to_groups(groups, keys, entry, 1)
            self._make_room(len(groups))
        # Ordered by last use.
        self._groupings[keys] = groups
        return groups

    def _make_room(self, more: int) -> None:
        total = more + sum(map(len, self._groupings.values()))
        while self._groupings and (total > _MOST_GROUPS or len(self._groupings) >= _MOST_GROUPINGS):
            oldest = next(iter(self._groupings))
            total -= len(self._groupings.pop(oldest))

    def _count(self, entry: _Entry, by: int) -> None:
        for key in entry.node.labels:
            count = self._label_keys.get(key, 0) + by
            if count:
                self._label_keys[key] = count
            else:
                del self._label_keys[key]
        for keys, groups in self._groupings.items():
            _add_to_groups(groups, keys, entry, by)


def _add_to_groups(groups: dict[_Key, Alike], keys: _Keys, entry: _Entry, by: int) -> None:
    node, closed = entry
    get = node.labels.get
    key = (closed, *[node.name if label == _NAME else get(label) for label in keys])
    alike = groups.get(key)
    if alike is None:
        # Only the labels that define the group: other nodes of it may not have the rest.
        kept = {label: value for label in keys if (value := get(label)) is not None}
        alike = groups[key] = Alike(node._replace(labels=kept))
    alike.add(node, by)
    if not alike.count:
        del groups[key]


def _closed(node: Node) -> _Key:
    """Return the node's taints and cordon, by which pods are excluded."""
    taints = tuple([(t.get("key"), t.get("value") or "", t.get("effect")) for t in node.taints])
    return (node.unschedulable, taints)
