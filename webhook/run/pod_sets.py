"""The pod sets of a Run in a queue of Kueue: its replicas that are placed alike.

Kueue gives each pod set its flavors. Policies may place the replicas of one role differently: by
index, by who leads, by a split, by what happened to a replica before. So a pod of each is tried,
and replicas of a role whose pods ask the same of nodes are one set.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import orjson

from webhook.placement.stamp_text import read_given_up, read_stamp, read_turns
from webhook.run.history import annotations_at_start
from webhook.run.model.intervals import format_intervals
from webhook.run.queue_topology import find_problems
from webhook.run.queue_workload import POD_SET_NOTE, noted, pod_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from webhook.placement.shapes import JsonObject
    from webhook.run.model import Run
    from webhook.run.plan import Plan
    from webhook.run.queue_state import StoredWorkload

    # The annotations of the next pods, by role and index.
    Histories: TypeAlias = Mapping[str, Mapping[int, str]]

# The limit of Kueue's definition of a Workload.
MOST_POD_SETS: Final = 8


class PodSet(NamedTuple):
    """Replicas of a role that are placed alike.

    tried, history: the replica whose pod was tried, and the annotation of that pod. asks: the pod
    set as Kueue has it, from that pod as admission placed it. given_up: the classes that policies
    gave up for it. set_hash: of the policies that placed it, as the stamp has it. priority: the
    fields priority and priorityClassName of the pod.
    """

    name: str
    role: str
    indexes: tuple[int, ...]
    tried: int
    history: str
    asks: JsonObject
    given_up: frozenset[str]
    set_hash: str
    priority: JsonObject

    @property
    def text(self) -> str:
        """The replicas: worker 0-3."""
        return f"{self.role} {format_intervals(self.indexes)}"

    @property
    def noted(self) -> JsonObject:
        """The pod set as Kueue has it, with what this controller notes about it."""
        note = (
            self.role,
            format_intervals(self.indexes),
            self.digest,
            ",".join(sorted(self.given_up)),
            self.set_hash,
        )
        asks = {**self.asks, "name": self.name, "count": len(self.indexes)}
        return noted(asks, dict(zip(POD_SET_NOTE, note, strict=True)))

    @property
    def digest(self) -> str:
        """A digest of what the pods ask of nodes, and of their resources."""
        about = self.asks["template"]["spec"], self.asks.get("topologyRequest")
        text = orjson.dumps(about, option=orjson.OPT_SORT_KEYS)
        return blake2b(text, digest_size=8).hexdigest()


class _Untried(NamedTuple):
    role: str
    indexes: tuple[int, ...]
    history: str


class Sampling:
    """Which replicas are to be tried, until all pod sets of a Run are known.

    For each of `next()`, the caller gives the pod as admission placed it to `add`.
    """

    def __init__(self, plan: Plan, histories: Histories) -> None:
        self._untried = [*_untried(plan, histories)]
        self._untried.reverse()
        self._sets: dict[tuple[str, str, frozenset[str]], PodSet] = {}

    def next(self) -> tuple[str, int, str] | None:
        """Return role, index and history of the next replica to try; None if none is left, or if
        Kueue does not take as many pod sets as there are already."""
        if not self._untried or self.problem():
            return None
        role, (index, *_), history = self._untried[-1]
        return role, index, history

    def add(self, placed: JsonObject) -> None:
        """Add the replica that `next` returned, and those that are placed like it.

        Raises InvalidRun if an annotation of a topology cannot be read.
        """
        role, indexes, history = self._untried.pop()
        alike, *others = _divide(indexes, read_turns(placed["metadata"]))
        self._untried += [_Untried(role, group, history) for group in reversed(others)]
        stamp = read_stamp(placed["metadata"])
        new_set = PodSet(
            role,
            role,
            alike,
            indexes[0],
            history,
            pod_set(role, len(alike), placed),
            frozenset(name for name, _ in read_given_up(placed["metadata"])),
            stamp.set_hash if stamp else "",
            {key: placed["spec"].get(key) for key in ("priority", "priorityClassName")},
        )
        key = (role, new_set.digest, new_set.given_up)
        if before := self._sets.get(key):
            new_set = before._replace(indexes=tuple(sorted((*before.indexes, *alike))))
        self._sets[key] = new_set

    def sets(self) -> list[PodSet]:
        """Return the pod sets: the first of a role has its name, any other its first index too."""
        roles: dict[str, list[PodSet]] = defaultdict(list)
        for pods_alike in self._sets.values():
            roles[pods_alike.role].append(pods_alike)
        return [
            pods_alike._replace(name=f"{role}-{pods_alike.indexes[0]}" if number else role)
            for role, some in roles.items()
            for number, pods_alike in enumerate(
                sorted(some, key=lambda pods_alike: pods_alike.indexes)
            )
        ]

    def problem(self) -> str:
        """Return why Kueue does not take these pod sets; empty if it does, or they are not all."""
        if len(self._sets) <= MOST_POD_SETS:
            if self._untried:
                return ""
            asked = [
                (
                    pods_alike.text,
                    len(pods_alike.indexes),
                    pods_alike.asks.get("topologyRequest") or {},
                )
                for pods_alike in self.sets()
            ]
            return "; ".join(find_problems(asked))
        so_far = ", ".join(pods_alike.text for pods_alike in self.sets())
        return (
            f"Kueue takes {MOST_POD_SETS} sets of pods at most, and the run has more: {so_far}. "
            "Replicas of a role are sets of their own if their resources differ (byIndex), or if "
            "policies place them differently (by index, leader, split or history)"
        )


def _untried(plan: Plan, histories: Histories) -> Iterator[_Untried]:
    """Yield the replicas that nothing but policies distinguishes, in their order.

    Replica 0 is tried in any case: by frameworks and sources it may lead.
    """
    for role, spec in plan.run.spec.roles.items():
        texts = histories.get(role, {})
        groups: dict[tuple[int | None, str], list[int]] = defaultdict(list)
        for index in range(spec.count):
            special = index if index == 0 or (role, index) in plan.special else None
            groups[special, texts.get(index, "")].append(index)
        for (_, history), indexes in groups.items():
            yield _Untried(role, tuple(indexes), history)


def _divide(indexes: Sequence[int], turns: Iterable[int]) -> list[tuple[int, ...]]:
    """Return the indexes in parts; each turn begins another."""
    ordered = sorted(set(turns))
    parts: dict[int, list[int]] = defaultdict(list)
    for index in indexes:
        parts[bisect_right(ordered, index)].append(index)
    return [tuple(part) for part in parts.values()]


def histories_at_start(run: Run, now: datetime) -> Histories:
    """Return the histories of replicas that start now, by role and index."""
    return {
        role: annotations_at_start(status.history, now)
        for role, status in run.status.replicas.items()
    }


def sample_unplaced(plan: Plan) -> Sampling:
    """Return the sampling of a new Run's pods as the Run alone wants them, without policies."""
    sampling = Sampling(plan, {})
    while replica := sampling.next():
        role, index, _ = replica
        sampling.add(plan.pod(role, index, 0))
    return sampling


def describe_changes(workload: StoredWorkload, sets: Sequence[PodSet]) -> str:
    """Return which replicas are placed otherwise than when the Workload was made; empty if none.

    Of a Workload of an earlier version only names and counts are known.
    """
    before = {
        stored_set.name: (stored_set.pods, stored_set.role, stored_set.indexes, stored_set.digest)
        for stored_set in workload.pod_sets
    }
    changed = []
    for pods_alike in sets:
        count, role, indexes, digest = before.get(pods_alike.name, (0, "", "", ""))
        now = (
            len(pods_alike.indexes),
            pods_alike.role,
            format_intervals(pods_alike.indexes),
            pods_alike.digest,
        )
        if now != (count, role or now[1], indexes or now[2], digest or now[3]):
            changed.append(pods_alike.text)
    if not changed and len(before) == len(sets):
        return ""
    return f"{', '.join(changed) or 'its pods'}: placed otherwise than when the run queued"
