"""The controller: informers that always run, and workers while this process leads."""

from __future__ import annotations

import asyncio
import logging
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from webhook.controller.action_executor import ActionExecutor
from webhook.controller.announcer import Announcer
from webhook.controller.event_router import EventRouter
from webhook.controller.informers import Informers
from webhook.controller.objects import Objects
from webhook.controller.observed_state import ObservedState
from webhook.controller.reconciler import Reconciler
from webhook.controller.refusals import Refusals
from webhook.controller.run_cache import RunCache
from webhook.errors import ClusterError, InvalidRun, NotLeading
from webhook.kube.work_queue import WorkQueue
from webhook.run.reconcile import DEFAULT_TERMS

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.controller.metrics import ControllerMetrics
    from webhook.controller.stored_run import StoredRun
    from webhook.kube.cache import Change
    from webhook.kube.client import Client
    from webhook.kube.writer import Writer
    from webhook.run.counting import RestartTerms
    from webhook.run.model import Run
    from webhook.run.plan import Plan

_logger = logging.getLogger(__name__)

# Runs that are looked at at the same time: what takes time is the API server's answers.
WORKERS: Final = 4
# Seconds for the looks that are under way when the work is to end; creations go on where they were
# cut off.
LAST_LOOKS: Final = 2.0


class Controller:
    """Reconciles the Runs of one namespace, or of all if that is empty.

    `run()` goes on all the time, so that a process that begins to lead knows everything already;
    `lead()` for as long as this process leads. `plan` makes a run's plan. `nodes`: whether nodes
    and capacity classes are watched, for which it needs rights in the whole cluster.
    """

    def __init__(
        self,
        client: Client,
        writer: Writer,
        plan: Callable[[Run], Plan],
        metrics: ControllerMetrics,
        *,
        namespace: str = "",
        workers: int = WORKERS,
        nodes: bool = True,
        terms: RestartTerms = DEFAULT_TERMS,
    ) -> None:
        self._workers = workers
        self._metrics = metrics
        self.known = ObservedState()
        self.informers = Informers(client, self.known, namespace, nodes=nodes)
        self.announcer = Announcer(writer)
        self._feed = EventRouter(self.known)
        self.refusals = Refusals()
        self.known.runs.subscribe(self._forget)
        objects = Objects(client, writer, self.known)
        self._reconciler = Reconciler(
            self.known,
            objects,
            RunCache(plan),
            ActionExecutor(objects, self.refusals, metrics),
            self.refusals,
            self.announcer,
            metrics,
            terms=terms,
        )
        self._queue: WorkQueue | None = None

    def queue_depth(self) -> int:
        """How many runs wait for a worker."""
        return self._queue.depth if self._queue else 0

    def queue_age(self) -> float:
        """For how many seconds the first of them has waited."""
        return self._queue.oldest_age() if self._queue else 0.0

    async def run(self) -> None:
        """Watch the cluster, and write Events, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.informers.run())
            group.create_task(self.announcer.run())

    async def lead(self) -> None:
        """Work until cancelled."""
        await self.informers.catch_up()
        queue = self._queue = WorkQueue()
        self._feed.begin(queue)
        self._metrics.leads(leads=True)
        tasks = [asyncio.create_task(self._work(queue)) for _ in range(self._workers)]
        try:
            # Not gather, which would cut the workers off when this is cancelled.
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in ended:
                task.result()
        finally:
            self._metrics.leads(leads=False)
            self._feed.end()
            self._queue = None
            queue.shut_down()
            await _ended(tasks)

    async def _work(self, queue: WorkQueue) -> None:
        while (key := await queue.get()) is not None:
            began = time.monotonic()
            try:
                result = await self._look(queue, key)
            finally:
                queue.done(key)
            self._feed.looked(key)
            self._metrics.reconciled(result, time.monotonic() - began)

    async def _look(self, queue: WorkQueue, key: str) -> str:
        """Look at one run, and see to it that it is looked at again; the result's name."""
        try:
            after = await self._reconciler.look(key)
        except InvalidRun as error:
            queue.forget(key)
            _logger.info("no pods can be made of run %s", key, extra={"problems": error.problems})
            return "invalid"
        except NotLeading:
            # Whoever leads now looks at everything.
            return "failed"
        except ClusterError as error:
            seconds = queue.retry(key)
            conflict = error.status == HTTPStatus.CONFLICT
            log = _logger.debug if conflict else _logger.warning
            log("run %s: %s; again in %.2f s", key, error, seconds)
            return "conflict" if conflict else "failed"
        except Exception:
            # A bug must not take the other runs with it.
            _logger.exception("run %s cannot be reconciled: this is a bug", key)
            queue.retry(key)
            return "failed"
        queue.forget(key)
        if after is not None:
            queue.add_after(key, after)
        return "done"

    def _forget(self, change: Change[StoredRun]) -> None:
        if change.after is None and change.before is not None:
            self.refusals.forget(change.before.uid)


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    """Give the tasks a moment to end, then end them."""
    await asyncio.wait(tasks, timeout=LAST_LOOKS)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
