"""Read and follow the logs of a Run: find them, and cut them into lines."""

from __future__ import annotations

import asyncio
import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from webhook.cli.run.cluster import pods_path
from webhook.errors import ClusterError, FairleadError
from webhook.run.model import SERVING
from webhook.run.model.status import format_intervals, parse_intervals

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        Awaitable,
        Callable,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from webhook.kube.client import Client
    from webhook.run.backends.engine_pods import PodReader
    from webhook.run.model import RunStatus

# Number of logs that are read at the same time, and of pieces of each that are buffered.
AT_ONCE: Final = 16
_PIECES: Final = 64
# Maximum number of logs to follow: there are 100 connections to the API server.
FOLLOWED: Final = 64
# Seconds without data after which reading a log ends, unless it is followed.
_SILENCE: Final = 60.0
# Seconds between two searches for new pods, or pods that have started.
PERIOD: Final = 2.0
# Maximum length of a line; a longer one is split.
_LONGEST: Final = 2**20
# How the API server reports a request to a kubelet that got no answer (net/url.Error of Go).
_NO_KUBELET: Final = re.compile(r'Get "[^"]+/containerLogs/')
_COLOURS: Final = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green")


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
        if len(self._rest) > _LONGEST:
            lines.append(self._rest)
            self._rest = ""
        return [_last_state(line) for line in lines]

    def finish(self) -> list[str]:
        """Return the line that the end of the log completes, if there is one."""
        rest, self._rest = self._rest + self._decode(b"", final=True), ""
        return [_last_state(rest)] if rest else []


class Prefixes:
    """The names of replicas, of equal width, each in its own colour if there are colours."""

    def __init__(self, names: Iterable[str], *, coloured: bool) -> None:
        self._width = max(map(len, names), default=0)
        self._coloured = coloured
        self._known: dict[str, str] = {}

    def prefixed(self, name: str, lines: Sequence[str]) -> str:
        """`lines` as text, each with the name before it and a newline after it."""
        prefix = self._prefix(name)
        return "".join(f"{prefix} {line}\n" if line else f"{prefix}\n" for line in lines)

    def _prefix(self, name: str) -> str:
        if name not in self._known:
            text = f"{name:<{self._width}} |"
            colour = _COLOURS[len(self._known) % len(_COLOURS)]
            self._known[name] = click.style(text, fg=colour) if self._coloured else text
        return self._known[name]


def _last_state(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]


@dataclass(frozen=True, slots=True)
class LogSelection:
    """The selected logs; None and empty: all."""

    role: str | None = None
    index: int | None = None
    container: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """The log of one container.

    name: the name of the replica within its run: worker-3.
    started: whether the container has started, so that there can be a log.
    why: what prevents its start, if known.
    """

    name: str
    pod: str
    uid: str
    container: str
    started: bool
    node: str = ""
    why: str = ""

    @property
    def waiting(self) -> str:
        """What is said of a container that has not started."""
        return f"has not started yet{f' ({self.why})' if self.why else ''}"


def check_selection(run: Mapping[str, Any], status: RunStatus, wanted: LogSelection) -> None:
    """Raise FairleadError, with the existing roles or indexes, if the run has no such one."""
    name, kind = run["metadata"]["name"], run["spec"].get("kind")
    if kind in SERVING and (wanted.role is not None or wanted.index is not None):
        raise FairleadError(f"run {name} is of kind {kind}: its pod has no role and no index")
    counts = {role: one.desired for role, one in status.replicas.items()}
    if not counts:
        replicas = run["spec"].get("replicas") or {"master": {}}
        counts = {role: (one or {}).get("count") or 1 for role, one in replicas.items()}
    if wanted.role is not None and wanted.role not in counts:
        raise FairleadError(f"run {name} has no role {wanted.role}; it has {', '.join(counts)}")
    most = max(counts[role] for role in counts if wanted.role in (None, role))
    if wanted.index is not None and wanted.index >= most:
        role = wanted.role or "any role"
        raise FairleadError(
            f"run {name} has no index {wanted.index} of {role}; the last one is {most - 1}"
        )


def sources_of(
    reader: PodReader, pods: Sequence[Mapping[str, Any]], wanted: LogSelection
) -> list[Source]:
    """Return the selected logs, by role and index; of a Deployment's pods, by name."""
    found = reader.read(pods)
    found.sort(key=lambda pair: (pair[0].role, pair[0].index, pair[0].name))
    return [
        Source(
            name=f"{pod.role}-{pod.index}" if pod.role else pod.name.removeprefix(f"{reader.run}-"),
            pod=pod.name,
            uid=pod.uid,
            container=container,
            started=_started(raw, container),
            node=pod.node,
            why=pod.unscheduled.partition(". ")[0] or (pod.waiting[0] if pod.waiting else ""),
        )
        for pod, raw in found
        if _is_selected(pod.role, pod.index, wanted)
        for container in [wanted.container or reader.main_container(raw)]
    ]


def without_pods(
    status: RunStatus, there: Sequence[Source], wanted: LogSelection
) -> Iterator[tuple[str, str]]:
    """Yield the selected replicas without a pod: role and indexes, and the reason."""
    have = {source.name for source in there}
    for role, counts in status.replicas.items():
        succeeded = parse_intervals(counts.succeeded_indexes)
        missing = [
            index
            for index in range(counts.desired)
            if _is_selected(role, index, wanted) and f"{role}-{index}" not in have
        ]
        over = [index for index in missing if index in succeeded]
        rest = [index for index in missing if index not in succeeded]
        if over:
            yield f"{role} {format_intervals(over)}", "succeeded, and the pod is gone"
        if rest:
            yield f"{role} {format_intervals(rest)}", "there is no pod"


def _is_selected(role: str, index: int, wanted: LogSelection) -> bool:
    if not role:
        return wanted.role is None and wanted.index is None
    return wanted.role in (None, role) and wanted.index in (None, index)


def _started(raw: Mapping[str, Any], container: str) -> bool:
    status = raw.get("status") or {}
    kinds = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
    for each in (each for kind in kinds for each in status.get(kind) or ()):
        if each["name"] == container:
            state = each.get("state") or {}
            return "running" in state or "terminated" in state or bool(each.get("restartCount"))
    # kwok has no status of containers that it does not simulate.
    return status.get("phase") not in (None, "Pending")


class Piece(NamedTuple):
    """Some lines of one log, or a problem with it.

    failed: whether the log cannot be read any further; else it may still start.
    """

    source: Source
    lines: Sequence[str] = ()
    problem: str = ""
    failed: bool = False


class LogReader:
    """The logs of one namespace's pods. `tail`: the number of last lines; None: all."""

    def __init__(self, client: Client, namespace: str, tail: int | None) -> None:
        self._client = client
        self._namespace = namespace
        self._tail = tail

    async def read(self, sources: Sequence[Source]) -> AsyncGenerator[Piece, None]:
        """Yield the existing logs, one after the other in this order."""
        turn = asyncio.Semaphore(AT_ONCE)
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
                        await queue.put(Piece(source, problem=source.waiting))
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
        """Yield the pieces of one log; a problem is the last one."""
        path = f"{pods_path(self._namespace)}/{source.pod}/log"
        query = {"container": source.container}
        if follow:
            query["follow"] = "true"
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
