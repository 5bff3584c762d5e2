"""What reconciling needs to know of the objects that a run owns, and no more: memory counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

PodPhase: TypeAlias = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]


class Exit(NamedTuple):
    """How a container ended."""

    container: str
    code: int
    signal: int = 0
    reason: str = ""
    """The runtime's word: Completed, Error, OOMKilled, DeadlineExceeded, ContainerCannotRun ..."""
    message: str = ""
    """The termination message; the end of the log where the program wrote none."""
    finished_at: str = ""
    """RFC 3339."""


@dataclass(frozen=True, slots=True)
class OwnedPod:
    """A pod of a run: owned by it, by its controller reference."""

    name: str
    uid: str
    run_uid: str
    role: str
    index: int
    attempt: int
    phase: PodPhase
    ready: bool = False
    node: str = ""
    deleted_at: str = ""
    """When its deletion was asked for (deletionTimestamp less the grace period), RFC 3339; else
    empty."""
    reason: str = ""
    """status.reason: NodeLost, Evicted, Shutdown, Preempting ..."""
    message: str = ""
    disruption: tuple[str, str, str] | None = None
    """The DisruptionTarget condition if it is True: reason, message, lastTransitionTime."""
    unscheduled: str = ""
    """The scheduler's message while it finds no node; else empty."""
    waiting: tuple[str, str] | None = None
    """Why the first container that waits does so: reason and message (ImagePullBackOff ...)."""
    exit: Exit | None = None
    """How the pod ended: the main container's exit if that failed, else the first that failed,
    else the main container's. None while it runs, or where nothing is known."""
    running_since: str = ""
    """When its main container started, RFC 3339; empty before."""
    gates: int = 0
    """How many scheduling gates hold it back."""


class OwnedDeployment(NamedTuple):
    """The Deployment of a notebook, a tensorboard or a service."""

    uid: str
    replicas: int
    generation: int
    observed_generation: int
    available: int
    ready: int
    message: str = ""
    """Why it makes no progress, if it says so: its conditions ReplicaFailure and Progressing."""


class Refusal(NamedTuple):
    """The last answer to a creation that the API server refused."""

    name: str
    """The object's name."""
    reason: str
    """QuotaExceeded, PodSecurity, Rejected (by an admission webhook), NameTaken, Invalid,
    Forbidden or Failed."""
    message: str
    """The API server's words; of a name that is taken, by whom."""


class Needs(NamedTuple):
    """What a run needs beside its pods, as its plan says."""

    config_map: bool = False
    keys: bool = False
    """A Secret with SSH keys; made before the ConfigMap, which is the mark that it is there."""
    address: str | None = None
    """Where a notebook, a tensorboard or a service will be reached."""


@dataclass(frozen=True)
class Observed:
    """The objects of one run, as the caches hold them.

    pods: by name; every pod that the run owns, of whatever attempt.
    service, config_map: whether the run's own are there.
    service_closed: whether the Service is there and selects no pod yet.
    absent: names of pods that were looked up live for this very call, and are not there.
    refusals: what the API server refused since the last creation that it took.
    """

    pods: Mapping[str, OwnedPod] = field(default_factory=dict)
    service: bool = False
    config_map: bool = False
    deployment: OwnedDeployment | None = None
    absent: frozenset[str] = frozenset()
    refusals: tuple[Refusal, ...] = ()
    service_closed: bool = False
