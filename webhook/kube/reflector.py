"""Keeps a cache current: list once, watch from there, and begin anew when that breaks."""

from __future__ import annotations

import asyncio
import logging
import time
from http import HTTPStatus
from random import Random
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from webhook.backoff import WATCH_DELAYS
from webhook.errors import ClusterError
from webhook.kube.answers import TIMEOUT
from webhook.kube.backoff import Backoff
from webhook.kube.events import key_of, parse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import NoReturn

    from webhook.backoff import Delays
    from webhook.kube.cache import Cache
    from webhook.kube.client import Client

T = TypeVar("T")

log = logging.getLogger(__name__)

# Seconds that one watch lasts; spread, so that watches of one age do not all end at once.
WATCH_SECONDS: Final = (300, 600)
# Bookmarks come once a minute. One that is late means that the watch may be dead, and a list tells.
SILENCE: Final = 75.0
# A watch that held this long, in seconds, was no failure, whatever ended it.
SETTLED: Final = 10.0
# Failures in a row, without one event between them, after which the version is not believed any
# more: an etcd that was restored from a backup never reaches it again.
FAILURES_BEFORE_LIST: Final = 5
# Seconds. A proxy's maintenance page may ask for hours.
LONGEST_RETRY_AFTER: Final = 300.0

# The server, or something before it, is busy or starting: the watch goes on where it was.
_PASSING: Final = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
# Far above what etcd stores (1.5 MiB an object, some times more as JSON): a server that never
# ends a line must not take all our memory.
LONGEST: Final = 64 * 2**20


class Lines:
    """The lines of one stream. Only what ended in a newline is a line."""

    def __init__(self, *, longest: int = LONGEST) -> None:
        self._longest = longest
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without their newlines.

        Raises ClusterError if a line grows beyond `longest` bytes.
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
        """The stream has ended: raises ClusterError if that was in the middle of a line."""
        if self._rest:
            raise ClusterError(f"the stream broke off within a line, after {len(self._rest)} bytes")


class Reflector(Generic[T]):
    """Lists and watches one collection, and feeds `cache` with what it sees.

    `path` is the collection's (/api/v1/namespaces); `query` may select (labelSelector); a watch may
    say nothing for `silence` seconds; between failures there are at most some `longest` seconds.
    Clock, sleep and random numbers are handed in.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        cache: Cache[T],
        *,
        query: Mapping[str, str] | None = None,
        page_size: int = 500,
        silence: float = SILENCE,
        delays: Delays = WATCH_DELAYS,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Random | None = None,
    ) -> None:
        self._client = client
        self._path = path
        self._cache = cache
        self._query = dict(query or {})
        self._page_size = page_size
        self._silence = silence
        self._clock = clock
        self._sleep = sleep
        self._random = random or Random()  # noqa: S311 (spreads load, keeps no secret)
        self._backoff = Backoff(self._random, delays)
        self._version: str | None = None
        self._failures = 0
        self._opened: float | None = None
        self._delivered = False
        self._last_error: ClusterError | None = None
        self._lists = 0
        self._watches = 0

    @property
    def last_error(self) -> ClusterError | None:
        """What went wrong last, for a readiness detail; None while a watch delivers."""
        return self._last_error

    @property
    def lists(self) -> int:
        """How many whole lists have been read."""
        return self._lists

    @property
    def watches(self) -> int:
        """How many watches have been opened."""
        return self._watches

    async def run(self) -> NoReturn:
        """Go on until cancelled. Only a bug, in `keep` or in a listener, makes it raise."""
        while True:
            try:
                await self._turn()
            except ClusterError as error:
                await self._sleep(self._after(error))

    async def _turn(self) -> None:
        """List if need be, then watch until the server ends it, as it does after some minutes."""
        if self._version is None:
            self._version = await self._list()
        self._opened = None
        self._delivered = False
        try:
            await self._watch(self._version)
        finally:
            lasted = 0.0 if self._opened is None else self._clock() - self._opened
            if lasted >= SETTLED:
                self._backoff.reset()
        if self._delivered:
            # The API server ends a watch that it cannot feed as fast as things change: to wait
            # would only leave more to tell.
            self._backoff.reset()
        elif lasted < SETTLED:
            # Else a server that ends each watch at once would be asked in a tight loop.
            raise ClusterError(f"watch {self._path}: the server ended it after {lasted:.1f} s")

    def _after(self, error: ClusterError) -> float:
        """Take note of a failure; the seconds to wait before the next attempt."""
        self._last_error = error
        self._failures += 1
        # A silent watch may have missed anything; a broken one goes on where it was.
        broken = error.status is None and error.reason != TIMEOUT
        if not (broken or error.status in _PASSING) or self._failures >= FAILURES_BEFORE_LIST:
            self._version = None
            self._failures = 0
        asked = min(error.retry_after or 0.0, LONGEST_RETRY_AFTER)
        pause = max(self._backoff.next(), asked)
        log.warning("%s; %s in %.1f s", error, "list" if self._version is None else "watch", pause)
        return pause

    async def _list(self) -> str:
        listing = await self._client.list(
            self._path, self._entry, query=self._query, page_size=self._page_size
        )
        self._lists += 1
        self._cache.touch()
        kept = {key: kept for key, kept in listing.items if kept is not None}
        self._cache.replace(kept, listing.resource_version)
        return listing.resource_version

    async def _watch(self, version: str) -> None:
        query = {
            **self._query,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(self._random.randint(*WATCH_SECONDS)),
        }
        async with self._client.stream(self._path, query=query, silence=self._silence) as read:
            self._watches += 1
            self._opened = self._clock()
            self._last_error = None
            self._cache.touch()
            lines = Lines()
            while chunk := await read():
                for line in lines.feed(chunk):
                    self._apply(line)
            lines.finish()

    def _apply(self, line: bytes) -> None:
        try:
            event = parse(line, f"watch {self._path}")
        except ClusterError:
            # 410, or what we cannot follow: only a new list tells what is there.
            self._version = None
            raise
        version = event.resource_version
        if event.type == "BOOKMARK":
            self._cache.passed(version)
        else:
            kept = None if event.type == "DELETED" else self._cache.keep(event.object)
            self._cache.put(key_of(event.object), kept, version)
            self._delivered = True
        self._version = version
        self._failures = 0
        self._cache.touch()

    def _entry(self, seen: dict[str, Any]) -> tuple[str, T | None]:
        return key_of(seen), self._cache.keep(seen)
