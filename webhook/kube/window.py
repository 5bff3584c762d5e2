"""How many calls may be under way at once: few at first, then more, as long as they go well."""

from __future__ import annotations

import asyncio
from collections import deque


class Window:
    """Lets `size` callers in, in the order in which they came.

    The size begins at 1, and each success adds 1: so it doubles by the round, as the batches of the
    Job controller do (1, 2, 4, ...), up to `most`. A refusal begins at 1 again. The first refusal
    thus costs one call, and not as many as were asked for.
    """

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"{most} at once: want at least 1")
        self._most = most
        self._size = 1
        self._inside = 0
        self._waiters: deque[asyncio.Future[None]] = deque()

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

    async def enter(self) -> None:
        """Wait for a place. Every one that entered must `leave`."""
        if not self._waiters and self._inside < self._size:
            self._inside += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                # It had just been given a place.
                self.leave()
            elif place in self._waiters:
                self._waiters.remove(place)
            raise

    def leave(self) -> None:
        """Give the place back."""
        self._inside -= 1
        self._let_in()

    def grow(self) -> None:
        """A call went well."""
        self._size = min(self._most, self._size + 1)
        self._let_in()

    def shrink(self) -> None:
        """A call met overload."""
        self._size = 1

    def _let_in(self) -> None:
        while self._waiters and self._inside < self._size:
            place = self._waiters.popleft()
            # One that is cancelled has not had its turn to leave the line yet.
            if not place.done():
                self._inside += 1
                place.set_result(None)
