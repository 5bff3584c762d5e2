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

    Who writes an object need not wait for the watch to tell of it: offer() takes the API server's
    answer at once. Resource versions of one collection compare as numbers (KEP-5504).
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
        # Up to which version the watch has told everything; of which keys more is known, and of
        # which version that is.
        self._told = 0
        self._ahead: dict[str, int] = {}

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

    def replace(self, values: Mapping[str, T], version: str = "") -> None:
        """Take a whole new list, at once; listeners hear of what differs, removals included.

        `version` is the list's own: what was offered of a later one stays.
        """
        told = _number(version)
        if told < self._told:
            # The store was restored from a backup: what was known is of another history.
            self._ahead.clear()
        self._told = told
        self._ahead = {key: of for key, of in self._ahead.items() if of > told}
        before, self._values = self._values, dict(values)
        for key in self._ahead:
            self._set(key, before.get(key))
        self._synced.set()
        for key in {**before, **self._values}:
            self._tell(key, before.get(key), self._values.get(key))

    def put(self, key: str, value: T | None, version: str = "") -> None:
        """Take one value as the watch tells of it; None removes the key.

        `version` is the event's. One that is older than what was offered changes nothing.
        """
        told = _number(version)
        self._told = max(told, self._told)
        if told and told < self._ahead.get(key, 0):
            return
        self._ahead.pop(key, None)
        self._change(key, value)

    def passed(self, version: str) -> None:
        """The watch has told everything up to `version`: a bookmark.

        What was offered of an earlier one, and never told of, is not in the collection: its labels
        were changed on the way, say.
        """
        self._told = max(_number(version), self._told)
        for key in [key for key, of in self._ahead.items() if of <= self._told]:
            del self._ahead[key]
            self._change(key, None)

    def offer(self, key: str, value: T | None, version: str) -> None:
        """Take what the API server answered to a write, unless something newer is known.

        None says that the object is gone. `version` is its metadata.resourceVersion.
        """
        offered = _number(version)
        if offered > max(self._told, self._ahead.get(key, 0)):
            self._ahead[key] = offered
            self._change(key, value)

    def _change(self, key: str, value: T | None) -> None:
        before = self._values.get(key)
        self._set(key, value)
        self._tell(key, before, value)

    def _set(self, key: str, value: T | None) -> None:
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value

    def _tell(self, key: str, before: T | None, after: T | None) -> None:
        if before != after:
            for listener in self._listeners:
                listener(Change(key, before, after))


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0
