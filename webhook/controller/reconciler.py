"""Reconcile one Run: read, decide, act, write one status."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol

from webhook.controller.action_executor import Done
from webhook.errors import ClusterError, InvalidRun, NotLeading
from webhook.run.actions import Announcement, DeleteRun, Outcome
from webhook.run.backends.engine_object import undelegated_problems
from webhook.run.backends.engines import find_engine
from webhook.run.engine_report import pause_of_events, report_failed_write
from webhook.run.gang import is_gang
from webhook.run.idle import creates, needs_whole
from webhook.run.observed import Needs
from webhook.run.own_terms import uncounted_waits
from webhook.run.reading import held_status, hold_invalid, hold_unplanned
from webhook.run.reconcile import DEFAULT_TERMS, invalid_status, reconcile
from webhook.run.replica_nodes import nodes_without_pods
from webhook.run.usage import resources_in_use, settle_deleted
from webhook.times import elapsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webhook.controller.action_executor import ActionExecutor
    from webhook.controller.announcer import Announcer
    from webhook.controller.delegation import Delegation
    from webhook.controller.observed_state import ObservedState
    from webhook.controller.owned_objects import Objects
    from webhook.controller.queues import Queues
    from webhook.controller.refusals import Refusals
    from webhook.controller.starts import Starts
    from webhook.controller.stored_run import RunCache, StoredRun
    from webhook.controller.waiting_pods import WaitingPods
    from webhook.crd.conditions import ConditionUpdate
    from webhook.placement.room import Room
    from webhook.run.model import Run, RunStatus
    from webhook.run.observed import Observed, OwnedPod, Refusal
    from webhook.run.plan import Plan
    from webhook.run.queue_state import Queueing
    from webhook.run.reading import RunReading
    from webhook.run.restarts import RestartTerms

_logger = logging.getLogger(__name__)

# Minimum seconds before an immediate requeue if the last reconcile did nothing.
IDLE: Final = 1.0
# Seconds until a run is looked at again that is held, or whose status was not stored whole.
HELD_PAUSE: Final = 30.0
# Seconds until the live pods of a run are read again that the watch does not know.
UNWATCHED_PAUSE: Final = 20.0
# Seconds between two looks at whether another engine's objects are listed.
FIRST_LIST_PAUSE: Final = 0.2


class Written(Protocol):
    """A sink for metrics of runs."""

    def expect_usage(self, resources: Iterable[tuple[str, str]]) -> None:
        """Show the usage of these, by capacity class and resource, before it is counted."""

    def written(self, before: RunStatus, after: RunStatus) -> None:
        """Count what a write of a run's status changed."""


class Reconciler:
    """Reconciles runs by key. The queue never runs one key concurrently."""

    def __init__(
        self,
        state: ObservedState,
        objects: Objects,
        run_cache: RunCache,
        executor: ActionExecutor,
        refusals: Refusals,
        announcer: Announcer,
        metrics: Written,
        delegation: Delegation,
        waiting_pods: WaitingPods,
        queues: Queues,
        starts: Starts,
        *,
        terms: RestartTerms = DEFAULT_TERMS,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._known = state
        self._objects = objects
        self._run_cache = run_cache
        self._executor = executor
        self._refusals = refusals
        self._announcer = announcer
        self._metrics = metrics
        self._delegation = delegation
        self._waiting_pods = waiting_pods
        self._queues = queues
        self._starts = starts
        self._terms = terms
        self._now = now
        # Runs in queues that were deleted, by key, until nothing of them holds quota.
        self._gone: dict[str, StoredRun] = {}
        # By uid: Runs of whose last status the API server dropped fields.
        self._cut: set[str] = set()

    async def reconcile_key(self, key: str) -> float | None:
        """Reconcile one run; return the seconds until the next time, None to wait for a change.

        A run of which this version does not understand everything is held: only its condition is
        written. Raises InvalidRun after writing to the status that no pods can be created;
        ClusterError to request a retry (status 409 if the run changed in the meantime); NotLeading
        if another process may be the leader.
        """
        stored = self._known.runs.get(key)
        if gone := self._gone.get(key):
            await self._executor.workloads.release(gone)
            del self._gone[key]
        if stored is None:
            return None
        try:
            return await self._reconcile_stored(stored)
        except _NeedsWholeError:
            # Meanwhile it may have changed, and is decided as it is now.
            whole = await self._objects.read_run(stored)
            return await self._reconcile_stored(whole) if whole else None

    def count_deleted(self, stored: StoredRun) -> None:
        """Count what the pods of a Run that is gone used: no status has it.

        They end now, or the garbage collector is about to delete them.
        """
        self._cut.discard(stored.uid)
        if stored.queued:
            self._gone[stored.key] = stored
        before = self._run_cache.read(stored).status
        observed = self._known.observed(stored.namespace, stored.uid)
        pods = (*observed.gone, *observed.pods.values())
        self._metrics.expect_usage(resources_in_use(observed))
        self._metrics.written(before, settle_deleted(before, pods, observed, self._now()))

    async def _reconcile_stored(self, stored: StoredRun) -> float | None:
        reading = self._run_cache.read(stored)
        if held := reading.hold():
            return None if stored.deleted else await self._hold(stored, held)
        try:
            if reading.valid_run().spec.delegated:
                return await self._reconcile_delegated(stored, reading)
            return await self._reconcile(stored, reading)
        except InvalidRun as error:
            if stored.deleted:
                return None
            if reading.status.begun and not reading.status.ended:
                held = (
                    hold_unplanned(stored.reason, stored.problem)
                    if stored.problem and reading.run
                    else hold_invalid(error.problems)
                )
                return await self._hold(stored, held)
            await self._give_up(stored, reading.status, error)
            raise

    async def _reconcile(self, stored: StoredRun, reading: RunReading) -> float | None:
        run = reading.valid_run()
        if stored.deleted:
            observed = self._known.observed(run.namespace, run.metadata.uid, (), set())
            outcome = reconcile(run, Needs(), observed, self._now(), self._terms)
            return await self._conclude(stored, reading, outcome, Done(), observed.gone)
        planned = not (run.status.ended or stored.reduced or stored.problem)
        plan = self._run_cache.plan(stored) if planned else None
        queue = await self._queues.observe(stored, plan)
        observed, outcome = await self._decide(run, plan, queue)
        _check_whole(stored, outcome)
        if outcome.status.ended and (held := reading.hold_end()):
            return await self._hold(stored, held)
        self._metrics.expect_usage(resources_in_use(observed))
        done = await self._executor.carry_out(run, plan, observed, outcome.actions)
        return await self._conclude(stored, reading, outcome, done, observed.gone)

    async def _reconcile_delegated(self, stored: StoredRun, reading: RunReading) -> float | None:
        """Reconcile a run whose pods another engine creates. Raises InvalidRun like a plan."""
        run = reading.valid_run()
        if find_engine(run) is None:
            raise InvalidRun(undelegated_problems(run))
        engine = await self._delegation.choose(stored.engine)
        decided = await self._delegation.decide(run, stored.engine, engine, self._now())
        if decided is None:
            return FIRST_LIST_PAUSE
        observed, outcome = decided
        _check_whole(stored, outcome)
        if outcome.status.ended and (held := reading.hold_end()):
            return await self._hold(stored, held)
        self._delegation.forget_counted(run, stored.engine, observed)
        done = await self._delegation.carry_out(run, stored.engine, engine, outcome.actions)
        if done.error:
            outcome = report_failed_write(run, outcome, done.failed)
        return await self._conclude(stored, reading, outcome, done)

    async def _conclude(
        self,
        stored: StoredRun,
        reading: RunReading,
        outcome: Outcome,
        done: Done,
        gone: Iterable[OwnedPod] = (),
    ) -> float | None:
        """Write the status after the actions; return the seconds until the next reconcile.

        gone: the deleted pods that the status counts.
        """
        if isinstance(done.error, NotLeading) or (done.error and done.error.status is None):
            # Further requests would fail in the same way.
            raise done.error
        news = self._note(stored.uid, outcome, done.made, done.refused)
        status = reading.report(outcome.status, stored.generation, self._now())
        if done.ssh_secret:
            status = status.model_copy(update={"ssh_secret": done.ssh_secret})
        outcome = replace(outcome, status=status)
        settled = [pod.uid for pod in gone] if outcome.counted else []
        try:
            written = await self._write(stored, reading.status, outcome)
        except ClusterError as error:
            if error.status != HTTPStatus.CONFLICT:
                # The status may be stored all the same.
                self._known.memory.forget(stored.uid, settled)
            raise
        self._known.memory.forget(stored.uid, settled)
        if outcome.status.ended or outcome.status.stopped:
            self._known.memory.forget_unwatched(stored.uid)
        if written:
            self._known.memory.plan(stored.uid, outcome.planned)
            self._announcer.announce(stored, outcome.announcements)
        if done.error:
            raise done.error
        if news or done.cut:
            # The status does not show the refusals yet, or actions remain.
            return 0.0
        return self._next(stored.uid, outcome, busy=written or done.acted)

    async def _decide(
        self, run: Run, plan: Plan | None, queue: Queueing
    ) -> tuple[Observed, Outcome]:
        """Compute the outcome, after reading the pods that are missing from the cache."""
        uid = run.metadata.uid
        needs = plan.needs if plan else Needs(address=run.status.address)
        of_failures = {
            incident.node for incident in run.status.incidents if incident.cause != "Disruption"
        }
        bare = nodes_without_pods(run, self._known.pods_of(run.namespace, uid))
        observed = self._known.observed(
            run.namespace,
            uid,
            self._refusals.refusals_of(uid),
            {*of_failures, *bare} - {""},
        )
        nodes = self._known.nodes
        if plan and observed.nodes is not None:
            waits = uncounted_waits(
                plan, observed.pods.values(), nodes.compiled_class, nodes.groups
            )
            observed = replace(observed, uncounted=waits)
        observed, left = await self._with_report(run, plan, replace(observed, queue=queue))
        if plan and is_gang(run):
            start = self._starts.observe(run, plan, self._room(run, plan, observed))
            observed = replace(observed, start=start)
        outcome = reconcile(run, needs, observed, self._now(), self._terms)
        looked_up: frozenset[str] = frozenset()
        unwatched = False
        while (unknown := outcome.look_up - looked_up) or outcome.look_up_nodes:
            looked_up |= unknown
            pods = await self._objects.get_pods(run, unknown)
            unwatched = unwatched or bool(pods)
            absent = unknown - pods.keys()
            watched = self._known.pods_of(run.namespace, uid)
            self._known.memory.read(uid, pods.keys() - watched.keys(), absent)
            read = await self._objects.read_nodes(outcome.look_up_nodes)
            observed = replace(
                observed,
                pods={**observed.pods, **pods},
                absent=observed.absent | absent,
                nodes=None if observed.nodes is None else {**observed.nodes, **read},
                nodes_read=observed.nodes_read | read.keys(),
            )
            outcome = reconcile(run, needs, observed, self._now(), self._terms)
        times = [seconds for seconds in (left, outcome.after) if seconds is not None]
        if unwatched:
            # Their labels were changed, or the watch is late: it may tell nothing of them.
            times.append(UNWATCHED_PAUSE)
        return observed, replace(outcome, after=min(times, default=None))

    async def _with_report(
        self, run: Run, plan: Plan | None, observed: Observed
    ) -> tuple[Observed, float | None]:
        """Add what is reported about the pod that waits longest, and the room of the run; also
        return the seconds until the next report, None if no replica waits."""
        if run.status.ended or run.spec.serving or not (pod := observed.waits_longest()):
            return observed, None
        pause = pause_of_events(elapsed(pod.unscheduled_since, self._now()))
        reported, left = await self._waiting_pods.report(run.namespace, pod, pause)
        room = self._room(run, plan, observed) if plan else None
        return replace(observed, reported=reported, room=room), left

    def _room(self, run: Run, plan: Plan, observed: Observed) -> Room | None:
        """Return how many replicas the nodes can run; None if the nodes are not known."""
        if observed.nodes is None:
            return None
        return self._waiting_pods.room(run.metadata.uid, plan, self._known.nodes.groups)

    def _note(self, uid: str, outcome: Outcome, made: set[str], refused: list[Refusal]) -> bool:
        """Record the rejected creations; return True if they changed."""
        if creates(outcome):
            return self._refusals.note(uid, made, refused)
        return self._refusals.forget(uid)

    async def _write(self, stored: StoredRun, before: RunStatus, outcome: Outcome) -> bool:
        """Write the status if it has changed; return whether it had."""
        deleted = any(isinstance(action, DeleteRun) for action in outcome.actions)
        status = outcome.status
        if deleted or status == before:
            return False
        if not await self._replace(stored, status.to_json()):
            return False
        self._metrics.written(before, status)
        return True

    async def _replace(self, stored: StoredRun, status: dict[str, Any]) -> bool:
        """Write this status; return False if the Run is deleted."""
        raw = stored.raw()
        raw["status"] = status
        try:
            whole = await self._objects.write_status(raw)
        except ClusterError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return False
            raise
        if whole:
            self._cut.discard(stored.uid)
        else:
            self._cut.add(stored.uid)
        return True

    async def _hold(self, stored: StoredRun, update: ConditionUpdate) -> float:
        """Report in the status, which stays as it is, why nothing is done about the run.

        Later it is read again. Return the seconds until then.
        """
        before = stored.raw().get("status")
        status = held_status(before, update, stored.generation, self._now())
        if status == before:
            await self._objects.refresh_run(stored)
        elif await self._replace(stored, status):
            _logger.warning("run %s: %s", stored.key, update.message)
            announcement = Announcement("Warning", "NotUnderstood", update.message)
            self._announcer.announce(stored, (announcement,))
        return HELD_PAUSE

    def _next(self, uid: str, outcome: Outcome, *, busy: bool) -> float | None:
        after, held = outcome.after, self._refusals.next(uid)
        if uid in self._cut:
            # No watch tells when the definition is as new as this version.
            after = min(HELD_PAUSE, HELD_PAUSE if after is None else after)
        if held is not None:
            return min(held, after or held)
        if after == 0 and not busy:
            return IDLE
        return after

    async def _give_up(self, stored: StoredRun, before: RunStatus, error: InvalidRun) -> None:
        """Write to the status that no pods can be created, unless the run has finished."""
        if before.ended:
            return
        generation, reason = stored.generation, stored.reason
        status = invalid_status(before, generation, reason, error.problems, self._now())
        if await self._write(stored, before, Outcome(status)):
            announcement = Announcement("Warning", reason, status.message)
            self._announcer.announce(stored, (announcement,))


class _NeedsWholeError(Exception):
    """The cache has the reduced Run, and the whole one is needed."""


def _check_whole(stored: StoredRun, outcome: Outcome) -> None:
    """Raise _NeedsWholeError, or InvalidRun, if nothing may be done by the outcome."""
    if stored.problem and creates(outcome):
        raise InvalidRun((stored.problem,))
    if stored.reduced and not stored.deleted and needs_whole(stored.phase, outcome):
        raise _NeedsWholeError
