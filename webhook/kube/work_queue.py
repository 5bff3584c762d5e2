"""Hands keys to workers, no key to two of them at once, and those that failed ever later."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import OrderedDict, deque
from itertools import count
from random import Random
from typing import TYPE_CHECKING

from webhook.backoff import RECONCILE_DELAYS
from webhook.kube.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable


class Agenda:
    """Keys that are ready, in work, or due later.

    The rules are client-go's (`util/workqueue`): a key is handed out in the order of its coming, to
    one worker at a time; one that is added again while it waits is handed out once; one that is
    added while in work is ready again when that is done; of several later times the earliest holds.
    Times are seconds of whatever clock the caller has.
    """

    def __init__(self) -> None:
        # Each with the time since when it waits.
        self._ready: OrderedDict[str, float] = OrderedDict()
        self._again: dict[str, float] = {}
        self._working: set[str] = set()
        self._due: dict[str, float] = {}
        # By time; what `_due` does not say any more is stale, and skipped.
        self._heap: list[tuple[float, int, str]] = []
        self._numbers = count()

    @property
    def ready(self) -> int:
        """How many keys wait for a worker."""
        return len(self._ready)

    @property
    def working(self) -> int:
        """How many keys are in work."""
        return len(self._working)

    @property
    def delayed(self) -> int:
        """How many keys are due later."""
        return len(self._due)

    @property
    def since(self) -> float | None:
        """Since when the first ready key has been waiting; None if none is ready."""
        return next(iter(self._ready.values()), None)

    @property
    def next_due(self) -> float | None:
        """The earliest of the later times."""
        return self._heap[0][0] if self._heap else None

    def add(self, key: str, now: float) -> None:
        """Have `key` worked on as soon as a worker is free; a later time of it stays as it is."""
        if key in self._working:
            self._again.setdefault(key, now)
        else:
            self._ready.setdefault(key, now)

    def add_at(self, key: str, due: float) -> None:
        """Have `key` added at `due`, or earlier if it is to be added earlier already."""
        if due >= self._due.get(key, float("inf")):
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, next(self._numbers), key))
        if len(self._heap) > 2 * len(self._due) + 64:
            # A key that is moved ever nearer would leave a stale entry each time.
            self._heap = [(at, next(self._numbers), key) for key, at in self._due.items()]
            heapq.heapify(self._heap)

    def wake(self, now: float) -> None:
        """Add every key whose time has come."""
        while self._heap and (self._heap[0][0] <= now or self._stale()):
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key, now)

    def take(self) -> str | None:
        """The key that has waited longest, which is in work from now on; None if none is ready."""
        if not self._ready:
            return None
        key, _ = self._ready.popitem(last=False)
        self._working.add(key)
        return key

    def done(self, key: str) -> None:
        """The work on `key` has ended. Raises KeyError if it was not in work: that is a bug."""
        self._working.remove(key)
        if (since := self._again.pop(key, None)) is not None:
            self._ready[key] = since

    def _stale(self) -> bool:
        due, _, key = self._heap[0]
        return self._due.get(key) != due


class WorkQueue:
    """A queue of keys for workers that are tasks of one event loop.

    A worker goes `while (key := await queue.get()) is not None:`, and calls `done(key)` whatever
    came of it; then `forget(key)` if it went well, or `retry(key)` if it did not. `clock` is the
    event loop's own.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        random: Random | None = None,
    ) -> None:
        self._clock = clock
        self._random = random or Random()  # noqa: S311 (spreads load, keeps no secret)
        self._agenda = Agenda()
        self._backoffs: dict[str, Backoff] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = float("inf")
        self._shut = False

    @property
    def depth(self) -> int:
        """How many keys are ready and wait for a worker."""
        return self._agenda.ready

    @property
    def working(self) -> int:
        """How many keys are in work."""
        return self._agenda.working

    @property
    def delayed(self) -> int:
        """How many keys are due later."""
        return self._agenda.delayed

    def oldest_age(self) -> float:
        """For how many seconds the first ready key has been waiting; 0.0 if none is."""
        since = self._agenda.since
        return 0.0 if since is None else self._clock() - since

    def add(self, key: str) -> None:
        """Have `key` worked on soon. After `shut_down` this and all that follow do nothing."""
        if not self._shut:
            self._agenda.add(key, self._clock())
            self._wake_worker()

    def add_after(self, key: str, seconds: float) -> None:
        """Have `key` added after `seconds`, or at an earlier time that was asked for before."""
        if seconds <= 0:
            self.add(key)
        elif not self._shut:
            self._agenda.add_at(key, self._clock() + seconds)
            self._set_timer()

    def retry(self, key: str) -> float:
        """Have `key`, which failed, added after its next backoff: the seconds."""
        if key not in self._backoffs:
            self._backoffs[key] = Backoff(self._random, RECONCILE_DELAYS)
        seconds = self._backoffs[key].next()
        self.add_after(key, seconds)
        return seconds

    def forget(self, key: str) -> None:
        """`key` went well, or is gone: its next backoff is the first again."""
        self._backoffs.pop(key, None)

    async def get(self) -> str | None:
        """Wait for the next key, which is in work until `done`. None: the queue was shut down."""
        while not self._shut:
            if (key := self._agenda.take()) is not None:
                return key
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
                else:
                    # It was woken for a key that another must take now.
                    self._wake_worker()
                raise
        return None

    def done(self, key: str) -> None:
        """The work on `key` has ended. Raises KeyError if it was not in work: that is a bug."""
        self._agenda.done(key)
        self._wake_worker()

    def shut_down(self) -> None:
        """Hand out nothing more: every `get` gives None, those that wait already too.

        What was not begun is dropped: whoever comes next looks at everything anew.
        """
        self._shut = True
        if self._timer:
            self._timer.cancel()
        while self._waiters:
            self._wake_one()

    def _wake_worker(self) -> None:
        if self._agenda.ready:
            self._wake_one()

    def _wake_one(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _set_timer(self) -> None:
        due = self._agenda.next_due
        if due is None or due >= self._timer_due or self._shut:
            return
        if self._timer:
            self._timer.cancel()
        self._timer_due = due
        delay = max(0.0, due - self._clock())
        self._timer = asyncio.get_running_loop().call_later(delay, self._on_time)

    def _on_time(self) -> None:
        self._timer, self._timer_due = None, float("inf")
        before = self._agenda.ready
        self._agenda.wake(self._clock())
        for _ in range(self._agenda.ready - before):
            self._wake_one()
        self._set_timer()
