"""What we remember of one kind of object: kept current by a reflector, read without waiting."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """One key's value before and after; None where it was absent, or is now."""

    key: str
    before: T | None
    after: T | None


class Cache(Generic[T]):
    """Values by key: the name, or namespace/name.

    `keep` makes of a raw object the value that is remembered, so that memory is bounded by what is
    needed; where it answers None, the object is not remembered. Values are compared by ==.
    """

    def __init__(
        self,
        keep: Callable[[dict[str, Any]], T | None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.keep = keep
        self._clock = clock
        self._values: dict[str, T] = {}
        self._synced = asyncio.Event()
        self._listeners: list[Callable[[Change[T]], None]] = []
        self._last_contact: float | None = None

    def get(self, key: str) -> T | None:
        """The value, or None if there is none, or none is known yet."""
        return self._values.get(key)

    def items(self) -> Mapping[str, T]:
        """All values by key: a read-only view, to be read at once and not kept."""
        return MappingProxyType(self._values)

    @property
    def synced(self) -> bool:
        """Whether one whole list has been seen. It stays true: staleness is told by age."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Return once `synced`."""
        await self._synced.wait()

    @property
    def last_contact(self) -> float | None:
        """When, by the clock handed in, the API server last said anything; None if never."""
        return self._last_contact

    def age(self) -> float | None:
        """Seconds since `last_contact`: up to about a minute is usual, between two bookmarks."""
        return None if self._last_contact is None else self._clock() - self._last_contact

    def subscribe(self, listener: Callable[[Change[T]], None]) -> None:
        """Call `listener` after each change, in order, with the cache already changed."""
        self._listeners.append(listener)

    def touch(self) -> None:
        """Note that the API server said something just now."""
        self._last_contact = self._clock()

    def replace(self, values: Mapping[str, T]) -> None:
        """Take a whole new list, at once; listeners hear of what differs, removals included."""
        before, self._values = self._values, dict(values)
        self._synced.set()
        for key in {**before, **self._values}:
            self._tell(key, before.get(key), self._values.get(key))

    def put(self, key: str, value: T | None) -> None:
        """Take one value; None removes the key."""
        before = self._values.get(key)
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value
        self._tell(key, before, value)

    def _tell(self, key: str, before: T | None, after: T | None) -> None:
        if before != after:
            for listener in self._listeners:
                listener(Change(key, before, after))
