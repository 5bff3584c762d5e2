"""What happened to replicas before: lost nodes and waits, by the class that their pods required.

The webhook decides by it whether they still require that class (placement/fallback.py), and marks
each pod with the classes for which it wants to know. A pod is created with the history of all that
restarts with it, as of their latest start, so that these decide alike. Only what a node caused
counts: nobody gets other nodes by deleting pods.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import orjson

from webhook.run.model.intervals import format_intervals, parse_intervals
from webhook.run.model.status import HistoryEvent, ReplicaHistory
from webhook.times import elapsed, parse_time, to_microsecond

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from webhook.run.facts import DownReplica, RoleFacts
    from webhook.run.model import Incident
    from webhook.run.observed import Observed, OwnedPod

# Days for which an event is kept, and the most of one replica, and of one role.
_KEPT_DAYS: Final = 7.0
_MAX_EVENTS: Final = 50
_MOST_OF_ROLE: Final = 2000
# What the webhook reads of an event; others may have stored more.
_OF_EVENTS: Final = set(HistoryEvent.model_fields)
# Reasons of disruptions that only who has rights on nodes can cause: from the node controller,
# the taint manager, PodGC and the kubelet, and as this controller finds them.
_BY_NODE: Final = frozenset(
    {
        *("NodeGone", "NodeShutdown", "NodeNotReady", "NodeLost", "Shutdown", "Terminated"),
        *("TerminationByKubelet", "DeletionByTaintManager", "DeletionByPodGC", "NodeUnhealthy"),
    }
)
# A drain, or a person: it counts if the node is being taken away.
_EVICTED: Final = "EvictionByEvictionAPI"


class History:
    """The histories of the replicas of a restart unit, during one reconcile.

    `together`: all replicas of the roles restart together, and have one history.
    """

    def __init__(self, unit: Sequence[RoleFacts], *, together: bool, now: datetime) -> None:
        self._unit = unit
        self._together = together
        self._now = now
        self._at = to_microsecond(now)
        self._entries: dict[tuple[str, int], ReplicaHistory] = {
            self._key(role_facts.role, index): entry
            for role_facts in unit
            for entry in role_facts.before.history
            for index in parse_intervals(entry.indexes)
        }

    def _key(self, role: str, index: int) -> tuple[str, int]:
        return ("", 0) if self._together else (role, index)

    def record(
        self, observed: Observed, decided: Iterable[Incident], *, resumed: bool
    ) -> Sequence[OwnedPod]:
        """Record what happened until now; return the pods without a node to create again."""
        events: dict[tuple[str, int], dict[HistoryEvent, None]] = defaultdict(dict)
        for role, index, capacity in self._losses(observed, decided):
            event = HistoryEvent(capacity_class=capacity, time=self._at)
            events[self._key(role, index)][event] = None
        down = {
            self._key(down_replica.role, down_replica.index)
            for role_facts in self._unit
            for down_replica in role_facts.down
        }
        waits = {
            wait: seconds for wait, seconds in self._waits(observed).items() if wait[0] not in down
        }
        for (key, capacity), seconds in waits.items():
            event = HistoryEvent(capacity_class=capacity, time=self._at, waited_seconds=seconds)
            events[key][event] = None
        moved = [
            pod
            for role_facts in self._unit
            if waits
            for pod in role_facts.alive.values()
            if not pod.node
            and any(
                (self._key(pod.role, pod.index), class_name) in waits
                for class_name, _ in pod.fallback
            )
        ]
        started = {*down, *(key for key, _ in waits)}
        # What shows later than a start counts at the next one.
        earlier = to_microsecond(self._now - timedelta(microseconds=1))
        for key in {*events, *self._entries}:
            before = self._entries.get(key) or ReplicaHistory(indexes="", as_of=earlier, events=())
            self._entries[key] = before.model_copy(
                update={
                    "indexes": "",
                    "as_of": self._at if resumed or key in started else before.as_of,
                    "events": self._kept((*before.events, *events[key])),
                }
            )
        return moved

    def of_role(self, role_facts: RoleFacts) -> tuple[ReplicaHistory, ...]:
        """Return the histories of a role for its status; equal ones share an entry."""
        groups: dict[ReplicaHistory, list[int]] = defaultdict(list)
        for index in range(role_facts.spec.count) if self._entries else ():
            entry = self._entries.get(self._key(role_facts.role, index))
            if entry and entry.events:
                groups[entry].append(index)
        sorted_groups = sorted(groups.items(), key=lambda item: item[0].as_of, reverse=True)
        room, kept = _MOST_OF_ROLE, []
        for entry, indexes in sorted_groups:
            room -= len(entry.events)
            if room >= 0:
                kept.append(entry.model_copy(update={"indexes": format_intervals(indexes)}))
        return tuple(sorted(kept, key=lambda entry: min(parse_intervals(entry.indexes))))

    def _losses(
        self, observed: Observed, decided: Iterable[Incident]
    ) -> Iterator[tuple[str, int, str]]:
        """Yield role, index and class of each replica under which a node was lost."""
        down = {
            down_replica.name: down_replica
            for role_facts in self._unit
            for down_replica in role_facts.down
        }
        for down_replica in down.values():
            if down_replica.node and _caused_by_node(down_replica, observed):
                for capacity, _ in down_replica.pod.fallback:
                    yield down_replica.role, down_replica.index, capacity
        # Nodes whose loss shows after the peers of their pods have failed.
        late = {
            incident.replica
            for incident in decided
            if incident.cause == "Disruption"
            and incident.reason in _BY_NODE
            and incident.replica not in down
        }
        for role_facts in self._unit if late else ():
            for pod in (*role_facts.ended.values(), *role_facts.stale.values()):
                if pod.name in late:
                    for capacity, _ in pod.fallback:
                        yield pod.role, pod.index, capacity

    def _waits(self, observed: Observed) -> dict[tuple[tuple[str, int], str], int]:
        """Return the seconds for which replicas have waited for a class, as long as they may."""
        longest: dict[tuple[tuple[str, int], str], int] = {}
        for role_facts in self._unit:
            for pod, capacity, since, end in waiting(role_facts, observed):
                if end <= self._now:
                    key = self._key(pod.role, pod.index), capacity
                    waited = int(elapsed(since, self._now))
                    longest[key] = max(waited, longest.get(key, 0))
        return longest

    def _kept(self, events: Iterable[HistoryEvent]) -> tuple[HistoryEvent, ...]:
        oldest = self._now - timedelta(days=_KEPT_DAYS)
        return tuple(event for event in events if parse_time(event.time) >= oldest)[-_MAX_EVENTS:]


def annotation_of(history: Sequence[ReplicaHistory], index: int) -> str:
    """Return the annotation of a replica's next pod; empty without a history."""
    for entry in history:
        if index in parse_intervals(entry.indexes):
            return _annotation(entry, entry.as_of)
    return ""


def annotations_at_start(history: Sequence[ReplicaHistory], now: datetime) -> dict[int, str]:
    """Return the annotations by index of replicas that start now."""
    return {
        index: text
        for entry in history
        if (text := _annotation(entry, to_microsecond(now)))
        for index in parse_intervals(entry.indexes)
    }


def _annotation(entry: ReplicaHistory, as_of: str) -> str:
    events = [
        event.model_dump(mode="json", by_alias=True, exclude_none=True, include=_OF_EVENTS)
        for event in entry.events
        if event.time <= as_of
    ]
    return orjson.dumps({"asOf": as_of, "events": events}).decode() if events else ""


def waited_for(history: Sequence[ReplicaHistory], index: int) -> set[str]:
    """Return the classes of a replica whose latest event is a wait."""
    waits: dict[str, bool] = {}
    for entry in history:
        if index in parse_intervals(entry.indexes):
            for event in sorted(entry.events, key=lambda event: event.time):
                waits[event.capacity_class] = event.waited_seconds is not None
    return {name for name, waited in waits.items() if waited}


def first_to_give_up(
    facts: Mapping[str, RoleFacts], observed: Observed
) -> tuple[datetime, str] | None:
    """Return when the first pods are created again because they waited, and for which class."""
    waits = (wait for role_facts in facts.values() for wait in waiting(role_facts, observed))
    ends = ((end, capacity) for _, capacity, _, end in waits)
    return min(ends, default=None)


def waiting(
    role_facts: RoleFacts, observed: Observed
) -> Iterator[tuple[OwnedPod, str, str, datetime]]:
    """Yield each pod that waits for a node of a class, since when, and until when, if that counts.

    The replica may have waited for it in earlier tries of a start.
    """
    for pod in role_facts.alive.values():
        if pod.unscheduled and pod.unscheduled_since and not pod.node:
            for capacity, most in pod.fallback:
                if most is not None and (pod.name, capacity) not in observed.uncounted:
                    earlier = observed.waited.get((pod.role, pod.index, capacity))
                    since = min(filter(None, (pod.unscheduled_since, earlier)))
                    yield pod, capacity, since, parse_time(since) + timedelta(seconds=most)


def _caused_by_node(down: DownReplica, observed: Observed) -> bool:
    if not down.failure.disruption:
        return False
    if down.failure.reason == _EVICTED:
        node = observed.node_health(down.pod)
        return bool(node and (node.leaving or node.trouble))
    return down.failure.reason in _BY_NODE
