"""The cache of one kind of object, kept current by a reflector."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """The value of a key before and after a change; None if absent."""

    key: str
    before: T | None
    after: T | None


class Cache(Generic[T]):
    """Values by key: the name, or namespace/name.

    `keep` converts a raw object to the cached value, which bounds the memory to the needed fields.
    If it returns None, the object is not cached. Values are compared by ==.

    Any client may write unusual objects: if `keep` raises, the object is not cached, but logged
    and counted in `unreadable`, and all others are processed.

    After a write, the caller need not wait for the watch: offer() stores the API server's answer at
    once. Resource versions of one collection compare as numbers (KEP-5504).
    """

    def __init__(
        self,
        keep: Callable[[dict[str, Any]], T | None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keep = keep
        self.unreadable = 0
        self._clock = clock
        self._values: dict[str, T] = {}
        self._synced = asyncio.Event()
        self._listeners: list[Callable[[Change[T]], None]] = []
        self._last_contact: float | None = None
        # The version up to which the watch is complete, and the keys with a newer value than that,
        # with its version.
        self._newest = 0
        self._ahead: dict[str, int] = {}

    def keep(self, raw: dict[str, Any]) -> T | None:
        """Return the value to cache for a raw object; None if there is none or it is invalid."""
        try:
            return self._keep(raw)
        except Exception:
            self.unreadable += 1
            log.exception("object left out: it cannot be read", extra={"object": _name_of(raw)})
            return None

    def get(self, key: str) -> T | None:
        """Return the value; None if the key is absent or not yet listed."""
        return self._values.get(key)

    def items(self) -> Mapping[str, T]:
        """Return all values by key: a read-only view, valid until the next change."""
        return MappingProxyType(self._values)

    @property
    def synced(self) -> bool:
        """True after the first complete list. It stays true: use the age to detect staleness."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Return once `synced`."""
        await self._synced.wait()

    def age(self) -> float | None:
        """Return the seconds since the API server's last message; None if there is none.

        Up to a minute between bookmarks is normal.
        """
        return None if self._last_contact is None else self._clock() - self._last_contact

    def subscribe(self, listener: Callable[[Change[T]], None]) -> None:
        """Call `listener` after each change, in order; the cache has the new value by then."""
        self._listeners.append(listener)

    def touch(self) -> None:
        """Record that the API server sent a message just now."""
        self._last_contact = self._clock()

    def replace(self, values: Mapping[str, T], version: str = "") -> None:
        """Store a new complete list; listeners get all differences, including removals.

        `version` is the list's version. Values that were offered with a later version stay.
        """
        version_number = _number(version)
        if version_number < self._newest:
            # A backup of etcd was restored: the newer versions no longer exist.
            self._ahead.clear()
        self._newest = version_number
        self._ahead = {key: of for key, of in self._ahead.items() if of > version_number}
        before, self._values = self._values, dict(values)
        for key in self._ahead:
            self._set(key, before.get(key))
        self._synced.set()
        for key in {**before, **self._values}:
            self._notify(key, before.get(key), self._values.get(key))

    def put(self, key: str, value: T | None, version: str = "") -> None:
        """Store one value from the watch; None removes the key.

        `version` is the event's. An event older than an offered value changes nothing.
        """
        version_number = _number(version)
        self._newest = max(version_number, self._newest)
        if version_number and version_number < self._ahead.get(key, 0):
            return
        self._ahead.pop(key, None)
        self._change(key, value)

    def passed(self, version: str) -> None:
        """Record a bookmark: the watch is complete up to `version`.

        A value that was offered with an earlier version, and not delivered by the watch, is not in
        the collection any more; for example, its labels have changed.
        """
        self._newest = max(_number(version), self._newest)
        for key in [key for key, of in self._ahead.items() if of <= self._newest]:
            del self._ahead[key]
            self._change(key, None)

    def offer(self, key: str, value: T | None, version: str) -> None:
        """Store the API server's answer to a write, unless a newer value is cached.

        None means that the object is deleted. `version` is its metadata.resourceVersion.
        """
        offered = _number(version)
        if offered > max(self._newest, self._ahead.get(key, 0)):
            self._ahead[key] = offered
            self._change(key, value)

    def _change(self, key: str, value: T | None) -> None:
        before = self._values.get(key)
        self._set(key, value)
        self._notify(key, before, value)

    def _set(self, key: str, value: T | None) -> None:
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value

    def _notify(self, key: str, before: T | None, after: T | None) -> None:
        if before != after:
            for listener in self._listeners:
                try:
                    listener(Change(key, before, after))
                except Exception:
                    self.unreadable += 1
                    log.exception("change not followed", extra={"object": key})


def _name_of(raw: dict[str, Any]) -> str:
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict):
        return ""
    return f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0
