"""What the model's API server stores: pods, Runs, and what else a run owns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

Json = dict[str, Any]
EPOCH = datetime(2026, 11, 21, 20, 15, 0, 250000, tzinfo=UTC)
GRACE = 30
ENDED = frozenset({"Succeeded", "Failed"})


def moment(seconds: float) -> datetime:
    """The world's clock as a time of day."""
    return EPOCH + timedelta(seconds=seconds)


def stamp(seconds: float) -> str:
    """As Kubernetes writes times: whole seconds, cut off."""
    return moment(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> float:
    """A time that a status tells, on the world's clock."""
    return (datetime.fromisoformat(text) - EPOCH).total_seconds()


@dataclass(frozen=True)
class Pod:
    """A pod. Times are seconds on the world's clock.

    code, word: the main container's exit code, and the runtime's word for it.
    target: reason of the DisruptionTarget condition and its time.
    going: when deletion was asked for.
    number: by which programs tell it from earlier pods of its replica.
    history: what its annotation says; fallback: the classes that the webhook marked it with.
    bare: whether somebody took its labels, so that no watch tells of it.
    unscheduled: since when the scheduler finds no node for it; bound: when it found one.
    """

    name: str
    run: str
    run_uid: str
    role: str
    index: int
    attempt: int
    created: float
    number: int = 0
    uid: str = ""
    version: int = 0
    phase: str = "Pending"
    node: str = ""
    ready: bool = False
    started: float | None = None
    ended: float | None = None
    code: int | None = None
    word: str = ""
    reason: str = ""
    target: tuple[str, float] | None = None
    going: float | None = None
    history: str = ""
    fallback: tuple[tuple[str, int | None], ...] = ()
    unscheduled: float | None = None
    bound: float | None = None
    avoid: tuple[str, ...] = ()
    bare: bool = False

    @property
    def over(self) -> bool:
        """Whether the pod has ended."""
        return self.phase in ENDED

    @property
    def place(self) -> tuple[str, int]:
        return self.role, self.index


@dataclass(frozen=True)
class RunThing:
    """A Run as stored: its spec and status are JSON."""

    name: str
    spec: Json
    created: float
    uid: str = ""
    version: int = 0
    generation: int = 1
    status: Json = field(default_factory=dict)
    going: float | None = None
    start_now: float | None = None


@dataclass(frozen=True)
class WorkloadThing:
    """A Workload of Kueue. conditions: by type, whether it is true, and its reason; since: by type,
    when that was last another answer."""

    name: str
    run_uid: str
    queue: str
    uid: str = ""
    version: int = 0
    conditions: Mapping[str, tuple[bool, str]] = field(default_factory=dict)
    since: Mapping[str, float] = field(default_factory=dict)

    def reported(self, conditions: Mapping[str, tuple[bool, str]], now: float) -> Json:
        """The fields that these conditions change."""
        changed = {
            kind: now
            for kind, (true, _) in conditions.items()
            if kind not in self.conditions or self.conditions[kind][0] != true
        }
        return {
            "conditions": {**self.conditions, **conditions},
            "since": {**self.since, **changed},
        }

    def has(self, kind: str) -> bool:
        return self.conditions.get(kind, (False, ""))[0]


@dataclass(frozen=True)
class Node:
    """A Node object. `since`: when `ready` changed last, if it did; `ill`: since when it is."""

    name: str
    created: float
    uid: str = ""
    version: int = 0
    ready: Literal["True", "False", "Unknown"] = "True"
    since: float | None = None
    shut_down: bool = False
    interruptible: bool = True
    ill: float | None = None


@dataclass(frozen=True)
class Thing:
    """A Service, ConfigMap, Secret or Deployment, of which little matters but that it is there."""

    name: str
    run_uid: str
    uid: str = ""
    version: int = 0
    replicas: int = 1
    generation: int = 1
    observed: int = 0
    available: int = 0
    closed: bool = False
