"""What reconciling needs to know of the objects that a run owns, and no more: memory counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from webhook.times import elapsed, read

if TYPE_CHECKING:
    from collections.abc import Mapping

PodPhase: TypeAlias = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
NodeTrouble: TypeAlias = Literal["", "NodeNotReady", "NodeShutdown", "NodeGone"]
# Seconds by which the clocks of a kubelet and of the API server may differ.
_SKEW: Final = 60.0


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
    init_since: str = ""
    """When its first init container started, RFC 3339; empty before, and without one."""
    gates: int = 0
    """How many scheduling gates hold it back."""

    @property
    def on_node_since(self) -> str:
        """When the first of its containers started; empty before."""
        return self.init_since or self.running_since


class NodeHealth(NamedTuple):
    """A node that pods of the run are bound to. One that is gone has no uid."""

    name: str
    uid: str = ""
    created: str = ""
    """RFC 3339. A node may be registered again under the pods that run there."""
    ready: Literal["True", "False", "Unknown"] = "True"
    """The status of the node's Ready condition. Unknown: its kubelet is silent."""
    since: str = ""
    """Since when its Ready condition is as it is, or it is gone, RFC 3339; empty if that is not
    known."""
    shut_down: bool = False
    """Whether the cloud's node controller says that the machine is off."""
    interruptible: bool = True
    """Whether the node may be taken away at any time, as far as capacity classes tell."""
    capacity_class: str = ""
    """The class that says so; empty if none does."""

    @property
    def trouble(self) -> NodeTrouble:
        """What is wrong with the node; empty if it is ready.

        The taint alone proves nothing: it stays for a moment after the machine is back.
        """
        if not self.uid:
            return "NodeGone"
        if self.ready == "True":
            return ""
        # A kubelet that says False is alive, and so are its pods, whatever a taint says.
        off = self.shut_down and self.ready == "Unknown"
        return "NodeShutdown" if off else "NodeNotReady"

    def heard_again(self, since: str) -> str:
        """Return when the node was heard of again, if it was away after `since`; else empty.

        That is when it was registered, or its Ready condition changed to what the kubelet says.
        """
        if not since or not self.uid or self.ready == "Unknown":
            return ""
        # As texts first: of thousands of pods hardly one is older than its node.
        if self.since > since:
            return self.since
        if self.created > since and elapsed(since, read(self.created)) > _SKEW:
            return self.created
        return ""


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
    """A Secret with SSH keys, made before the ConfigMap. The controller may not read it."""
    address: str | None = None
    """Where a notebook, a tensorboard or a service will be reached."""


@dataclass(frozen=True)
class Observed:
    """The objects of one run, as the caches hold them.

    pods: by name; every pod that the run owns, of whatever attempt.
    service, config_map: whether the run's own are there.
    service_uid: the Service's uid; empty if it is not there.
    service_closed: whether the Service is there and selects no pod yet.
    absent: names of pods that were looked up live for this very call, and are not there.
    nodes: by name, those that the pods are bound to, and those of the incidents that may be a
        failure's; None where nodes are not watched, or not listed yet.
    nodes_read: names of nodes that were read live for this very call.
    refusals: what the API server refused since the last creation that it took.
    """

    pods: Mapping[str, OwnedPod] = field(default_factory=dict)
    service: bool = False
    config_map: bool = False
    deployment: OwnedDeployment | None = None
    absent: frozenset[str] = frozenset()
    refusals: tuple[Refusal, ...] = ()
    service_closed: bool = False
    service_uid: str = ""
    nodes: Mapping[str, NodeHealth] | None = None
    nodes_read: frozenset[str] = frozenset()

    def health(self, pod: OwnedPod) -> NodeHealth | None:
        """The health of the pod's node; None if the pod has no node, or nothing is known of it.

        That a node is shut down is believed only if it was read live.
        """
        found = (self.nodes or {}).get(pod.node) if pod.node else None
        if found and found.shut_down and found.name not in self.nodes_read:
            found = found._replace(shut_down=False)
        return found
