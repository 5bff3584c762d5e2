"""Work that may take too long, in a process that can be ended."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import resource
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    # Whether nobody waits for the answer any more.
    Gone = Callable[[], Awaitable[bool]]

_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")
# A fork of a process with threads may wait for ever.
_CONTEXT: Final = multiprocessing.get_context("spawn")
_MEMORY: Final = 2 * 1024**3
_STARTING: Final = 30.0
_NICE: Final = 10
# Seconds between two looks whether who asked is still there.
_LOOK: Final = 0.5


class TooMuch(Exception):
    """The work took too long, or needed too much memory."""


class Worker(Generic[_Question, _Answer]):
    """Calls a function of a module in another process, one call at a time.

    The process is ended if a call takes longer than `seconds`; the next call starts another. One
    that `yields` leaves processors to others.
    """

    def __init__(
        self, function: Callable[[_Question], _Answer], seconds: float, *, yields: bool = False
    ) -> None:
        self._function = function
        self._yields = yields
        self._seconds = seconds
        self._turn = asyncio.Lock()
        self._process: BaseProcess | None = None
        self._connection: Connection[Any, Any] | None = None

    async def ask(self, question: _Question, gone: Gone) -> _Answer:
        """Return the function's answer. Raises TooMuch, also when who asked is `gone`."""
        async with self._turn:
            if await gone():
                raise TooMuch
            work = asyncio.ensure_future(asyncio.to_thread(self._ask, question))
            try:
                while not (await asyncio.wait({work}, timeout=_LOOK))[0]:
                    if await gone() and self._process:
                        self._process.kill()
            finally:
                if not work.done() and self._process:
                    # Whoever has the next turn must not find the thread still in this one.
                    self._process.kill()
                    await asyncio.wait({work})
            return await work

    def _ask(self, question: _Question) -> _Answer:
        connection = self._started()
        with suppress(EOFError, OSError):
            connection.send(question)
            if connection.poll(self._seconds):
                answer: _Answer = connection.recv()
                return answer
        self.end()
        raise TooMuch

    def _started(self) -> Connection[Any, Any]:
        if self._connection and self._process and self._process.is_alive():
            return self._connection
        near, far = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(
            target=_serve, args=(far, self._function, self._yields), daemon=True
        )
        self._process.start()
        far.close()
        self._connection = near
        with suppress(EOFError, OSError):
            if near.poll(_STARTING) and near.recv() is None:
                return near
        self.end()
        raise TooMuch

    def end(self) -> None:
        """End the process."""
        if self._process:
            self._process.kill()
            self._process.join()
        if self._connection:
            self._connection.close()
        self._process = self._connection = None


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
    os._exit(1)


def _serve(connection: Connection[Any, Any], function: Callable[[Any], Any], yields: bool) -> None:
    if yields:
        os.nice(_NICE)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    connection.send(None)
    gc.disable()
    with suppress(EOFError, KeyboardInterrupt, OSError):
        while True:
            connection.send(function(connection.recv()))
            # A collection may take longer than an answer: it waits until nobody asks.
            if not connection.poll(_LOOK):
                gc.collect()
