"""Runs in a cluster."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, get_args

from webhook.errors import FairleadError, UnreadableInput

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence

    from fairlead.runs import Run
    from webhook.kube.client import Client as ApiClient
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.run.model import RunStatus

_T = TypeVar("_T")


@dataclass(frozen=True)
class RunEvent:
    """A change of a Run's phase or message."""

    phase: str
    message: str

    def __str__(self) -> str:
        return f"{self.phase}: {self.message}".removesuffix(": ")


@dataclass(frozen=True)
class Logs:
    """Lines of a replica's log."""

    lines: tuple[str, ...]

    def tail(self, count: int) -> Logs:
        """Return the last lines."""
        return Logs(self.lines[-count:] if count > 0 else ())

    def __str__(self) -> str:
        return "\n".join(self.lines)


@dataclass(frozen=True)
class Client:
    """A cluster: of a kubeconfig, or in a pod of its ServiceAccount.

    kubeconfig: a file; by default $KUBECONFIG, else ~/.kube/config, else the pod's cluster.
    namespace: of Runs without one; by default that of the context.
    """

    kubeconfig: str | os.PathLike[str] | None = None
    context: str = ""
    namespace: str = ""

    def submit(self, run: Run) -> RunHandle:
        """Create a Run. Raises FairleadError with all problems of it, or why it is refused."""
        return _wait(self.submit_async(run))

    async def submit_async(self, run: Run) -> RunHandle:
        """As `submit`."""
        from webhook.run_client.submit import submit

        raw, where = run.manifest(), run.namespace or _namespace(self)
        stored = await _ask(self, lambda client: submit(client, raw, where, run.code))
        return RunHandle(self, where, stored["metadata"]["name"])

    def get(self, name: str, *, namespace: str = "") -> RunHandle:
        """Return a Run that is there. Raises FairleadError if it is not."""
        return _wait(self.get_async(name, namespace=namespace))

    async def get_async(self, name: str, *, namespace: str = "") -> RunHandle:
        """As `get`."""
        from webhook.run_client.find_runs import fetch_run

        where = namespace or _namespace(self)
        await _ask(self, lambda client: fetch_run(client, where, name))
        return RunHandle(self, where, name)

    def list(self, *, namespace: str = "", selector: str = "") -> Sequence[RunHandle]:
        """Return the Runs of a namespace, those with these labels. Raises FairleadError."""
        return _wait(self.list_async(namespace=namespace, selector=selector))

    async def list_async(self, *, namespace: str = "", selector: str = "") -> Sequence[RunHandle]:
        """As `list`."""
        from webhook.run_client.find_runs import Targets, find_runs

        where = namespace or _namespace(self)
        runs = await _ask(self, lambda client: find_runs(client, Targets(where, (), selector)))
        return [RunHandle(self, where, run["metadata"]["name"]) for run in runs]


@dataclass(frozen=True)
class RunHandle:
    """A Run in a cluster. Every method raises FairleadError if the cluster does not answer."""

    client: Client
    namespace: str
    name: str

    def status(self) -> RunStatus:
        """Return its status now: phase, message, replicas, incidents, usage."""
        return _wait(self.status_async())

    async def status_async(self) -> RunStatus:
        """As `status`."""
        from webhook.run.model import RunStatus
        from webhook.run_client.find_runs import fetch_run

        raw = await _ask(self.client, lambda api: fetch_run(api, self.namespace, self.name))
        return RunStatus.read(raw.get("status"))

    def watch(self) -> Iterator[RunEvent]:
        """Yield each change of phase or message, until the Run is over."""
        events = self.watch_async()
        with _Loop() as loop:
            while (event := loop.run(_next(events))) is not None:
                yield event

    async def watch_async(self) -> AsyncIterator[RunEvent]:
        """As `watch`."""
        from webhook.run_client.following import looks

        last_event = None
        async with _target(self.client).client() as api:
            async for status in looks(api, self.namespace, self.name):
                if status is None:
                    raise self._deleted()
                event = RunEvent(status.phase, status.message)
                if event != last_event:
                    yield event
                    last_event = event
                if status.ended:
                    return

    def wait(self, until: str = "ended", *, timeout: str | float | None = None) -> RunStatus:
        """Wait until the Run is over, or in a phase, and return its status.

        timeout: seconds, or a text such as 2h. Raises TimeoutError, and FairleadError if the Run is
        deleted, ends in another phase, or fails.
        """
        return _wait(self.wait_async(until, timeout=timeout))

    async def wait_async(
        self,
        until: str = "ended",
        *,
        timeout: str | float | None = None,  # noqa: ASYNC109 (as `wait`)
    ) -> RunStatus:
        """As `wait`."""
        from webhook.run.model.status import Phase
        from webhook.run_client.following import follow
        from webhook.times import parse_span

        if until not in (wanted := (*get_args(Phase), "ended")):
            raise UnreadableInput([f"until: {until!r} is not one of {', '.join(wanted)}"])
        try:
            span = parse_span(timeout) if isinstance(timeout, str) else timeout
        except ValueError as error:
            raise UnreadableInput([f"timeout: {error}"]) from None
        seconds = span.total_seconds() if isinstance(span, timedelta) else span
        # Nothing is later than nan.
        if seconds is not None and not seconds >= 0:
            raise UnreadableInput([f"timeout: want seconds or a text such as 2h, not {timeout}"])

        def reached(status: RunStatus) -> bool:
            return status.ended if until == "ended" else status.phase == until and not status.held

        ending = await _ask(
            self.client,
            lambda api: follow(api, self.namespace, self.name, reached, timeout=seconds),
        )
        status = ending.status
        if ending.how == "late":
            raise TimeoutError(f"run {self.name}: {status.phase}: {status.message}")
        if ending.how == "gone":
            raise self._deleted()
        if ending.how == "ended" or (until == "ended" and status.phase == "Failed"):
            raise FairleadError(f"run {self.name}: {status.phase}: {status.message}")
        return status

    def logs(self, role: str = "", index: int | None = None, *, tail: int | None = None) -> Logs:
        """Return the logs of replicas, by default of all. Raises FairleadError."""
        return _wait(self.logs_async(role, index, tail=tail))

    async def logs_async(
        self, role: str = "", index: int | None = None, *, tail: int | None = None
    ) -> Logs:
        """As `logs`."""
        from webhook.run.model import RunStatus
        from webhook.run_client.find_runs import fetch_run
        from webhook.run_client.log_reading import LogReader
        from webhook.run_client.log_sources import LogSelection, check_selection, find_sources

        async def read(api: ApiClient) -> Logs:
            run = await fetch_run(api, self.namespace, self.name)
            wanted = LogSelection(role or None, index, "")
            check_selection(run, RunStatus.read(run.get("status")), wanted)
            sources = [
                source
                for source in await find_sources(api, self.namespace, run, wanted)
                if source.started
            ]
            lines: list[str] = []
            async for piece in LogReader(api, self.namespace, tail).read(sources):
                lines += piece.lines
                if piece.failed:
                    raise FairleadError(f"{piece.source.name}: {piece.problem}")
            return Logs(tuple(lines))

        return await _ask(self.client, read)

    def suspend(self) -> None:
        """Suspend it: its pods are deleted, and its counts are kept."""
        _wait(self.suspend_async())

    async def suspend_async(self) -> None:
        """As `suspend`."""
        await self._patched(suspend=True)

    def resume(self) -> None:
        """Create its pods again."""
        _wait(self.resume_async())

    async def resume_async(self) -> None:
        """As `resume`."""
        await self._patched(suspend=False)

    def retry(self) -> RunHandle:
        """Create the next try of it, and return that; it is over, and so are its other tries.

        The new Run has the same spec, and a greater FAIRLEAD_ATTEMPT: it finds the checkpoints.
        """
        return _wait(self.retry_async())

    async def retry_async(self) -> RunHandle:
        """As `retry`."""
        from webhook.run_client.retrying import retry

        stored = await _ask(self.client, lambda api: retry(api, self.namespace, self.name))
        return RunHandle(self.client, self.namespace, stored["metadata"]["name"])

    def delete(self) -> None:
        """Delete it, and all that it owns."""
        _wait(self.delete_async())

    async def delete_async(self) -> None:
        """As `delete`."""
        from webhook.run_client.submit import run_path

        path = run_path(self.namespace, self.name)
        await _ask(self.client, lambda api: api.delete(path))

    def _deleted(self) -> FairleadError:
        return FairleadError(f"run {self.name} is deleted")

    async def _patched(self, *, suspend: bool) -> None:
        from webhook.run_client.submit import run_path

        path, change = run_path(self.namespace, self.name), {"spec": {"suspend": suspend}}
        await _ask(self.client, lambda api: api.patch(path, change, "merge"))


async def _ask(cluster: Client, question: Callable[[ApiClient], Awaitable[_T]]) -> _T:
    async with _target(cluster).client() as client:
        return await question(client)


def _namespace(cluster: Client) -> str:
    return cluster.namespace or _target(cluster).namespace()


def _target(cluster: Client) -> Kubeconfig:
    from webhook.kube.kubeconfig import Kubeconfig

    return Kubeconfig(Path(cluster.kubeconfig) if cluster.kubeconfig else None, cluster.context)


class _Loop:
    """An event loop for one answer after the other.

    In a notebook, whose own loop runs, it is that of a thread.
    """

    def __enter__(self) -> Self:
        from concurrent.futures import ThreadPoolExecutor

        self._runner = asyncio.Runner()
        self._thread = ThreadPoolExecutor(1) if _in_a_loop() else None
        return self

    def run(self, answer: Coroutine[Any, Any, _T]) -> _T:
        if self._thread is None:
            return self._runner.run(answer)
        loop = self._thread.submit(self._runner.get_loop).result()
        waiting = self._thread.submit(self._runner.run, answer)
        try:
            return waiting.result()
        except BaseException:
            # A cell of the notebook that is interrupted: the thread has to end.
            for task in asyncio.all_tasks(loop):
                loop.call_soon_threadsafe(task.cancel)
            raise

    def __exit__(self, *_: object) -> None:
        if self._thread is None:
            self._runner.close()
            return
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _wait(answer: Coroutine[Any, Any, _T]) -> _T:
    with _Loop() as loop:
        return loop.run(answer)


async def _next(events: AsyncIterator[_T]) -> _T | None:
    return await anext(events, None)
