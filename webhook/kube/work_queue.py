"""Hands keys to workers, no key to two of them at once, and those that failed ever later."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from random import Random
from typing import TYPE_CHECKING

from webhook.backoff import RECONCILE_DELAYS
from webhook.kube.agenda import Agenda
from webhook.kube.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable


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
