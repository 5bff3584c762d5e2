"""Which keys are to be worked on, in which order and from when on: without waiting."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from itertools import count


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
