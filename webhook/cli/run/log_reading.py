"""Reads the logs of many pods at once: one after the other in order, or as they come."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.cli.run.cluster import pods_path
from webhook.cli.run.log_text import LogLines
from webhook.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from webhook.cli.run.log_sources import Source
    from webhook.kube.client import Client

# So many logs are read at a time; and so many pieces of each wait until its turn has come.
AT_ONCE: Final = 16
_PIECES: Final = 64
# So many can be followed at a time: the connections to the API server are 100.
FOLLOWED: Final = 64
# Seconds without a word after which a log that is only read is given up.
_SILENCE: Final = 60.0
# Seconds between two looks for pods that have come, or have started.
PERIOD: Final = 2.0


class Piece(NamedTuple):
    """Some lines of one log, or what is wrong with it.

    failed: whether the log cannot be read any further; else it may still begin.
    """

    source: Source
    lines: Sequence[str] = ()
    problem: str = ""
    failed: bool = False


class LogReader:
    """The logs of one namespace's pods. `tail`: only so many of the last lines; None: all."""

    def __init__(self, client: Client, namespace: str, tail: int | None) -> None:
        self._client = client
        self._namespace = namespace
        self._tail = tail

    async def read(self, sources: Sequence[Source]) -> AsyncGenerator[Piece, None]:
        """What there is, log by log in this order."""
        turn = asyncio.Semaphore(AT_ONCE)
        queues = [asyncio.Queue[Piece | None](_PIECES) for _ in sources]

        async def fetch(source: Source, queue: asyncio.Queue[Piece | None]) -> None:
            # Turns are given in order, so the log that is printed is always one of those at hand.
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
        """Lines as they come, of pods that come later too, until `look` says that the run ended.

        `look` gives the logs there are now, and whether no more will come.
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
        """Open each log once it has begun; return when the run and every log have ended."""
        running: set[asyncio.Task[None]] = set()
        opened: set[tuple[str, str]] = set()
        waiting: set[tuple[str, str]] = set()
        try:
            while True:
                found, ended = await look()
                for source in found:
                    key = (source.uid, source.container)
                    if key in opened:
                        continue
                    if source.started:
                        opened.add(key)
                        running.add(asyncio.create_task(self._follow_one(source, queue)))
                    elif not ended and key not in waiting:
                        waiting.add(key)
                        why = f" ({source.why})" if source.why else ""
                        await queue.put(Piece(source, problem=f"has not started yet{why}"))
                if ended:
                    await asyncio.gather(*running)
                    await queue.put(None)
                    return
                await asyncio.sleep(PERIOD)
        finally:
            await _cancelled(list(running))

    async def _follow_one(self, source: Source, queue: asyncio.Queue[Piece | None]) -> None:
        async for piece in self._log(source, follow=True):
            await queue.put(piece)

    async def _log(self, source: Source, *, follow: bool) -> AsyncGenerator[Piece, None]:
        """One log; a problem is its last piece."""
        path = f"{pods_path(self._namespace)}/{source.pod}/log"
        query = {"container": source.container}
        if follow:
            query["follow"] = "true"
        if self._tail is not None:
            query["tailLines"] = str(self._tail)
        lines, problem = LogLines(), ""
        # A program that is followed may say nothing for hours.
        silence = None if follow else _SILENCE
        try:
            async with self._client.stream(path, query=query, silence=silence) as read:
                while chunk := await read():
                    if whole := lines.feed(chunk):
                        yield Piece(source, whole)
        except ClusterError as error:
            problem = str(error)
        if (rest := lines.finish()) or problem:
            yield Piece(source, rest, problem, failed=bool(problem))


async def _next(queue: asyncio.Queue[Piece | None], task: asyncio.Task[None]) -> Piece | None:
    """The next piece; None at the end, or what `task`, which makes them, raises."""
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
