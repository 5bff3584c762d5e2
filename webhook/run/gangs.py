"""The gangs that are not whole, with what looks at their pods and at the nodes have shown.

All that others have to know is in the statuses of Runs, so another process goes on where the last
one stopped. Of a grant whose status is not stored yet this process knows by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook.placement.pod_requests import requests
from webhook.run.gang import is_gang, replicas_needed
from webhook.run.observed import Refusal
from webhook.run.room import describe_short
from webhook.run.start_order import NO_START, Start, Starter, contended, find_start
from webhook.times import elapsed, to_microsecond

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from webhook.placement.room import Room
    from webhook.run.model import Run
    from webhook.run.model.status import GangStatus
    from webhook.run.observed import OwnedPod
    from webhook.run.plan import Plan


class Gang(NamedTuple):
    """A gang that is not whole. name: namespace/name; created: RFC 3339."""

    name: str
    created: str
    status: GangStatus


class _Look(NamedTuple):
    """What a look at a gang's plan and at the nodes has shown."""

    resources: frozenset[str]
    fits: bool


class Gangs:
    """The gangs by uid. `objects` returns the pods and the rejections of a Run, by name and uid."""

    def __init__(
        self, objects: Callable[[str, str], tuple[Collection[OwnedPod], Collection[Refusal]]]
    ) -> None:
        self._objects = objects
        self._gangs: dict[str, Gang] = {}
        self._looks: dict[str, _Look] = {}
        self._granted: dict[str, GangStatus] = {}
        # When each was first seen without being whole.
        self._since: dict[str, str] = {}

    def count(self, state: str) -> int:
        """Return how many gangs are Waiting, or Starting."""
        # A copy, as another thread may ask.
        return sum(gang.status.state == state for gang in tuple(self._gangs.values()))

    def longest_wait(self, now: datetime) -> float:
        """Return the seconds for which the first of them has not been whole, as far as seen."""
        return max((elapsed(since, now) for since in tuple(self._since.values())), default=0.0)

    @property
    def waiting(self) -> list[str]:
        """The uids of those whose start has not begun."""
        return [uid for uid, gang in self._gangs.items() if gang.status.state == "Waiting"]

    def store(self, uid: str, gang: Gang | None) -> bool:
        """Take what is stored of a Run; None if it competes for nothing. Return whether a start
        is over by it, so that others may be next."""
        self._granted.pop(uid, None)
        before = self._gangs.pop(uid, None)
        if gang is None:
            self._looks.pop(uid, None)
            self._since.pop(uid, None)
            return before is not None
        self._gangs[uid] = gang
        self._since.setdefault(uid, gang.status.since)
        return before is not None and before.status.state == "Starting" != gang.status.state

    def observe(
        self,
        run: Run,
        plan: Plan,
        room: Room | Refusal | None,
        now: datetime,
        *,
        on_demand: bool,
    ) -> Start:
        """Return whether the Run may start; a grant counts from now on.

        room: or why a pod is rejected; None if the nodes are not known. on_demand: nodes may be
        made.
        """
        uid = run.metadata.uid
        self._granted.pop(uid, None)
        if uid not in self._gangs or not is_gang(run):
            return NO_START
        status = self._gangs[uid].status
        needed = replicas_needed(run)
        why = _lacks(room, needed, on_demand=on_demand)
        self._looks[uid] = _Look(_resources_of(plan), not why)
        if why and status.state == "Waiting":
            return Start(why=why)
        others = map(self._starter, self._gangs)
        start = find_start(self._starter(uid), others, now)._replace(on_demand=on_demand)
        if start.granted:
            # Others that are looked at before the status is stored have to know.
            self._granted[uid] = status.model_copy(
                update={"state": "Starting", "since": to_microsecond(now)}
            )
        if room is None:
            why = "this controller does not know the nodes, and so not whether all replicas fit"
            start = start._replace(why="; ".join(filter(None, (start.why, why))))
        return start

    def _starter(self, uid: str) -> Starter:
        gang = self._gangs[uid]
        pods, refusals = self._objects(gang.name, uid)
        look = self._looks.get(uid)
        return Starter(
            name=gang.name,
            uid=uid,
            created=gang.created,
            gang=self._granted.get(uid, gang.status),
            resources=look.resources if look else None,
            holds=any(pod.node and not pod.ended for pod in pods),
            lacks=any(pod.unscheduled and not pod.node for pod in pods) or bool(refusals),
            over_quota=any(refusal.reason == "QuotaExceeded" for refusal in refusals),
            # One that nobody has looked at keeps no other from starting.
            fits=look is not None and look.fits,
        )


def _lacks(room: Room | Refusal | None, needed: int, *, on_demand: bool) -> str:
    """Return why not all pods can have a node; empty if they can, or it is not known."""
    if isinstance(room, Refusal):
        return f"{room.name} is rejected: {room.message}"
    if room is None or on_demand or room.most >= needed:
        return ""
    return describe_short(room, needed)


def _resources_of(plan: Plan) -> frozenset[str]:
    """Return the resources for which the pods compete: cpu if they request no other."""
    usual = {(role, 0) for role in plan.gang.counts}
    return contended(
        name
        for role, index in {*usual, *plan.special}
        for name in requests(plan.pod(role, index, 0)["spec"])
    )
