"""The cache of one kind of object, kept current by a reflector."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from webhook.errors import FairleadError
from webhook.shortening import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

T = TypeVar("T")

# Keys of a new list that are compared and reported in one turn of the event loop: milliseconds.
SLICE: Final = 50

log = logging.getLogger(__name__)

# Stands for a name that is missing. It is not a valid name, so no object has it.
NAMELESS: Final = "?"
# Characters of the reason why an object is left out.
_LONGEST_REASON: Final = 200


def key_of(raw: object) -> str:
    """Return an object's cache key: namespace/name, or the name if it is cluster-scoped.

    NAMELESS stands for a name that is missing or is not text.
    """
    metadata = _metadata(raw)
    name = _text(metadata.get("name")) or NAMELESS
    namespace = _text(metadata.get("namespace"))
    return f"{namespace}/{name}" if namespace else name


def version_of(raw: object) -> str:
    """Return an object's metadata.resourceVersion; "" if it has none."""
    return _text(_metadata(raw).get("resourceVersion"))


def _metadata(raw: object) -> Mapping[str, Any]:
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


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

    Any client may write unusual objects: if `keep` raises, or an object has no name, the cache has
    no value for it, also if it had one before. So what a cache has depends on the cluster alone,
    and not on what this process saw earlier. The object is logged, counted in `unreadable`, and
    named in `faults` until it can be read or is gone; all others are processed.

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
        # By key: why an object is left out; and those with a change that a listener did not take.
        self._left_out: dict[str, str] = {}
        self._not_followed: set[str] = set()
        self._clock = clock
        self._values: dict[str, T] = {}
        self._synced = asyncio.Event()
        self._listeners: list[Callable[[Change[T]], None]] = []
        self._last_contact: float | None = None
        # The version up to which the watch is complete, and the keys with a newer value than that,
        # with its version.
        self._newest = 0
        self._ahead: dict[str, int] = {}
        # The values before the list that is being reported, by the keys that were not yet.
        self._unreported: dict[str, T | None] = {}

    def keep(self, raw: dict[str, Any]) -> T | None:
        """Return the value to cache for a raw object; None if there is none or it is invalid."""
        return self.entry(raw)[1]

    def entry(self, raw: dict[str, Any]) -> tuple[str, T | None]:
        """Return key and value for a raw object; None if there is no value, or it is invalid."""
        key = key_of(raw)
        try:
            if key.rpartition("/")[2] == NAMELESS:
                raise _NoName("it has no name")
            value = self._keep(raw)
        except Exception as error:
            self._leave_out(key, error)
            return key, None
        self._left_out.pop(key, None)
        return key, value

    def _leave_out(self, key: str, error: Exception) -> None:
        self.unreadable += 1
        expected = isinstance(error, FairleadError)
        # The text of any other exception may have a part of the object, and only the log is safe.
        why = (
            cut(str(error), _LONGEST_REASON) if expected else f"{type(error).__name__}, see the log"
        )
        if self._left_out.get(key) != why:
            log.warning(
                "object left out: it cannot be read",
                extra={"object": key, "reason": why},
                exc_info=None if expected else error,
            )
        self._left_out[key] = why

    @property
    def faults(self) -> Mapping[str, str]:
        """Why objects are left out, or not followed, by key; those that are so now."""
        unfollowed = dict.fromkeys(self._not_followed, "a change was not followed, see the log")
        return {**unfollowed, **self._left_out}

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

    def replace(self, values: Mapping[str, T | None], version: str = "") -> None:
        """Store a new complete list; listeners get all differences, including removals.

        None: the object exists, and is not cached. `version` is the list's version. Values that
        were offered with a later version stay.
        """
        for _ in self.replacing(values, version):
            pass

    def replacing(self, values: Mapping[str, T | None], version: str = "") -> Iterator[None]:
        """Do as `replace`, and yield after each slice of the keys, for the caller to give way.

        The cache has the whole list at once, and is synced once all of it is reported. What changes
        meanwhile is reported after the key's own difference. What a caller leaves unreported is
        reported with the next list.
        """
        self._left_out = {key: why for key, why in self._left_out.items() if key in values}
        self._not_followed &= values.keys()
        version_number = _number(version)
        if version_number < self._newest:
            # A backup of etcd was restored: the newer versions no longer exist.
            self._ahead.clear()
        self._newest = version_number
        self._ahead = {
            key: ahead_version
            for key, ahead_version in self._ahead.items()
            if ahead_version > version_number
        }
        before = self._values
        self._values = {key: value for key, value in values.items() if value is not None}
        for key in self._ahead:
            self._set(key, before.get(key))
        self._unreported = {
            **dict.fromkeys((*before, *self._values)),
            **before,
            **self._unreported,
        }
        for number, key in enumerate(tuple(self._unreported), 1):
            self._report(key)
            if number % SLICE == 0:
                yield
        self._synced.set()

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

    def remove(self, raw: dict[str, Any], version: str = "") -> None:
        """Remove an object that the watch reports as deleted, as it was at last.

        Listeners are told of that state first. The object may exist still, without the labels that
        the watch selects. `version` is the event's.
        """
        key, last = self.entry(raw)
        if last is not None:
            self.put(key, last, version)
        self._left_out.pop(key, None)
        self.put(key, None, version)

    def passed(self, version: str) -> None:
        """Record a bookmark: the watch is complete up to `version`.

        A value that was offered with an earlier version, and not delivered by the watch, is not in
        the collection any more; for example, its labels have changed.
        """
        self._newest = max(_number(version), self._newest)
        for key in [
            key for key, ahead_version in self._ahead.items() if ahead_version <= self._newest
        ]:
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

    def _report(self, key: str) -> None:
        if key in self._unreported:
            self._notify(key, self._unreported.pop(key), self._values.get(key))

    def _change(self, key: str, value: T | None) -> None:
        self._report(key)
        before = self._values.get(key)
        self._set(key, value)
        self._notify(key, before, value)

    def _set(self, key: str, value: T | None) -> None:
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value

    def _notify(self, key: str, before: T | None, after: T | None) -> None:
        if before == after:
            return
        self._not_followed.discard(key)
        for listener in self._listeners:
            try:
                listener(Change(key, before, after))
            except Exception:
                self.unreadable += 1
                log.exception("change not followed", extra={"object": key})
                if after is not None:
                    self._not_followed.add(key)


class _NoName(FairleadError):
    """An object without a name."""


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0
