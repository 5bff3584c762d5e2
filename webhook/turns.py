"""Turns of callers: fair between names, a few at a time, or one call that all of them share."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

_Entry = TypeVar("_Entry")
_Result = TypeVar("_Result")


async def gather_some(
    number: int, call: Callable[[_Entry], Awaitable[_Result]], entries: Iterable[_Entry]
) -> list[_Result]:
    """Return the results for the entries, in their order; `number` calls run at a time."""
    limit = asyncio.Semaphore(number)

    async def call_in_turn(entry: _Entry) -> _Result:
        async with limit:
            return await call(entry)

    return await asyncio.gather(*map(call_in_turn, entries))


class Turns(Generic[_Entry]):
    """Entries in one line for each name. The lines take turns, one entry at a time."""

    def __init__(self) -> None:
        # By name, the one whose turn it is first.
        self._lines: OrderedDict[str, deque[_Entry]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, name: str, entry: _Entry) -> None:
        """Put `entry` at the end of its line."""
        self._lines.setdefault(name, deque()).append(entry)
        self._length += 1

    def take(self) -> _Entry:
        """Remove and return the first entry of the next line. Raises KeyError if there is none."""
        name, line = self._lines.popitem(last=False)
        entry = line.popleft()
        if line:
            self._lines[name] = line
        self._length -= 1
        return entry

    def remove(self, name: str, entry: _Entry) -> None:
        """Remove `entry`. Does nothing if it was taken before."""
        line = self._lines.get(name, deque())
        if entry in line:
            line.remove(entry)
            self._length -= 1
            if not line:
                del self._lines[name]

    def has_others(self, name: str) -> bool:
        """Return whether a line of another name has entries."""
        return len(self._lines) > (name in self._lines)


class Window:
    """An adaptive limit of concurrent callers, which take turns by name. For one event loop.

    The size begins at 1, and each success adds 1: so it doubles by the round, as the batches of the
    Job controller do (1, 2, 4, ...), up to `most`. A refusal begins at 1 again. The first refusal
    thus costs one call, and not as many as were asked for. `Window(1)` is a lock.
    """

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"{most} at once: want at least 1")
        self._most = most
        self._size = 1
        self._inside = 0
        self._waiters = Turns[asyncio.Future[None]]()

    @property
    def size(self) -> int:
        """How many may be inside, now."""
        return self._size

    @property
    def inside(self) -> int:
        """How many are inside. More than `size` just after a refusal."""
        return self._inside

    @property
    def waiting(self) -> int:
        """How many wait outside."""
        return len(self._waiters)

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Enter, and leave afterwards."""
        await self.enter(name)
        try:
            yield
        finally:
            self.leave()

    async def enter(self, name: str = "") -> None:
        """Wait for a place. Every one that entered must `leave`."""
        if not self._waiters and self._inside < self._size:
            self._inside += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(name, place)
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                self._waiters.remove(name, place)
            else:
                # It had just been given a place.
                self.leave()
            raise

    def leave(self) -> None:
        """Give the place back."""
        self._inside -= 1
        self._let_in()

    def grow(self) -> None:
        """Record that a call went well."""
        self._size = min(self._most, self._size + 1)
        self._let_in()

    def shrink(self) -> None:
        """Record that a call met overload."""
        self._size = 1

    def _let_in(self) -> None:
        while self._waiters and self._inside < self._size:
            place = self._waiters.take()
            # One that is cancelled has not had its turn to leave the line yet.
            if not place.done():
                self._inside += 1
                place.set_result(None)


class SharedCalls(Generic[_Result]):
    """Calls that concurrent callers share: one at a time, `pause` seconds between two starts."""

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._turn = asyncio.Lock()
        self._began = -math.inf
        # By key, the calls that have not started.
        self._next: dict[str, asyncio.Task[_Result]] = {}

    async def share(self, key: str, call: Callable[[], Awaitable[_Result]]) -> _Result:
        """Return the result of a call that starts later, of the first caller with this key."""
        task = self._next.get(key)
        if task is None:
            task = self._next[key] = asyncio.create_task(self._begin(key, call))
            # If all callers are cancelled, nothing else retrieves the task's exception.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            # The cancellation of one caller must not cancel the shared call.
            return await asyncio.shield(task)
        finally:
            # Else what it raises, which has this frame and those of its callers, is in a cycle.
            del task

    async def _begin(self, key: str, call: Callable[[], Awaitable[_Result]]) -> _Result:
        loop = asyncio.get_running_loop()
        async with self._turn:
            await asyncio.sleep(self._began + self._pause - loop.time())
            self._began = loop.time()
            del self._next[key]
            return await call()
