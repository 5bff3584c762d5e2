"""Waiting in tests: one function, and one budget, which grows with how slow the machine is.

A pytest plugin: a wait ends before the time-out of its test, which could not say what was waited
for.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, TypeVar, overload

import pytest

T = TypeVar("T")

# Seconds on an idle machine: far above what anything takes that a test waits for.
BUDGET: Final = 60.0
# Seconds between two looks.
PERIOD: Final = 0.02
# Seconds that `_work` takes on an idle machine.
_IDLE: Final = 0.012
_MOST: Final = 8.0
# Seconds before the time-out of a test at which its waits end.
_RESERVE: Final = 10.0
# When the waits of the test that runs have to end, by time.monotonic().
_ends = float("inf")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Limit the waits of a test by its time-out."""
    marker = item.get_closest_marker("timeout")
    option = item.config.getoption("timeout", None) or item.config.getini("timeout")
    timeout = float(marker.args[0] if marker and marker.args else option or 0)
    with waits_end_after(timeout - _RESERVE if timeout else float("inf")):
        return (yield)


@contextmanager
def waits_end_after(seconds: float) -> Generator[None]:
    """End every wait within so many seconds from now, whatever its budget."""
    global _ends
    before, _ends = _ends, time.monotonic() + seconds
    try:
        yield
    finally:
        _ends = before


def slowness() -> float:
    """Return how many times as long as on an idle machine a piece of work takes now, 1 to 8."""
    begin = time.monotonic()
    _work()
    return min(_MOST, max(1.0, (time.monotonic() - begin) / _IDLE))


def eventually(
    what: str,
    holds: Callable[[], T | None],
    *,
    explain: Callable[[], object] = str,
    budget: float = BUDGET,
    period: float = PERIOD,
) -> T:
    """Wait until `holds()` is true, and return its value.

    Fails with `what`, and what `explain()` returns, after `budget` seconds; on a machine that is
    slow at that moment, after as many times the budget as it is slow, but before the time-out of
    the test.
    """
    begin = time.monotonic()
    while not (value := holds()):
        if _over(begin, budget):
            raise AssertionError(f"never within {_since(begin)} s: {what}\n{explain()}".rstrip())
        time.sleep(period)
    return value


@overload
async def eventually_async(
    what: str, holds: Callable[[], Awaitable[T | None]], *, budget: float = ..., period: float = ...
) -> T: ...
@overload
async def eventually_async(
    what: str, holds: Callable[[], T | None], *, budget: float = ..., period: float = ...
) -> T: ...
async def eventually_async(
    what: str, holds: Callable[[], Any], *, budget: float = BUDGET, period: float = PERIOD
) -> Any:
    """Let other tasks run until `holds()` is true, and return its value. As `eventually`.

    What it returns is awaited first if it can be.
    """
    begin = time.monotonic()
    while not (value := await _value(holds())):
        if _over(begin, budget):
            raise AssertionError(f"never within {_since(begin)} s: {what}")
        await asyncio.sleep(period)
    return value


async def _value(found: Any) -> Any:
    return await found if inspect.isawaitable(found) else found


def _over(begin: float, budget: float) -> bool:
    now = time.monotonic()
    passed = now - begin
    return now > _ends or (passed > budget and passed > budget * slowness())


def _since(begin: float) -> int:
    return round(time.monotonic() - begin)


def _work() -> None:
    sum(number * number for number in range(150_000))
