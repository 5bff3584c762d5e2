"""A work queue: one worker per key at a time, and retries with backoff."""

from __future__ import annotations

import asyncio
import heapq
import time
from itertools import count
from random import Random
from typing import TYPE_CHECKING

from webhook.backoff import RECONCILE_DELAYS
from webhook.kube.rate_limit import Backoff
from webhook.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable


class Agenda:
    """Keys that are ready, in progress, or due later.

    The rules are those of client-go (`util/workqueue`): one worker at a time has a key; a key that
    is added twice while it waits is handed out once; a key that is added while in progress is ready
    again when that is done; of several due times the earliest applies. In addition, namespaces take
    turns: the keys of one (`namespace/name`) are handed out in FIFO order, and a thousand of them
    delay a key of another namespace by at most one. `working` has the keys in progress, `due` the
    times of those that are due later. Times are seconds of the caller's clock.
    """

    def __init__(self) -> None:
        self._ready = Turns[str]()
        # By ready key: the time when it became ready.
        self._since: dict[str, float] = {}
        self._again: dict[str, float] = {}
        self.working: set[str] = set()
        self.due: dict[str, float] = {}
        # By time; entries that `_due` no longer has are stale, and skipped.
        self._heap: list[tuple[float, int, str]] = []
        self._numbers = count()

    @property
    def ready(self) -> int:
        """The number of keys that wait for a worker."""
        return len(self._ready)

    @property
    def since(self) -> float | None:
        """The time since which the oldest ready key waits; None if none is ready."""
        return min(self._since.values(), default=None)

    @property
    def next_due(self) -> float | None:
        """The earliest due time; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def add(self, key: str, now: float) -> None:
        """Make `key` ready; a due time of it stays unchanged."""
        if key in self.working:
            self._again.setdefault(key, now)
        else:
            self._add_ready(key, now)

    def add_at(self, key: str, due: float) -> None:
        """Add `key` at `due`, unless it is due earlier."""
        if due >= self.due.get(key, float("inf")):
            return
        self.due[key] = due
        heapq.heappush(self._heap, (due, next(self._numbers), key))
        if len(self._heap) > 2 * len(self.due) + 64:
            # A key that is rescheduled often would leave a stale entry each time.
            self._heap = [(at, next(self._numbers), key) for key, at in self.due.items()]
            heapq.heapify(self._heap)

    def wake(self, now: float) -> None:
        """Add every key that is due."""
        while self._heap and (self._heap[0][0] <= now or self._stale()):
            due, _, key = heapq.heappop(self._heap)
            if self.due.get(key) == due:
                del self.due[key]
                self.add(key, now)

    def take(self) -> str | None:
        """Return the next key, which is then in progress; None if none is ready.

        It is the oldest key of the namespace whose turn it is.
        """
        if not self._ready:
            return None
        key = self._ready.take()
        del self._since[key]
        self.working.add(key)
        return key

    def others_wait(self, namespace: str) -> bool:
        """Return True if a key of another namespace is ready."""
        return self._ready.has_others(namespace)

    def done(self, key: str) -> None:
        """End the work on `key`. Raises KeyError if it was not in progress, which is a bug."""
        self.working.remove(key)
        if (since := self._again.pop(key, None)) is not None:
            self._add_ready(key, since)

    def _add_ready(self, key: str, since: float) -> None:
        if key not in self._since:
            self._since[key] = since
            self._ready.add(key.partition("/")[0], key)

    def _stale(self) -> bool:
        due, _, key = self._heap[0]
        return self.due.get(key) != due


class WorkQueue:
    """A queue of keys for workers that are tasks of one event loop.

    A worker loops `while (key := await queue.get()) is not None:`, and always calls `done(key)`;
    then `forget(key)` after a success, or `retry(key)` after a failure. `agenda` has the keys;
    `clock` is the event loop's.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        random: Random | None = None,
    ) -> None:
        self._clock = clock
        self._random = random or Random()  # noqa: S311 (spreads load, keeps no secret)
        self.agenda = Agenda()
        # By key that failed: the time of its first failure since its last success.
        self._failing: dict[str, tuple[float, Backoff]] = {}
        # Wakes all waiting workers, of which there are few: each looks for a key.
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = float("inf")
        self._shut = False

    def oldest_age(self) -> float:
        """Return the seconds for which the oldest ready key has waited; 0.0 if none is ready."""
        since = self.agenda.since
        return 0.0 if since is None else self._clock() - since

    def failing_age(self) -> float:
        """Return the longest time since a key's first failure without a success after it."""
        since = min((since for since, _ in list(self._failing.values())), default=None)
        return 0.0 if since is None else self._clock() - since

    def add(self, key: str) -> None:
        """Enqueue `key`. After `shut_down` this and all other additions do nothing."""
        if not self._shut:
            self.agenda.add(key, self._clock())
            self._changed.set()

    def add_after(self, key: str, seconds: float) -> None:
        """Enqueue `key` after `seconds`, unless it is due earlier."""
        if seconds <= 0:
            self.add(key)
        elif not self._shut:
            self.agenda.add_at(key, self._clock() + seconds)
            self._set_timer()

    def retry(self, key: str) -> float:
        """Enqueue `key`, which failed, after its next backoff; return the seconds."""
        if key not in self._failing:
            self._failing[key] = self._clock(), Backoff(self._random, RECONCILE_DELAYS)
        _, backoff = self._failing[key]
        seconds = backoff.next()
        self.add_after(key, seconds)
        return seconds

    def forget(self, key: str) -> None:
        """Reset the backoff of `key`, which succeeded or was deleted."""
        self._failing.pop(key, None)

    async def get(self) -> str | None:
        """Wait for the next key, which is in progress until `done`. None after `shut_down`.

        All other tasks of the loop have a turn first: the work on a key may never wait for
        anything, and thousands of such keys would be one turn, in which no Lease is renewed.
        """
        await asyncio.sleep(0)
        while not self._shut:
            if (key := self.agenda.take()) is not None:
                return key
            self._changed.clear()
            await self._changed.wait()
        return None

    def done(self, key: str) -> None:
        """End the work on `key`. Raises KeyError if it was not in progress, which is a bug."""
        self.agenda.done(key)
        self._changed.set()

    def shut_down(self) -> None:
        """Hand out no more keys: every `get` returns None, including those that wait.

        Waiting keys are dropped, because the next leader reconciles everything.
        """
        self._shut = True
        if self._timer:
            self._timer.cancel()
        self._changed.set()

    def _set_timer(self) -> None:
        due = self.agenda.next_due
        if due is None or due >= self._timer_due or self._shut:
            return
        if self._timer:
            self._timer.cancel()
        self._timer_due = due
        delay = max(0.0, due - self._clock())
        self._timer = asyncio.get_running_loop().call_later(delay, self._on_time)

    def _on_time(self) -> None:
        self._timer, self._timer_due = None, float("inf")
        self.agenda.wake(self._clock())
        self._changed.set()
        self._set_timer()
