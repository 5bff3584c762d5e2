"""An event loop whose clock jumps to the next timer as soon as nothing else is left to do."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
# Turns of the loop for which the time may stand still.
_STILL = 1000


class _Selector(selectors.DefaultSelector):
    """Where the loop would wait, the time is changed instead."""

    now = 1000.0
    _still = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("every task waits for something that nobody will ever do")
            later = self.now + max(0.0, timeout)
            self._still = self._still + 1 if later == self.now else 0
            # A clock goes on. A task that sleeps for less than the digits of its time show would
            # be woken again and again, at the same time.
            self.now = later + 1e-9 if self._still > _STILL else later
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._time = _Selector()
        super().__init__(self._time)

    def time(self) -> float:
        return self._time.now


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main`, without any I/O, as fast as it can think; its clock is `now`."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)


def now() -> float:
    return asyncio.get_running_loop().time()
