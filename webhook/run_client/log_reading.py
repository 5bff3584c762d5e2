"""Read and follow the logs of containers, cut into lines."""

from __future__ import annotations

import asyncio
import codecs
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.errors import ClusterError
from webhook.run_client.find_runs import pods_path

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        Awaitable,
        Callable,
        Sequence,
    )

    from webhook.kube.client import Client
    from webhook.run_client.log_sources import Source

# Number of logs that are read at the same time, and of pieces of each that are buffered.
CONCURRENT_LOGS: Final = 16
_PIECES: Final = 64
# Maximum number of logs to follow: there are 100 connections to the API server.
FOLLOWED: Final = 64
# Seconds without data after which reading a log ends, unless it is followed.
_SILENCE: Final = 60.0
# Seconds between two searches for new pods, or pods that have started.
SEARCH_SECONDS: Final = 2.0
# Maximum length of a line; a longer one is split.
_LINE_MAX_BYTES: Final = 2**20
# How the API server reports a request to a kubelet that got no answer (net/url.Error of Go).
_NO_KUBELET: Final = re.compile(r'Get "[^"]+/containerLogs/')


class LogLines:
    """Cuts one log into lines. Invalid UTF-8 is replaced.

    A progress bar writes its line again after each carriage return: only its last state is kept.
    """

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""

    def feed(self, chunk: bytes) -> list[str]:
        """Return the lines that `chunk` completes."""
        *lines, self._rest = (self._rest + self._decode(chunk)).split("\n")
        if len(self._rest) > _LINE_MAX_BYTES:
            lines.append(self._rest)
            self._rest = ""
        return [_last_state(line) for line in lines]

    def finish(self) -> list[str]:
        """Return the line that the end of the log completes, if there is one."""
        rest, self._rest = self._rest + self._decode(b"", final=True), ""
        return [_last_state(rest)] if rest else []


def _last_state(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]


class Piece(NamedTuple):
    """Some lines of one log, or a problem with it.

    failed: whether the log cannot be read any further; else it may still start.
    """

    source: Source
    lines: Sequence[str] = ()
    problem: str = ""
    failed: bool = False


class LogReader:
    """The logs of one namespace's pods. `tail`: the number of last lines; None: all.

    `previous`: of the containers before their last restart.
    """

    def __init__(
        self, client: Client, namespace: str, tail: int | None, *, previous: bool = False
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._tail = tail
        self._previous = previous

    async def read(self, sources: Sequence[Source]) -> AsyncGenerator[Piece, None]:
        """Yield the existing logs, one after the other in this order."""
        turn = asyncio.Semaphore(CONCURRENT_LOGS)
        queues = [asyncio.Queue[Piece | None](_PIECES) for _ in sources]

        async def fetch(source: Source, queue: asyncio.Queue[Piece | None]) -> None:
            # The semaphore keeps the order, so the log that is printed is always being read.
            async with turn:
                async for piece in self._log(source, follow=False):
                    await queue.put(piece)
                await queue.put(None)

        pairs = list(zip(sources, queues, strict=True))
        tasks = [asyncio.create_task(fetch(source, queue)) for source, queue in pairs]
        try:
            for task, queue in zip(tasks, queues, strict=True):
                while (piece := await _next(queue, task)) is not None:
                    yield piece
        finally:
            await _cancelled(tasks)

    async def follow(
        self, look: Callable[[], Awaitable[tuple[Sequence[Source], bool]]]
    ) -> AsyncGenerator[Piece, None]:
        """Lines as they come, also of later pods, until the run has ended.

        `look` returns the current logs, and whether there will be no further ones.
        """
        queue = asyncio.Queue[Piece | None](_PIECES)
        looking = asyncio.create_task(self._look(look, queue))
        try:
            while (piece := await _next(queue, looking)) is not None:
                yield piece
        finally:
            await _cancelled([looking])

    async def _look(
        self,
        look: Callable[[], Awaitable[tuple[Sequence[Source], bool]]],
        queue: asyncio.Queue[Piece | None],
    ) -> None:
        """Open each log when its container has started; return when the run and all logs ended."""
        running: set[asyncio.Task[None]] = set()
        opened: set[tuple[str, str]] = set()
        waiting: set[tuple[str, str]] = set()
        try:
            while True:
                sources, ended = await look()
                for task in [task for task in running if task.done()]:
                    # Raises what ended a log early: or that log would be silent until the run ends.
                    task.result()
                    running.discard(task)
                for source in sources:
                    key = (source.uid, source.container)
                    if key in opened:
                        continue
                    if source.started:
                        opened.add(key)
                        running.add(asyncio.create_task(self._follow_one(source, queue)))
                    elif not ended and key not in waiting:
                        waiting.add(key)
                        await queue.put(Piece(source, problem=source.waiting))
                if ended:
                    await asyncio.gather(*running)
                    await queue.put(None)
                    return
                await asyncio.sleep(SEARCH_SECONDS)
        finally:
            await _cancelled(list(running))

    async def _follow_one(self, source: Source, queue: asyncio.Queue[Piece | None]) -> None:
        async for piece in self._log(source, follow=True):
            await queue.put(piece)

    async def _log(self, source: Source, *, follow: bool) -> AsyncGenerator[Piece, None]:
        """Yield the pieces of one log; a problem is the last one."""
        path = pods_path(self._namespace).path_of(source.pod).subresource("log")
        query = {"container": source.container}
        if follow:
            query["follow"] = "true"
        if self._previous:
            query["previous"] = "true"
        if self._tail is not None:
            query["tailLines"] = str(self._tail)
        lines, problem = LogLines(), ""
        # A program that is followed may write nothing for hours.
        silence = None if follow else _SILENCE
        try:
            async with self._client.stream(path, query=query, silence=silence) as read:
                while chunk := await read():
                    if whole := lines.feed(chunk):
                        yield Piece(source, whole)
        except ClusterError as error:
            problem = str(error)
            if _NO_KUBELET.match(error.words):
                problem = f"the kubelet of node {source.node} did not answer: {error.words}"
        if (rest := lines.finish()) or problem:
            yield Piece(source, rest, problem, failed=bool(problem))


async def _next(queue: asyncio.Queue[Piece | None], task: asyncio.Task[None]) -> Piece | None:
    """Return the next piece; None at the end. Raises the error of `task`, which produces them."""
    getting = asyncio.create_task(queue.get())
    try:
        await asyncio.wait((getting, task), return_when=asyncio.FIRST_COMPLETED)
        if not getting.done() and queue.empty():
            task.result()
        return await getting
    finally:
        await _cancelled([getting])


async def _cancelled(tasks: Sequence[asyncio.Task[object]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
