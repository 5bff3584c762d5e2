"""Share equal strings and values between cached nodes."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Generic, TypeVar, overload

if TYPE_CHECKING:
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import Taint

V = TypeVar("V")
T = TypeVar("T")

# Entries. Bounds the memory if all nodes change again and again; the pool is then emptied.
_POOL_ENTRIES: Final = 8192


class Row(Mapping[str, V], Generic[V]):
    """A mapping that shares its keys, and their order, with other mappings of the same keys.

    It takes a tenth of the memory of a dictionary for a node's labels.
    """

    __slots__ = ("_at", "_values")

    def __init__(self, at: Mapping[str, int], values: tuple[V, ...]) -> None:
        self._at = at
        self._values = values

    def __getitem__(self, key: str) -> V:
        return self._values[self._at[key]]

    @overload
    def get(self, key: str, /) -> V | None: ...
    @overload
    def get(self, key: str, /, default: V | T) -> V | T: ...
    def get(self, key: str, /, default: T | V | None = None) -> T | V | None:
        """Return the value, or `default`; most keys are missing, so it avoids an exception."""
        at = self._at.get(key)
        return default if at is None else self._values[at]

    def __iter__(self) -> Iterator[str]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._at

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Row) and other._at is self._at:
            return bool(self._values == other._values)
        return Mapping.__eq__(self, other)

    __hash__ = None  # type: ignore[assignment]


class Sharing:
    """Makes equal parts of nodes share memory, with a bounded number of entries."""

    def __init__(self) -> None:
        self._keys: dict[Hashable, Mapping[str, int]] = {}
        self._allocatable: dict[Hashable, Mapping[str, int]] = {}
        self._taints: dict[Hashable, tuple[Taint, ...]] = {}

    def shared(self, node: Node) -> Node:
        """Return the same node with shared parts."""
        labels = {key: sys.intern(value) for key, value in node.labels.items()}
        allocatable = node.allocatable
        if allocatable is not None:
            allocatable_key = tuple(sorted(allocatable.items()))
            row = self._row(allocatable)
            allocatable = _share(self._allocatable, allocatable_key, row)
        taints_key = tuple((t.get("key"), t.get("value"), t.get("effect")) for t in node.taints)
        taints = _share(self._taints, taints_key, tuple(_of_taint(taint) for taint in node.taints))
        return node._replace(
            name=sys.intern(node.name),
            labels=self._row(labels),
            taints=taints,
            allocatable=allocatable,
        )

    def _row(self, values: Mapping[str, V]) -> Row[V]:
        keys = tuple(sorted(values))
        at = _share(self._keys, keys, {sys.intern(key): at for at, key in enumerate(keys)})
        return Row(at, tuple([values[key] for key in keys]))


def _share(pool: dict[Hashable, T], key: Hashable, value: T) -> T:
    existing = pool.get(key)
    if existing is not None:
        return existing
    if len(pool) >= _POOL_ENTRIES:
        pool.clear()
    pool[key] = value
    return value


def _of_taint(taint: Taint) -> Taint:
    """Return the relevant fields of a taint, without the time when it was added."""
    kept: Taint = {"key": sys.intern(taint.get("key") or "")}
    if value := taint.get("value"):
        kept["value"] = sys.intern(value)
    kept["effect"] = sys.intern(taint.get("effect") or "")
    return kept
