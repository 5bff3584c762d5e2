"""Fallbacks never come later because a run starts all at once.

A replica that waits for a class goes on waiting over all tries of its start, until it has a node or
the class is given up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tests.run.machine.books import gang_of, gave_way, indexes, role_of
from tests.run.machine.things import Json, RunThing
from webhook.run import actions as act
from webhook.run.model import RoleStatus, Run
from webhook.run.model.status import GangStatus
from webhook.run.observed import Observed, OwnedPod

OVER = ("Succeeded", "Failed")
Key = tuple[str, str, int, str]


@dataclass
class Waits:
    """Since when replicas wait, by run, role, index and class, as of the tries that gave way.

    given: the same as of a decision to give way that is not written yet.
    """

    since: dict[Key, datetime] = field(default_factory=dict)
    given: dict[Key, datetime] = field(default_factory=dict)

    def check(self, run: Run, observed: Observed, outcome: act.Outcome, now: datetime) -> None:
        """Raise AssertionError if a decision gives a class up too late."""
        before, after = run.status.gang, outcome.status.gang
        stops = run.metadata.deletion_timestamp or run.spec.suspend
        if stops or outcome.status.phase in (*OVER, "Suspended") or before is None or after is None:
            return
        waiting = {}
        for pod in _pods(run, observed):
            if pod.node:
                mine = run.metadata.uid, pod.role, pod.index
                self.since = {key: at for key, at in self.since.items() if key[:3] != mine}
            elif pod.unscheduled and not (pod.ended or pod.deleted_at):
                for capacity, most in pod.fallback:
                    if most is not None and (pod.name, capacity) not in observed.uncounted:
                        key = run.metadata.uid, pod.role, pod.index, capacity
                        since = datetime.fromisoformat(pod.unscheduled_since)
                        since = min(self.since.get(key, since), since)
                        waiting[key] = pod, since, most - (now - since).total_seconds()
        if (before.state, after.state) == ("Starting", "Waiting"):
            self.given = {**self.since, **{key: since for key, (_, since, _) in waiting.items()}}
            _check_pause(waiting, after, now)
        elif before.state == after.state and not _begins_anew(run, outcome):
            for (_, _, _, capacity), (pod, since, left) in waiting.items():
                what = f"{pod.name} waits for {capacity} since {since}"
                assert left > 0 or _gives_up(outcome, pod, capacity), f"{what}, and goes on"

    def written(self, old: RunThing, new: RunThing) -> None:
        """Take over the waits of a try that gives way, and forget those that a status ends."""
        if gave_way(old.status, new.status):
            self.since = dict(self.given)
        if new.status.get("phase") in (*OVER, "Suspended") or not gang_of(new.status):
            self.since = {key: at for key, at in self.since.items() if key[0] != new.uid}
        for role in new.status.get("replicas", {}):
            known = {*_told(role_of(old.status, role))}
            for index, capacity, _ in {*_told(role_of(new.status, role))} - known:
                self.since.pop((new.uid, role, index, capacity), None)


def _pods(run: Run, observed: Observed) -> Iterator[OwnedPod]:
    """The pods on which the run counts."""
    for pod in observed.pods.values():
        role = run.status.replicas.get(pod.role) or RoleStatus()
        if pod.attempt == role.attempt and pod.uid not in role.counted_uids:
            yield pod


def _check_pause(
    waiting: Mapping[Key, tuple[OwnedPod, datetime, float]], gang: GangStatus, now: datetime
) -> None:
    """The waits are kept, and the next try is due when the first of them ends."""
    kept = {
        (each.role, index, each.capacity_class): datetime.fromisoformat(each.since)
        for each in gang.waited
        for index in indexes(each.indexes)
    }
    pause = (datetime.fromisoformat(gang.not_before or gang.since) - now).total_seconds()
    for (_, role, index, capacity), (pod, since, left) in waiting.items():
        what = f"{pod.name} waits for {capacity} since {since}"
        assert (role, index, capacity) in kept, f"{what}, and that is forgotten"
        assert kept[role, index, capacity] <= since, f"{what}, and not {gang.waited}"
        assert pause <= max(0.0, left) + 0.001, f"{what}, and the next try is in {pause} s"


def _begins_anew(run: Run, outcome: act.Outcome) -> bool:
    return any(
        role.attempt > (run.status.replicas.get(name) or RoleStatus()).attempt
        for name, role in outcome.status.replicas.items()
    )


def _gives_up(outcome: act.Outcome, pod: OwnedPod, capacity: str) -> bool:
    """Whether the replica's history says by now that it waited for the class."""
    return any(
        event.capacity_class == capacity and event.waited_seconds is not None
        for entry in outcome.status.replicas[pod.role].history
        if pod.index in indexes(entry.indexes)
        for event in entry.events
        if datetime.fromisoformat(event.time) >= datetime.fromisoformat(pod.created)
    )


def _told(role: Json) -> Iterator[tuple[int, str, str]]:
    """Index, class and time of each wait that a role's status tells of."""
    for entry in role.get("history", ()):
        for index in indexes(entry["indexes"]):
            for event in entry["events"]:
                if "waitedSeconds" in event:
                    yield index, event["class"], event["time"]
