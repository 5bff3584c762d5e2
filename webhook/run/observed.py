"""The observed objects of a run, reduced to what reconciling needs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from webhook import names
from webhook.run.queue_state import NO_QUEUE, Queueing
from webhook.run.start_order import NO_START, Start
from webhook.times import elapsed, parse_time

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from webhook.placement.room import Room

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
    """The runtime's reason: Completed, Error, OOMKilled, DeadlineExceeded, ..."""
    message: str = ""
    """The termination message, else the end of the log."""
    finished_at: str = ""
    """RFC 3339."""


@dataclass(frozen=True, slots=True)
class OwnedPod:
    """A pod of a run, owned through its controller reference."""

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
    """When its deletion was requested (deletionTimestamp minus the grace period), RFC 3339, or
    empty."""
    given_grace: bool = False
    """Its deletion left it time to end: the API server gives none to a pod that has ended."""
    half_deleted: bool = False
    """The API server marked it as deleted, with no grace period and no finalizer left, and did not
    remove it; another deletion does (rest.BeforeDelete: "happens in two phases")."""
    reason: str = ""
    """status.reason: NodeLost, Evicted, Shutdown, Preempting ..."""
    message: str = ""
    disruption: tuple[str, str, str] | None = None
    """The DisruptionTarget condition if it is True: reason, message, lastTransitionTime."""
    unscheduled: str = ""
    """The scheduler's message while it finds no node; else empty."""
    waiting: tuple[str, str] | None = None
    """Reason and message of the first container that waits (ImagePullBackOff ...)."""
    exit: Exit | None = None
    """How the pod ended: the main container's exit if it failed, else the first failed exit, else
    the main container's. None while it runs, or if the exit is unknown."""
    finished_at: str = ""
    """When its main container ended, RFC 3339; empty before, and if it is not known."""
    running_since: str = ""
    """When its main container started, RFC 3339; empty before."""
    init_since: str = ""
    """When its first init container started, RFC 3339; empty before, and without one."""
    created: str = ""
    """RFC 3339."""
    bound_since: str = ""
    """When the scheduler gave it a node, RFC 3339; empty before, and if something else did."""
    accelerators: tuple[tuple[str, int], ...] = ()
    """The extended resources that it requests, by name."""
    unscheduled_since: str = ""
    """Since when, RFC 3339."""
    fallback: tuple[tuple[str, int | None], ...] = ()
    """The classes that it requires until policies give them up, each with the seconds for which it
    may wait for a node; None if waiting is no reason. As the webhook wrote them."""
    selector: tuple[tuple[str, str], ...] = ()
    """The nodeSelector of a pod that may wait for a class of `fallback`, by key; else empty."""
    given_up: tuple[tuple[str, str], ...] = ()
    """The classes that it does not require, as policies gave them up, each with until when."""
    avoid: frozenset[str] = frozenset()
    """The nodes on which it may not run, as they were ill at its creation."""
    priority: int = 0
    """As its PriorityClass says."""
    gates: tuple[str, ...] = ()
    """The names of the scheduling gates that hold it back."""
    queue: str = ""
    """The queue of Kueue in which such a pod waits by itself."""
    has_claim: bool = False
    """Whether it mounts a PersistentVolumeClaim."""
    restarts: int = 0
    """Of a pod that another engine created: how often a kubelet restarted its main container."""
    previous: Exit | None = None
    """Of such a pod: how the main container ended before its latest restart."""
    ended_first: bool = False
    """Of such a pod: it had ended before its deletion was requested. The times cannot tell, because
    they are in seconds: an engine deletes a pod in the second in which it fails."""
    withdrawn: bool = False
    """Of such a pod: an object between the engine's and the pod is deleted, and so the pod is."""

    @property
    def ended(self) -> bool:
        """Whether its phase is final."""
        return self.phase in names.TERMINAL_PHASES

    @property
    def on_node_since(self) -> str:
        """When the first of its containers started; empty before."""
        return self.init_since or self.running_since


class NodeHealth(NamedTuple):
    """A node to which pods of the run are bound. A deleted node has no uid."""

    name: str
    uid: str = ""
    created: str = ""
    """RFC 3339. A node may be registered again while its pods run."""
    ready: Literal["True", "False", "Unknown"] = "True"
    """The status of the node's Ready condition. Unknown: its kubelet is silent."""
    since: str = ""
    """The last transition of its Ready condition, or its deletion, RFC 3339; empty if unknown."""
    shut_down: bool = False
    """True if the cloud's node controller reports that the machine is off."""
    interruptible: bool = True
    """True if the node may be interrupted at any time, according to the capacity classes."""
    capacity_class: str = ""
    """The class that sets this; empty if none does."""
    lost_after: float | None = None
    """Seconds of silence after which its pods count as lost, by any of its classes; None: they do
    not; infinite while too many nodes of such a class are silent."""
    leaving: bool = False
    """True if it is cordoned, or a cloud or an autoscaler announces that it takes it away."""
    ill: str = ""
    """The condition by which it is ill, such as GpuHealthy=False."""
    ill_since: str = ""
    """Since when the condition is so, RFC 3339."""
    ill_after: float = 0.0
    """Seconds after which it counts; infinite while too many nodes of the class are ill."""
    many_of: str = ""
    """The class of which too many nodes are silent or ill."""
    sick: bool = False
    """True if it is ill for long enough: its pods start again elsewhere."""
    off: bool = False
    """True if it was read live just now, and is shut down, or gone or silent for long enough: no
    kubelet confirms the end of its pods any more."""

    @property
    def trouble(self) -> NodeTrouble:
        """What is wrong with the node; empty if it is ready.

        The shutdown taint alone is not evidence: it stays for a while after the machine is
        back.
        """
        if not self.uid:
            return "NodeGone"
        if self.ready == "True":
            return ""
        # A kubelet that reports False is alive, and so are its pods, whatever the taint.
        off = self.shut_down and self.ready == "Unknown"
        return "NodeShutdown" if off else "NodeNotReady"

    def seconds_left(self, now: datetime, gone_after: float) -> float | None:
        """Return the seconds until it is given up: it may come back. None if it is not given up."""
        after: float | None = {"NodeGone": gone_after, "NodeShutdown": 0.0}.get(self.trouble)
        if self.trouble == "NodeNotReady" and self.ready == "Unknown" and self.since:
            after = self.lost_after
        if not after or not self.since:
            return after
        return max(0.0, after - elapsed(self.since, now))

    def seconds_until_sick(self, now: datetime) -> float | None:
        """Return the seconds until it counts as ill; None if it does not. A silent node is not
        ill: its kubelet ends no pod."""
        if not self.ill or self.trouble == "NodeGone" or self.ready == "Unknown":
            return None
        return max(0.0, self.ill_after - elapsed(self.ill_since, now))

    def seems_off(self, now: datetime, gone_after: float) -> bool:
        """Return whether it is shut down, or gone or silent for long enough, as far as known."""
        return self.seconds_left(now, gone_after) == 0.0

    def ready_again_after(self, since: str) -> str:
        """Return when the node was back, if it was unavailable after `since`; else empty.

        The node was back when it was registered, or when its kubelet reported a Ready condition.
        """
        if not since or not self.uid or self.ready == "Unknown":
            return ""
        # Compared as strings first: few of thousands of pods are older than their node.
        if self.since > since:
            return self.since
        if self.created > since and elapsed(since, parse_time(self.created)) > _SKEW:
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
    """Why it makes no progress, from its conditions ReplicaFailure and Progressing."""


class EngineObject(NamedTuple):
    """The object from which another engine makes the pods.

    conditions: by type; only those that are True, with reason and message.
    suspended: the spec says so. reported: there is a status.
    templates: its counts and pod templates as JSON text, if its spec was changed after its
    creation; else empty. queue: of Kueue, by its label; empty without one.
    """

    name: str
    uid: str
    run_uid: str
    created: str
    deleted: bool = False
    suspended: bool = False
    reported: bool = False
    conditions: Mapping[str, tuple[str, str]] = MappingProxyType({})
    templates: bytes = b""
    queue: str = ""


class EngineEvent(NamedTuple):
    """A warning of an engine, such as that a pod could not be created. seen: RFC 3339; about: an
    object's uid."""

    reason: str
    """As that of a Refusal: QuotaExceeded, PodSecurity, Rejected, Invalid or FailedCreate; else
    BackendWarning."""
    message: str
    seen: str
    about: str = ""


class Refusal(NamedTuple):
    """The latest rejection of a creation by the API server."""

    name: str
    """The object's name."""
    reason: str
    """QuotaExceeded, PodSecurity, Rejected (by an admission webhook), NameTaken, Invalid,
    Forbidden, FailedCreate, or QueueUnknown or PlacementChanged, if nothing was sent."""
    message: str
    """The API server's message; for a name that is taken, the owner."""
    certain: bool = True
    """Whether the object was not stored; after an internal error it may have been."""


class Needs(NamedTuple):
    """What a run needs besides its pods, according to its plan."""

    config_map: bool = False
    keys: bool = False
    """A Secret with SSH keys, created before the ConfigMap. The controller may not read it."""
    address: str | None = None
    """The URL of a notebook, a tensorboard or a service."""


@dataclass(frozen=True)
class Observed:
    """The objects of one run, from the caches.

    pods: by name; every pod that the run owns, of any attempt.
    service, config_map: True if the run's own exist.
    service_uid: the Service's uid; empty if it does not exist.
    service_closed: True if the Service exists and selects no pod yet.
    absent: names of pods that were read live for this call and do not exist.
    gone: pods that are deleted, as they were last seen, the latest last; not all of them.
    unwatched: names of pods of which the watch does not tell any more: gone, or without a label.
    uncreated: names of planned pods that do not exist: this process planned them and did not send
    their creation, or it was rejected.
    nodes: by name: the nodes of the pods, and those of incidents that may be a failure's; None if
    nodes are not watched or not listed yet.
    nodes_read: names of nodes that were read live for this call.
    refusals: rejections since the last successful creation.
    ill_nodes: all of the cluster.
    reported: what an autoscaler says about the pod that waits longest; empty if nothing is known.
    room: how many replicas the nodes that there are can run at one time; None if it is not known.
    uncounted: by pod and class, why its waiting for a node of the class is no fallback.
    queue: what is known of the run's queue.
    start: what is known of its start, if its replicas start all at once.
    waited: by role, index and class, since when replicas wait for it over all tries of that start.
    """

    pods: Mapping[str, OwnedPod] = field(default_factory=dict)
    service: bool = False
    config_map: bool = False
    deployment: OwnedDeployment | None = None
    absent: frozenset[str] = frozenset()
    gone: tuple[OwnedPod, ...] = ()
    unwatched: frozenset[str] = frozenset()
    uncreated: frozenset[str] = frozenset()
    refusals: tuple[Refusal, ...] = ()
    service_closed: bool = False
    service_uid: str = ""
    nodes: Mapping[str, NodeHealth] | None = None
    nodes_read: frozenset[str] = frozenset()
    ill_nodes: tuple[NodeHealth, ...] = ()
    reported: str = ""
    room: Room | None = None
    uncounted: Mapping[tuple[str, str], str] = field(default_factory=dict)
    queue: Queueing = NO_QUEUE
    start: Start = NO_START
    waited: Mapping[tuple[str, int, str], str] = field(default_factory=dict)

    @property
    def active(self) -> bool:
        """Whether there is a pod that has not ended."""
        return any(not pod.ended for pod in self.pods.values())

    @property
    def unknown(self) -> frozenset[str]:
        """The pods of which the watch does not tell any more, and that were not read live."""
        return self.unwatched - self.absent - self.pods.keys()

    def waits_longest(self) -> OwnedPod | None:
        """Return the pod for which the scheduler has found no node for the longest time."""
        waiting = (pod for pod in self.pods.values() if pod.unscheduled and not pod.deleted_at)
        return min(waiting, key=lambda pod: (pod.unscheduled_since, pod.name), default=None)

    def node_health(self, pod: OwnedPod) -> NodeHealth | None:
        """Return the health of the pod's node; None if it has no node or the node is unknown.

        The state "shut down" counts only if the node was read live.
        """
        health = (self.nodes or {}).get(pod.node) if pod.node else None
        if health and health.shut_down and health.name not in self.nodes_read:
            health = health._replace(shut_down=False)
        if health and health.off and health.trouble == "NodeNotReady" and pod.has_claim:
            # The volume may be of one node at a time, and a program may still write to it.
            health = health._replace(off=False, lost_after=None)
        return health

    def judged(self, now: datetime, gone_after: float) -> Observed:
        """Return it with the nodes that are off: those that were read live for this call, and are
        shut down, or gone for `gone_after` seconds; and with those that are ill for long enough."""
        nodes = self.nodes or {}
        changed_nodes = {
            name: node._replace(off=True)
            for name in self.nodes_read
            if (node := nodes.get(name)) and node.seems_off(now, gone_after)
        }
        sick = tuple(node for node in self.ill_nodes if node.seconds_until_sick(now) == 0.0)
        changed_nodes |= {
            node.name: nodes[node.name]._replace(sick=True) for node in sick if node.name in nodes
        }
        if not changed_nodes and not self.ill_nodes:
            return self
        return replace(self, nodes={**nodes, **changed_nodes}, ill_nodes=sick)


@dataclass(frozen=True)
class EngineObserved:
    """What an engine made of a Run.

    object: the engine's object, if the Run owns it.
    pods: those that it owns, directly or through others; gone: pods that are deleted, as they were
    last seen. The role is that of the Run.
    between: if the engine creates objects between its own and the pods, the first of them is there.
    fresh: object and pods were read live for this call.
    events: why pods of the object were rejected, the latest last; None if they were not read.
    edits: what others changed in the object; empty for nothing.
    left: kind and name of something that a deleted object of the Run made and that is not deleted
    yet; empty for nothing, or if it was not read.
    """

    object: EngineObject | None = None
    pods: tuple[OwnedPod, ...] = ()
    gone: tuple[OwnedPod, ...] = ()
    nodes: Mapping[str, NodeHealth] | None = None
    refusals: tuple[Refusal, ...] = ()
    between: bool = True
    fresh: bool = False
    events: tuple[EngineEvent, ...] | None = None
    edits: str = ""
    left: str = ""
