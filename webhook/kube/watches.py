"""The supervisor of all watches of a process: one place starts, ends and counts them."""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from webhook.backoff import WATCH_DELAYS
from webhook.kube.client import A_PAGE
from webhook.kube.reflector import SILENCE, Reflector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from webhook.api_paths import CollectionPath
    from webhook.backoff import Delays
    from webhook.kube.cache import Cache
    from webhook.kube.client import Client

T = TypeVar("T")

# What `Watches.add` returns. Others may not make one, or run it.
Watch = Reflector
# Seconds after which a watch without a message ends, and lists again.
LONGEST_SILENCE: Final = SILENCE


class WatchState(NamedTuple):
    """All watches of one resource.

    age: seconds since the API server's last message, of the oldest; infinite before the first.
    failing: seconds for which one has failed again and again.
    left_out: objects that cannot be read now.
    lists, opened, errors, restarts, unreadable: counts since the process started.
    """

    age: float = 0.0
    failing: float = 0.0
    left_out: int = 0
    lists: int = 0
    opened: int = 0
    errors: int = 0
    restarts: int = 0
    unreadable: int = 0

    def plus(self, watch: Watch[Any]) -> WatchState:
        """Return the state together with that of another watch."""
        age = watch.cache.age()
        return WatchState(
            max(self.age, math.inf if age is None else age),
            max(self.failing, watch.failing),
            self.left_out + len(watch.cache.faults),
            self.lists + watch.lists,
            self.opened + watch.watches,
            self.errors + watch.errors,
            self.restarts + watch.restarts,
            self.unreadable + watch.cache.unreadable,
        )

    def ended(self) -> WatchState:
        """Return the counts alone, which stay when a watch is removed."""
        return self._replace(age=0.0, failing=0.0, left_out=0)


class Watches:
    """The watches of a process, each kept current by a task of its own.

    The tasks run within `async with`. A watch ends by `remove`, or with the block; nothing else
    ends one: after any exception it is started again, with growing pauses.
    """

    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.client = client
        self._clock = clock
        # Tasks from `async with` on.
        self._tasks: dict[Watch[Any], asyncio.Task[None] | None] = {}
        self._group: asyncio.TaskGroup | None = None
        self._ended: dict[str, WatchState] = {}

    async def __aenter__(self) -> Self:
        """Start all watches that were added before."""
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        for watch in self._tasks:
            self._start(watch)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        group, self._group = self._group, None
        self.remove(*tuple(self._tasks))
        if group:
            # Without the block's exception, which the group would wrap.
            await group.__aexit__(None, None, None)

    def add(
        self,
        path: CollectionPath,
        cache: Cache[T],
        *,
        required: bool = True,
        empty_if_undefined: bool = False,
        query: Mapping[str, str] | None = None,
        page_size: int = A_PAGE,
        metadata_only: bool = False,
        delays: Delays = WATCH_DELAYS,
    ) -> Watch[T]:
        """Keep `cache` current with the collection at `path`, from now on. See Reflector."""
        watch = Reflector(
            self.client,
            path,
            cache,
            required=required,
            empty_if_undefined=empty_if_undefined,
            query=query or {},
            page_size=page_size,
            metadata_only=metadata_only,
            delays=delays,
            clock=self._clock,
        )
        self._begin(watch)
        return watch

    def _begin(self, watch: Watch[Any]) -> None:
        self._tasks[watch] = None
        if self._group:
            self._start(watch)

    def _start(self, watch: Watch[Any]) -> None:
        if self._group:
            self._tasks[watch] = self._group.create_task(watch.keep_current())

    def remove(self, *watches: Watch[Any]) -> None:
        """End these watches. Their caches stay as they are, and their counts stay counted."""
        for watch in watches:
            if watch not in self._tasks:
                continue
            if task := self._tasks.pop(watch):
                task.cancel()
            state = self._ended.get(watch.resource, WatchState())
            self._ended[watch.resource] = state.plus(watch).ended()

    def restart(self, *watches: Watch[Any]) -> None:
        """Begin these again with a list: their objects may read otherwise now.

        A changed definition does that, without an event and without a new version of an object.
        """
        for watch in watches:
            if task := self._tasks.get(watch):
                task.cancel()
                watch.forget_version()
                self._start(watch)

    @contextmanager
    def scope(self) -> Iterator[Watches]:
        """Yield what adds watches to these that end with the block, such as those of a leader."""
        part = _Part(self)
        try:
            yield part
        finally:
            self.remove(*part.own)

    def states(self) -> Mapping[str, WatchState]:
        """Return the state by resource. Another thread may call it."""
        states = dict(self._ended)
        for watch in list(self._tasks):
            states[watch.resource] = states.get(watch.resource, WatchState()).plus(watch)
        return states

    def troubles(self) -> Sequence[str]:
        """Return what is wrong with watches, each with its resource; most often nothing."""
        troubles = ((watch.resource, watch.trouble()) for watch in self._tasks)
        return tuple(dict.fromkeys(f"{name}: {trouble}" for name, trouble in troubles if trouble))

    def __len__(self) -> int:
        return len(self._tasks)


class _Part(Watches):
    """Adds to the watches of a process, and remembers what it added."""

    def __init__(self, whole: Watches) -> None:
        super().__init__(whole.client, clock=whole._clock)  # noqa: SLF001 (a part of it)
        self._whole = whole
        self.own: list[Watch[Any]] = []

    def _begin(self, watch: Watch[Any]) -> None:
        self.own.append(watch)
        self._whole._begin(watch)  # noqa: SLF001 (a part of it)

    def restart(self, *watches: Watch[Any]) -> None:
        """Do as the whole does."""
        self._whole.restart(*watches)
