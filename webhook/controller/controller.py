"""The controller: watches that always run, and workers while it leads.

Changes in the caches become keys of a queue, from which the workers take them.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from webhook.controller.action_executor import ActionExecutor
from webhook.controller.announcer import Announcer
from webhook.controller.delegation import Delegation
from webhook.controller.engines import Engines
from webhook.controller.informers import Informers
from webhook.controller.observed_state import ObservedState
from webhook.controller.owned_objects import Objects
from webhook.controller.queues import Queues, Trials
from webhook.controller.reconciler import Reconciler
from webhook.controller.refusals import Refusals
from webhook.controller.starts import Starts
from webhook.controller.stored_run import RunCache
from webhook.controller.waiting_pods import WaitingPods
from webhook.controller.workload_executor import WorkloadExecutor
from webhook.errors import ClusterError, InvalidRun, NotLeading
from webhook.kube.work_queue import WorkQueue
from webhook.run.reconcile import DEFAULT_TERMS

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.controller.classed_nodes import WatchedNode
    from webhook.controller.controller_metrics import ControllerMetrics
    from webhook.controller.observed_state import RunsDeployment, RunsService
    from webhook.controller.stored_run import StoredRun
    from webhook.kube.cache import Change
    from webhook.kube.watches import Watches
    from webhook.kube.writer import Writer
    from webhook.run.model import Run
    from webhook.run.observed import OwnedPod
    from webhook.run.plan import Plan
    from webhook.run.queue_state import StoredWorkload
    from webhook.run.restarts import RestartTerms

_logger = logging.getLogger(__name__)

# Concurrent reconciles. Most of their time is spent waiting for the API server.
WORKERS: Final = 4
# Seconds for the reconciles in progress to finish on shutdown. The next leader resumes creations
# that were cut off.
SHUTDOWN_SECONDS: Final = 2.0
# Seconds between two reconciles of one run because of its pods. A reconcile of 5,000 pods takes
# about 50 ms, and each pod has several events. The first event after a quiet time is not delayed.
PAUSE_PER_POD: Final = 0.0001
SHORTEST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 1.0


class EventRouter:
    """Adds a run's key to the queue when the run or an object it owns changes.

    A process that does not lead has no queue, and ignores changes.
    """

    def __init__(
        self, state: ObservedState, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._known = state
        self._clock = clock
        self._queue: WorkQueue | None = None
        self._reconciled_at: dict[str, float] = {}
        state.runs.subscribe(self._run_changed)
        state.pods.subscribe(self._owned_changed)
        state.services.subscribe(self._owned_changed)
        state.config_maps.subscribe(self._config_map_changed)
        state.deployments.subscribe(self._owned_changed)
        state.workloads.subscribe(self._owned_changed)
        state.nodes.cache.subscribe(self._node_changed)

    def begin(self, queue: WorkQueue) -> None:
        """Use this queue from now on, and add every known run to it."""
        self._queue = queue
        for key in self._known.runs.items():
            queue.add(key)

    def end(self) -> None:
        """Stop using the queue."""
        self._queue = None
        self._reconciled_at.clear()

    def note_reconciled(self, key: str) -> None:
        """Record that a run was reconciled just now."""
        if self._known.runs.get(key) is not None:
            self._reconciled_at[key] = self._clock()

    def _run_changed(self, change: Change[StoredRun]) -> None:
        if change.after is None:
            self._reconciled_at.pop(change.key, None)
        if self._queue is not None:
            self._queue.add(change.key)

    def _config_map_changed(self, change: Change[str]) -> None:
        self.add(change.after or change.before or "")

    def _owned_changed(
        self,
        change: Change[OwnedPod]
        | Change[RunsService]
        | Change[RunsDeployment]
        | Change[StoredWorkload],
    ) -> None:
        owned = change.after or change.before
        if owned is not None:
            self.add(owned.run_uid)

    def _node_changed(self, change: Change[WatchedNode]) -> None:
        for uid in self._known.runs_on(change.key):
            self.add(uid)

    def add(self, uid: str) -> None:
        """Add the Run with this uid, whose objects have changed."""
        key = self._known.key_of(uid)
        if key is None or self._queue is None:
            # The first reconcile of a run that is not cached yet reads everything.
            return
        pause = min(
            LONGEST_PAUSE,
            max(SHORTEST_PAUSE, self._known.pod_count(key.partition("/")[0], uid) * PAUSE_PER_POD),
        )
        since = self._clock() - self._reconciled_at.get(key, float("-inf"))
        self._queue.add_after(key, pause - since)


class Controller:
    """Reconciles the Runs of one namespace, or of all namespaces if it is empty.

    `run()` always runs, as the watches do, so that a new leader has current caches; `lead()` runs
    while this process leads. `plan` computes a run's plan. `nodes`: watch nodes and capacity
    classes, which needs cluster-wide rights.
    """

    def __init__(
        self,
        watches: Watches,
        writer: Writer,
        plan: Callable[[Run], Plan],
        metrics: ControllerMetrics,
        *,
        namespace: str = "",
        workers: int = WORKERS,
        nodes: bool = True,
        terms: RestartTerms = DEFAULT_TERMS,
    ) -> None:
        client = watches.client
        self._workers = workers
        self._metrics = metrics
        self.known = ObservedState()
        self.informers = Informers(watches, self.known, namespace, nodes=nodes)
        self.announcer = Announcer(writer)
        self._router = EventRouter(self.known)
        self.refusals = Refusals()
        self.known.runs.subscribe(self._forget)
        objects = Objects(client, writer, self.known)
        self.engines = Engines(watches, self.known.runs, namespace, self._router.add)
        self.known.nodes.cache.subscribe(lambda change: self.engines.node_changed(change.key))
        trials = Trials(self.known)
        self.queues = Queues(watches, self.known, objects, trials, namespace)
        self.starts = Starts(self.known, self.refusals, self._router.add)
        self._reconciler = Reconciler(
            self.known,
            objects,
            RunCache(plan),
            ActionExecutor(
                objects,
                self.refusals,
                self.known.memory,
                metrics,
                WorkloadExecutor(client, writer, self.known, objects, trials),
                others_wait=self._others_wait,
            ),
            self.refusals,
            self.announcer,
            metrics,
            Delegation(client, writer, self.engines, self.known.nodes, objects, self.refusals),
            WaitingPods(client),
            self.queues,
            self.starts,
            terms=terms,
        )
        self._queue: WorkQueue | None = None

    def queue_depth(self) -> int:
        """Return the number of runs that wait for a worker."""
        return self._queue.agenda.ready if self._queue else 0

    def _others_wait(self, namespace: str) -> bool:
        return self._queue is not None and self._queue.agenda.others_wait(namespace)

    def queue_age(self) -> float:
        """Return the seconds for which the first run in the queue has waited."""
        return self._queue.oldest_age() if self._queue else 0.0

    def failing_age(self) -> float:
        """Return the seconds for which a run has failed again and again; 0.0 if none does."""
        return self._queue.failing_age() if self._queue else 0.0

    async def run(self) -> None:
        """Watch the kinds of engines that Runs use, and write Events, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.known.nodes.run())
            group.create_task(self.engines.run())
            group.create_task(self.announcer.run())

    async def lead(self) -> None:
        """Reconcile until cancelled."""
        await self.informers.catch_up()
        # The caches stay: a collection would walk all that they hold, in one turn of the loop.
        gc.freeze()
        self.known.memory.begin()
        queue = self._queue = WorkQueue()
        self._router.begin(queue)
        self._metrics.leads(leads=True)
        tasks = [asyncio.create_task(self._work(queue)) for _ in range(self._workers)]
        try:
            # asyncio.gather would cancel the workers together with this task.
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in ended:
                task.result()
        finally:
            self._metrics.leads(leads=False)
            self._router.end()
            self._queue = None
            queue.shut_down()
            await _ended(tasks)
            self.known.memory.end()

    async def _work(self, queue: WorkQueue) -> None:
        while (key := await queue.get()) is not None:
            began = time.monotonic()
            try:
                result = await self._reconcile_key(queue, key)
            finally:
                queue.done(key)
            self._router.note_reconciled(key)
            self._metrics.reconciled(result, time.monotonic() - began)

    async def _reconcile_key(self, queue: WorkQueue, key: str) -> str:
        """Reconcile one run, and requeue it if needed; return the result's name for metrics."""
        try:
            after = await self._reconciler.reconcile_key(key)
        except InvalidRun as error:
            queue.forget(key)
            _logger.info("no pods can be made of run %s", key, extra={"problems": error.problems})
            return "invalid"
        except NotLeading:
            # The new leader reconciles every run.
            return "failed"
        except ClusterError as error:
            seconds = queue.retry(key)
            conflict = error.status == HTTPStatus.CONFLICT
            log = _logger.debug if conflict else _logger.warning
            log("run %s: %s; again in %.2f s", key, error, seconds)
            return "conflict" if conflict else "failed"
        except Exception:
            # A bug in one run must not stop the others.
            _logger.exception("run %s cannot be reconciled: this is a bug", key)
            queue.retry(key)
            return "failed"
        queue.forget(key)
        if after is not None:
            queue.add_after(key, after)
        return "done"

    def _forget(self, change: Change[StoredRun]) -> None:
        before, after = change.before, change.after
        if before is not None and (after is None or after.uid != before.uid):
            if self._queue is not None:
                self._reconciler.count_deleted(before)
            self.refusals.forget(before.uid)
            self.known.memory.forget_run(before.uid)


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    """Wait for the tasks for SHUTDOWN_SECONDS seconds, then cancel them."""
    await asyncio.wait(tasks, timeout=SHUTDOWN_SECONDS)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
