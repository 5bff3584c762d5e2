"""Keep a cache current: list, watch, and list again after an error."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import KW_ONLY, dataclass, field
from http import HTTPStatus
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from webhook.api_paths import ApiPath, CollectionPath
from webhook.backoff import WATCH_DELAYS
from webhook.errors import ClusterError
from webhook.kube.answers import TIMEOUT, is_busy
from webhook.kube.cache import SLICE, version_of
from webhook.kube.client import A_PAGE, METADATA, METADATA_LIST
from webhook.kube.failure_text import Call
from webhook.kube.rate_limit import Backoff
from webhook.kube.transport import JSON
from webhook.kube.watch_stream import Lines, parse_event

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
# Objects that cannot be read which a text names.
_MOST_NAMED: Final = 3


@dataclass(eq=False, repr=False)
class Reflector(Generic[T]):
    """Lists and watches one collection, and updates `cache`. Only `Watches` makes and runs one.

    `path` is the collection's (/api/v1/namespaces); `query` may select (labelSelector). A watch may
    be silent for `silence` seconds, and `delays` are those between failures. With `metadata_only`,
    objects come without spec, status and data. Clock, sleep and random numbers are arguments.

    A collection that is not `required` may be undefined in the cluster, which is no failure; with
    `empty_if_undefined`, its cache is then synced, and empty.

    `lists` and `watches` count the complete lists and the opened watches; `errors` counts failures,
    and `restarts` those with an exception that nobody expected, each one a bug. `last_error` is
    None while a watch is open.
    """

    client: Client
    path: CollectionPath
    cache: Cache[T]
    _: KW_ONLY
    required: bool = True
    empty_if_undefined: bool = False
    query: Mapping[str, str] = field(default_factory=dict)
    page_size: int = A_PAGE
    metadata_only: bool = False
    silence: float = SILENCE
    delays: Delays = WATCH_DELAYS
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Random = field(default_factory=Random)  # It spreads load, and keeps no secret.
    last_error: ClusterError | None = field(default=None, init=False)
    undefined: bool = field(default=False, init=False)
    lists: int = field(default=0, init=False)
    watches: int = field(default=0, init=False)
    errors: int = field(default=0, init=False)
    restarts: int = field(default=0, init=False)
    _failing_since: float | None = field(default=None, init=False)
    _version: str | None = field(default=None, init=False)
    _failures: int = field(default=0, init=False)
    _opened: float | None = field(default=None, init=False)
    _delivered: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._backoff = Backoff(self.random, self.delays)

    @property
    def resource(self) -> str:
        """The plural name of what is watched: the last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def _call(self) -> Call:
        return Call("WATCH", self.path)

    @property
    def failing(self) -> float:
        """For how many seconds it has failed again and again; 0.0 while a watch is open."""
        if self.last_error is None or self.undefined or self._failing_since is None:
            return 0.0
        return self.clock() - self._failing_since

    def trouble(self) -> str:
        """Return why the cache may differ from the cluster, and since when; "" if it does not."""
        parts = []
        if self.last_error and not self.undefined:
            since = f"failing for {self.failing:.0f} s: " if self.failing >= SETTLED else ""
            parts.append(f"{since}{self.last_error}")
        faults = self.cache.faults
        parts += [f"{key} is left out: {why}" for key, why in islice(faults.items(), _MOST_NAMED)]
        if len(faults) > _MOST_NAMED:
            parts.append(f"and {len(faults) - _MOST_NAMED} more objects are left out")
        return "; ".join(parts)

    def forget_version(self) -> None:
        """Have the next turn begin with a list."""
        self._version = None

    async def keep_current(self) -> NoReturn:
        """List and watch until cancelled, whatever happens."""
        while True:
            try:
                await self._turn()
            except ClusterError as error:
                pause = self._after(error)
            except Exception as error:
                # A bug must not end the watch silently: what depends on the cache would go on.
                log.exception("watch %s: this is a bug", self.path)
                self.restarts += 1
                reason = f"{type(error).__name__}, which is a bug: see the log"
                pause = self._after(ClusterError(f"cannot {self._call}: {reason}"), relist=True)
            else:
                continue
            await self.sleep(pause)

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
                self._failing_since = None
                self._backoff.reset()
        if self._delivered:
            # The API server ends a watch that falls behind. A delay would only increase the
            # backlog.
            self._backoff.reset()
        elif lasted < SETTLED:
            # Otherwise a server that ends each watch at once would be called in a tight loop.
            raise ClusterError(f"cannot {self._call}: the server ended it after {lasted:.1f} s")

    def _after(self, error: ClusterError, *, relist: bool = False) -> float:
        """Record a failure; return the seconds to wait before the next attempt."""
        self.last_error = error
        self.errors += 1
        self._failures += 1
        if self._failing_since is None:
            self._failing_since = self.clock()
        # A silent watch may have missed events; a broken one continues at its version, and so does
        # one of a busy server.
        broken = error.status is None and error.reason != TIMEOUT and not relist
        if not (broken or is_busy(error)) or self._failures >= FAILURES_BEFORE_LIST:
            self._version = None
            self._failures = 0
        requested = min(error.retry_after or 0.0, LONGEST_RETRY_AFTER)
        pause = max(self._backoff.next(), requested)
        log.warning("%s; %s in %.1f s", error, "list" if self._version is None else "watch", pause)
        return pause

    async def _list(self) -> str:
        try:
            listing = await self.list(self.cache.entry)
        except ClusterError as error:
            self.undefined = not self.required and await self._is_undefined(error)
            if self.undefined:
                self.cache.touch()
                if self.empty_if_undefined and not self.cache.synced:
                    self.cache.replace({})
            raise
        self.undefined = False
        self.lists += 1
        self.cache.touch()
        for _ in self.cache.replacing(dict(listing.items), listing.resource_version):
            await asyncio.sleep(0)
        return listing.resource_version

    async def _is_undefined(self, error: ClusterError) -> bool:
        """Return True if the list failed because the cluster does not define the resource.

        The error does not show this: without the right to list, a missing resource is forbidden
        too. All clients may read discovery.
        """
        if error.status not in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
            return False
        version = ApiPath(*self.path.split("/")[1 : 3 if self.path.startswith("/api/") else 4])
        try:
            resources = await self.client.resources(version)
        except ClusterError:
            return False
        return all(resource.get("name") != self.resource for resource in resources)

    async def list(self, keep: Callable[[dict[str, Any]], V]) -> Listing[V]:
        """Read the current collection without updating the cache. Raises ClusterError."""
        return await self.client.list(
            self.path,
            keep,
            query=self.query,
            page_size=self.page_size,
            accept=METADATA_LIST if self.metadata_only else JSON,
        )

    async def catch_up(self) -> None:
        """List the collection, and apply changes that the watch has not delivered yet.

        Raises ClusterError. The watch continues; its events for older versions are ignored.
        """

        def entry(raw: dict[str, Any]) -> tuple[str, T | None, str]:
            return *self.cache.entry(raw), version_of(raw)

        before = set(self.cache.items())
        listing = await self.list(entry)
        gone = before - {key for key, _, _ in listing.items}
        offers = [*listing.items, *((key, None, listing.resource_version) for key in gone)]
        for number, (key, kept, version) in enumerate(offers, 1):
            self.cache.offer(key, kept, version)
            if number % SLICE == 0:
                await asyncio.sleep(0)

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
            event = parse_event(line, self._call)
        except ClusterError:
            # After a 410 or an invalid event only a new list is reliable.
            self._version = None
            raise
        version = event.resource_version
        if event.type == "BOOKMARK":
            self.cache.passed(version)
        else:
            if event.type == "DELETED":
                self.cache.remove(event.object, version)
            else:
                self.cache.put(*self.cache.entry(event.object), version)
            self._delivered = True
        self._version = version
        self._failures = 0
        self._failing_since = None
        self.cache.touch()
