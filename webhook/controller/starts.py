"""Grants the starts of gangs, one after the other, while this process leads.

All that others have to know is in the statuses of Runs, so a new leader goes on where the last one
stopped. Of a grant whose status is not written yet this process knows by itself.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from webhook.placement.pod_requests import requests
from webhook.run.gang import is_gang, replicas_needed
from webhook.run.room import BY_REQUESTS
from webhook.run.start_order import NO_START, Start, Starter, contended, find_start
from webhook.times import to_microsecond

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.controller.observed_state import ObservedState
    from webhook.controller.refusals import Refusals
    from webhook.controller.stored_run import StoredRun
    from webhook.kube.cache import Change
    from webhook.placement.room import Room
    from webhook.run.model import Run
    from webhook.run.model.status import GangStatus
    from webhook.run.plan import Plan


class _Look(NamedTuple):
    """What a look at a gang's plan and at the nodes has shown."""

    resources: frozenset[str]
    fits: bool


class Starts:
    """The gangs that are not whole. `wake` is called with the uid of each that may be next."""

    def __init__(
        self,
        state: ObservedState,
        refusals: Refusals,
        wake: Callable[[str], None],
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._state = state
        self._refusals = refusals
        self._wake = wake
        self._now = now
        self._gangs: dict[str, tuple[StoredRun, GangStatus]] = {}
        self._looks: dict[str, _Look] = {}
        self._granted: dict[str, GangStatus] = {}
        state.runs.subscribe(self._run_changed)

    def observe(self, run: Run, plan: Plan, room: Room | None) -> Start:
        """Return whether the Run may start; `room`: None if the nodes are not known."""
        uid = run.metadata.uid
        self._granted.pop(uid, None)
        if uid not in self._gangs or not is_gang(run):
            return NO_START
        _, gang = self._gangs[uid]
        classes = self._state.nodes.classes.items().values()
        on_demand = any(capacity.spec.autoscaled for capacity in classes)
        needed = replicas_needed(run)
        fits = room is None or on_demand or room.most >= needed
        self._looks[uid] = _Look(_resources_of(plan), fits)
        if not fits and gang.state == "Waiting" and room is not None:
            limit = f": {room.limit.text}" if room.limit else ""
            text = f"{BY_REQUESTS} {room.most} of {needed} replicas can have a node"
            return Start(why=text + limit)
        now = self._now()
        others = map(self._starter, self._gangs)
        start = find_start(self._starter(uid), others, now)._replace(on_demand=on_demand)
        if start.granted:
            # Others that are looked at before the status is stored have to know.
            self._granted[uid] = gang.model_copy(
                update={"state": "Starting", "since": to_microsecond(now)}
            )
        if room is None:
            why = "this controller does not know the nodes, and so not whether all replicas fit"
            start = start._replace(why="; ".join(filter(None, (start.why, why))))
        return start

    def _starter(self, uid: str) -> Starter:
        stored, gang = self._gangs[uid]
        pods = self._state.pods_of(stored.namespace, uid).values()
        refusals = self._refusals.refusals_of(uid)
        look = self._looks.get(uid)
        return Starter(
            name=stored.key,
            uid=uid,
            created=stored.created,
            gang=self._granted.get(uid, gang),
            resources=look.resources if look else None,
            holds=any(pod.node and not pod.ended for pod in pods),
            lacks=any(pod.unscheduled and not pod.node for pod in pods) or bool(refusals),
            over_quota=any(refusal.reason == "QuotaExceeded" for refusal in refusals),
            # One that nobody has looked at keeps no other from starting.
            fits=look is not None and look.fits,
        )

    def _run_changed(self, change: Change[StoredRun]) -> None:
        before, after = change.before, change.after
        if before is not None and (after is None or after.uid != before.uid):
            self._forget(before.uid)
            self._looks.pop(before.uid, None)
        if after is None:
            return
        if after.gang is not None and after.understood:
            self._granted.pop(after.uid, None)
            was = self._gangs.get(after.uid)
            self._gangs[after.uid] = after, after.gang
            if was and was[1].state == "Starting" != after.gang.state:
                self._wake_all()
        else:
            self._forget(after.uid)

    def _forget(self, uid: str) -> None:
        self._granted.pop(uid, None)
        if self._gangs.pop(uid, None):
            self._wake_all()

    def _wake_all(self) -> None:
        for uid, (_, gang) in self._gangs.items():
            if gang.state == "Waiting":
                self._wake(uid)


def _resources_of(plan: Plan) -> frozenset[str]:
    """Return the resources for which the pods compete: cpu if they request no other."""
    usual = {(role, 0) for role in plan.gang.counts}
    return contended(
        name
        for role, index in {*usual, *plan.special}
        for name in requests(plan.pod(role, index, 0)["spec"])
    )
