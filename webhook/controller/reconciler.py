"""One look at one run: what is known, what is decided, what is done, one status write."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

from webhook.controller.run_cache import status_of
from webhook.errors import ClusterError, InvalidRun, NotLeading
from webhook.run.actions import (
    Announcement,
    CreateConfigMap,
    CreateDeployment,
    CreateKeys,
    CreatePod,
    CreateService,
    DeleteRun,
    Outcome,
)
from webhook.run.observed import Needs
from webhook.run.reconcile import DEFAULT_TERMS, invalid, reconcile

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.controller.action_executor import ActionExecutor
    from webhook.controller.announcer import Announcer
    from webhook.controller.objects import Objects
    from webhook.controller.observed_state import ObservedState
    from webhook.controller.refusals import Refusals
    from webhook.controller.run_cache import RunCache
    from webhook.controller.stored_run import StoredRun
    from webhook.run.counting import RestartTerms
    from webhook.run.model import Run, RunStatus
    from webhook.run.observed import Observed, Refusal
    from webhook.run.plan import Plan

_OVER: Final = ("Succeeded", "Failed")
_CREATIONS: Final = (CreateKeys, CreateConfigMap, CreateService, CreateDeployment, CreatePod)
# Seconds before a look that is asked for at once, though the last one did nothing.
IDLE: Final = 1.0


class Transitions(Protocol):
    """Who counts changes of phase."""

    def transition(self, before: str, after: str) -> None:
        """A run's phase has changed, and that is written."""


class Reconciler:
    """Looks at runs by key. The queue sees to it that no run is looked at twice at a time."""

    def __init__(
        self,
        known: ObservedState,
        objects: Objects,
        readings: RunCache,
        doer: ActionExecutor,
        refusals: Refusals,
        announcer: Announcer,
        transitions: Transitions,
        *,
        terms: RestartTerms = DEFAULT_TERMS,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._known = known
        self._objects = objects
        self._readings = readings
        self._doer = doer
        self._refusals = refusals
        self._announcer = announcer
        self._transitions = transitions
        self._terms = terms
        self._now = now

    async def look(self, key: str) -> float | None:
        """Look at one run; seconds until the next look, None if only a change is a reason for one.

        Raises InvalidRun once it is written that no pods can be made of the run; ClusterError if
        it is to be tried again, with the status 409 if the run had changed meanwhile; NotLeading if
        another may be writing by now.
        """
        stored = self._known.runs.get(key)
        if stored is None or stored.deleted:
            # What it owns goes with it: that is the garbage collector's work.
            return None
        try:
            run = self._readings.run(stored)
            plan = None if run.status.phase in _OVER else self._readings.plan(run)
        except InvalidRun as error:
            await self._give_up(stored, error)
            raise
        return await self._reconcile(stored, run, plan)

    async def _reconcile(self, stored: StoredRun, run: Run, plan: Plan | None) -> float | None:
        observed, outcome = await self._decide(run, plan.needs if plan else Needs())
        done = await self._doer.carry_out(run, plan, observed, outcome.actions)
        if isinstance(done.error, NotLeading) or (done.error and done.error.status is None):
            # What comes next would meet the same.
            raise done.error
        news = self._note(stored.uid, outcome, done.made, done.refused)
        written = await self._write(stored, run.status, outcome)
        if written:
            self._announcer.announce(stored, outcome.announcements)
        if done.error:
            raise done.error
        if news:
            # The status does not tell of the refusals yet.
            return 0.0
        return self._next(stored.uid, outcome, busy=written or done.acted)

    async def _decide(self, run: Run, needs: Needs) -> tuple[Observed, Outcome]:
        """What to do, pods that are missing looked up first."""
        uid = run.metadata.uid
        failed_on = {each.node for each in run.status.incidents if each.cause != "Disruption"}
        observed = self._known.observed(
            run.namespace, uid, self._refusals.of(uid), failed_on - {""}
        )
        outcome = reconcile(run, needs, observed, self._now(), self._terms)
        asked: frozenset[str] = frozenset()
        while (unknown := outcome.look_up - asked) or outcome.look_up_nodes:
            asked |= unknown
            found = await self._objects.look_up(run, unknown)
            nodes = await self._objects.read_nodes(outcome.look_up_nodes)
            observed = replace(
                observed,
                pods={**observed.pods, **found},
                absent=observed.absent | (unknown - found.keys()),
                nodes=None if observed.nodes is None else {**observed.nodes, **nodes},
                nodes_read=observed.nodes_read | nodes.keys(),
            )
            outcome = reconcile(run, needs, observed, self._now(), self._terms)
        return observed, outcome

    def _note(self, uid: str, outcome: Outcome, made: set[str], refused: list[Refusal]) -> bool:
        """Remember what was refused; whether that is news."""
        if any(isinstance(action, _CREATIONS) for action in outcome.actions):
            return self._refusals.note(uid, made, refused)
        return self._refusals.forget(uid)

    async def _write(self, stored: StoredRun, before: RunStatus, outcome: Outcome) -> bool:
        """Write the status if it has changed; whether it had."""
        deleted = any(isinstance(action, DeleteRun) for action in outcome.actions)
        status = outcome.status
        if deleted or status == before:
            return False
        raw = stored.raw()
        raw["status"] = status.written()
        try:
            await self._objects.write_status(raw)
        except ClusterError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return False
            raise
        if status.phase != before.phase:
            self._transitions.transition(before.phase, status.phase)
        return True

    def _next(self, uid: str, outcome: Outcome, *, busy: bool) -> float | None:
        after, held = outcome.after, self._refusals.next(uid)
        if held is not None:
            return min(held, after or held)
        if after == 0 and not busy:
            return IDLE
        return after

    async def _give_up(self, stored: StoredRun, error: InvalidRun) -> None:
        """Write that no pods can be made of the run, unless it is over anyway."""
        before = status_of(stored)
        if before.phase in _OVER:
            return
        status = invalid(before, stored.generation, error.problems, self._now())
        if await self._write(stored, before, Outcome(status)):
            said = Announcement("Warning", "InvalidRun", status.message)
            self._announcer.announce(stored, (said,))
