"""Keep a cache current: list, watch, and list again after an error."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import KW_ONLY, dataclass, field
from http import HTTPStatus
from random import Random
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from webhook.backoff import WATCH_DELAYS
from webhook.errors import ClusterError
from webhook.kube.answers import TIMEOUT, decode, from_status
from webhook.kube.client import METADATA, METADATA_LIST
from webhook.kube.rate_limit import Backoff
from webhook.kube.transport import JSON

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import NoReturn

    from webhook.backoff import Delays
    from webhook.kube.cache import Cache
    from webhook.kube.client import Client, Listing

T = TypeVar("T")
V = TypeVar("V")

log = logging.getLogger(__name__)

# Seconds that one watch lasts; random, so that watches do not all end at the same time.
WATCH_SECONDS: Final = (300, 600)
# Bookmarks arrive once a minute. If one is late, the watch may be dead, so list again.
SILENCE: Final = 75.0
# A watch that lasted this many seconds is not a failure, however it ended.
SETTLED: Final = 10.0
# Consecutive failures without an event after which the version is discarded: an etcd that was
# restored from a backup never reaches it again.
FAILURES_BEFORE_LIST: Final = 5
# Seconds. The maintenance page of a proxy may request hours.
LONGEST_RETRY_AFTER: Final = 300.0

# The server, or a proxy in front of it, is busy or starting: continue the watch at its version.
_PASSING: Final = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
# Bytes. Far above what etcd stores (1.5 MiB per object, several times more as JSON). A server that
# never ends a line must not exhaust the memory.
LONGEST: Final = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Event:
    """A watch event. A bookmark has only a version, up to which the watch is complete."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: dict[str, Any]
    resource_version: str


def parse_event(line: bytes, where: str) -> Event:
    """Parse one line. Raises ClusterError for an ERROR event or an invalid line."""
    event = decode(line, where)
    kind, raw = event.get("type"), event.get("object")
    if not isinstance(raw, dict):
        raise ClusterError(f"{where}: an event without an object came")
    if kind == "ERROR":
        raise from_status(raw, where)
    if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
        raise ClusterError(f"{where}: an event of the unknown type {kind!r} came")
    version = (raw.get("metadata") or {}).get("resourceVersion")
    if not isinstance(version, str) or not version:
        raise ClusterError(f"{where}: an event without a resourceVersion came")
    return Event(kind, raw, version)


def key_of(raw: dict[str, Any]) -> str:
    """Return an object's cache key: namespace/name, or the name if it is cluster-scoped."""
    metadata = raw["metadata"]
    name: str = metadata["name"]
    return f"{metadata['namespace']}/{name}" if metadata.get("namespace") else name


class Lines:
    """The lines of one stream. A line must end in a newline."""

    def __init__(self, *, longest: int = LONGEST) -> None:
        self._longest = longest
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes, without their newlines.

        Raises ClusterError if a line exceeds `longest` bytes.
        """
        first, *others = chunk.split(b"\n")
        self._rest += first
        if not others:
            if len(self._rest) > self._longest:
                raise ClusterError(f"a line of over {self._longest} bytes came from the API server")
            return []
        whole = [bytes(self._rest), *others[:-1]]
        self._rest = bytearray(others[-1])
        return whole

    def finish(self) -> None:
        """Record the end of the stream. Raises ClusterError if a line is incomplete."""
        if self._rest:
            raise ClusterError(f"the stream broke off within a line, after {len(self._rest)} bytes")


@dataclass(eq=False, repr=False)
class Reflector(Generic[T]):
    """Lists and watches one collection, and updates `cache`.

    `path` is the collection's (/api/v1/namespaces); `query` may select (labelSelector). A watch may
    be silent for `silence` seconds, and `delays` are those between failures. With `metadata_only`,
    objects come without spec, status and data. Clock, sleep and random numbers are arguments.

    `lists` and `watches` count the complete lists and the opened watches; `last_error` is for a
    readiness detail, None while a watch delivers events.
    """

    client: Client
    path: str
    cache: Cache[T]
    _: KW_ONLY
    query: Mapping[str, str] = field(default_factory=dict)
    page_size: int = 500
    metadata_only: bool = False
    silence: float = SILENCE
    delays: Delays = WATCH_DELAYS
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Random = field(default_factory=Random)  # It spreads load, and keeps no secret.
    last_error: ClusterError | None = field(default=None, init=False)
    lists: int = field(default=0, init=False)
    watches: int = field(default=0, init=False)
    _version: str | None = field(default=None, init=False)
    _failures: int = field(default=0, init=False)
    _opened: float | None = field(default=None, init=False)
    _delivered: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._backoff = Backoff(self.random, self.delays)

    async def run(self) -> NoReturn:
        """List and watch until cancelled, in spite of API errors and invalid objects."""
        while True:
            try:
                await self._turn()
            except ClusterError as error:
                await self.sleep(self._after(error))

    async def _turn(self) -> None:
        """List if needed, then watch until the server ends it, which it does after some minutes."""
        if self._version is None:
            self._version = await self._list()
        self._opened = None
        self._delivered = False
        try:
            await self._watch(self._version)
        finally:
            lasted = 0.0 if self._opened is None else self.clock() - self._opened
            if lasted >= SETTLED:
                self._backoff.reset()
        if self._delivered:
            # The API server ends a watch that falls behind. A delay would only increase the
            # backlog.
            self._backoff.reset()
        elif lasted < SETTLED:
            # Otherwise a server that ends each watch at once would be called in a tight loop.
            raise ClusterError(f"watch {self.path}: the server ended it after {lasted:.1f} s")

    def _after(self, error: ClusterError) -> float:
        """Record a failure; return the seconds to wait before the next attempt."""
        self.last_error = error
        self._failures += 1
        # A silent watch may have missed events; a broken one continues at its version.
        broken = error.status is None and error.reason != TIMEOUT
        if not (broken or error.status in _PASSING) or self._failures >= FAILURES_BEFORE_LIST:
            self._version = None
            self._failures = 0
        requested = min(error.retry_after or 0.0, LONGEST_RETRY_AFTER)
        pause = max(self._backoff.next(), requested)
        log.warning("%s; %s in %.1f s", error, "list" if self._version is None else "watch", pause)
        return pause

    async def _list(self) -> str:
        listing = await self.list(self._entry)
        self.lists += 1
        self.cache.touch()
        kept = {key: kept for key, kept in listing.items if kept is not None}
        self.cache.replace(kept, listing.resource_version)
        return listing.resource_version

    async def list(self, keep: Callable[[dict[str, Any]], V]) -> Listing[V]:
        """Read the current collection without updating the cache. Raises ClusterError."""
        return await self.client.list(
            self.path,
            keep,
            query=self.query,
            page_size=self.page_size,
            accept=METADATA_LIST if self.metadata_only else JSON,
        )

    async def _watch(self, version: str) -> None:
        query = {
            **self.query,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(self.random.randint(*WATCH_SECONDS)),
        }
        accept = METADATA if self.metadata_only else JSON
        async with self.client.stream(
            self.path, query=query, silence=self.silence, accept=accept
        ) as read:
            self.watches += 1
            self._opened = self.clock()
            self.last_error = None
            self.cache.touch()
            lines = Lines()
            while chunk := await read():
                for line in lines.feed(chunk):
                    self._apply(line)
            lines.finish()

    def _apply(self, line: bytes) -> None:
        try:
            event = parse_event(line, f"watch {self.path}")
        except ClusterError:
            # After a 410 or an invalid event only a new list is reliable.
            self._version = None
            raise
        version = event.resource_version
        if event.type == "BOOKMARK":
            self.cache.passed(version)
        else:
            kept = None if event.type == "DELETED" else self.cache.keep(event.object)
            self.cache.put(key_of(event.object), kept, version)
            self._delivered = True
        self._version = version
        self._failures = 0
        self.cache.touch()

    def _entry(self, raw: dict[str, Any]) -> tuple[str, T | None]:
        return key_of(raw), self.cache.keep(raw)
