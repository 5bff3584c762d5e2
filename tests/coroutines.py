"""Run tests that are coroutines, each in an event loop of its own."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from tests.kube import virtual_time


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark of tests whose clock jumps to the next timer."""
    config.addinivalue_line("markers", "virtual_time: the event loop's clock jumps, without I/O")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an `async def` test; leave any other to pytest."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    test = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    virtual = pyfuncitem.get_closest_marker("virtual_time")
    (virtual_time.run if virtual else asyncio.run)(test)
    return True
