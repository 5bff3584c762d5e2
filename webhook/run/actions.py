"""The actions that reconciling returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from webhook.placement.shapes import JsonObject
    from webhook.run.model import RunStatus


@dataclass(frozen=True, slots=True)
class CreateKeys:
    """Create a Secret of a new name with a new pair of SSH keys, and write its name to the status.

    The name is published once the Secret exists, so no other client can have made it.
    """


@dataclass(frozen=True, slots=True)
class RestoreKeys:
    """Create the Secret of SSH keys again in case it was deleted.

    Nothing waits for it, and a refusal is ignored: the Secret usually exists, with a full quota the
    API server rejects the creation even then, and the controller may not read Secrets.
    """


@dataclass(frozen=True, slots=True)
class CreateConfigMap:
    """Create the ConfigMap of the run's shared files."""


@dataclass(frozen=True, slots=True)
class CreateService:
    """Create the run's Service: headless, or in front of a Deployment.

    closed: the Service selects no pod until OpenService.
    """

    closed: bool = False


@dataclass(frozen=True, slots=True)
class OpenService:
    """Make the run's Service select its pods, which publishes their addresses."""


@dataclass(frozen=True, slots=True)
class CreateDeployment:
    """Create the Deployment of a notebook, a tensorboard or a service."""


@dataclass(frozen=True, slots=True)
class ScaleDeployment:
    """Set the Deployment's replicas: 0 while suspended, else 1."""

    replicas: int


@dataclass(frozen=True, slots=True)
class DeleteDeployment:
    """Delete the Deployment and its pods."""


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Create one replica's pod. A 409 for a pod of the run itself is success.

    attempt: of its role; restarts: its restarts, counted or not. history: the text of its
    annotation; empty for none. avoid: nodes that are ill.
    """

    role: str
    index: int
    attempt: int
    history: str = ""
    avoid: tuple[str, ...] = ()
    restarts: int = 0


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete one pod if it has this uid. A 404 or 409 is success."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ForceDeletePod:
    """Delete one pod if it has this uid, without waiting for its kubelet.

    Only for a pod whose machine is off, according to a live read of its node in this reconcile.
    Otherwise the old program and its replacement could run concurrently.
    """

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class CreateEngineObject:
    """Create the object from which another engine makes the pods."""


@dataclass(frozen=True, slots=True)
class SuspendEngineObject:
    """Suspend or resume the engine's object, if it has this uid.

    queued: it is in a queue of Kueue, which acts by its Workload.
    """

    uid: str
    suspend: bool
    queued: bool = False


@dataclass(frozen=True, slots=True)
class DeleteEngineObject:
    """Delete the engine's object and so its pods, if it has this uid."""

    uid: str


@dataclass(frozen=True, slots=True)
class DeleteRun:
    """Delete the Run after its TTL; the garbage collector deletes what it owns."""


@dataclass(frozen=True, slots=True)
class CreateWorkload:
    """Put the run into this queue of Kueue."""

    queue: str


@dataclass(frozen=True, slots=True)
class CheckWorkload:
    """Try the run's pods again, with what Kueue gave to this Workload if it has quota.

    If they cannot be created, or are placed otherwise than when the run queued, it leaves.
    """

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class DeleteWorkload:
    """Take the run out of its queue, and give back its quota: delete this Workload."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class WriteWorkload:
    """Set these conditions of the Workload, if it has this uid and version."""

    name: str
    uid: str
    version: str
    conditions: tuple[JsonObject, ...]


Action: TypeAlias = (
    CreateKeys
    | RestoreKeys
    | CreateConfigMap
    | CreateService
    | OpenService
    | CreateDeployment
    | ScaleDeployment
    | DeleteDeployment
    | CreatePod
    | DeletePod
    | ForceDeletePod
    | CreateEngineObject
    | SuspendEngineObject
    | DeleteEngineObject
    | CreateWorkload
    | CheckWorkload
    | DeleteWorkload
    | WriteWorkload
    | DeleteRun
)

# Those that make objects of the run's plan, or try to, and may be refused.
CREATIONS: Final = (
    CreateKeys,
    CreateConfigMap,
    CreateService,
    CreateDeployment,
    CreatePod,
    CreateEngineObject,
    CreateWorkload,
    CheckWorkload,
)


@dataclass(frozen=True, slots=True)
class Announcement:
    """An Event about the Run, written after the status. There are no Events per pod."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True)
class Outcome:
    """The result of a reconcile.

    look_up: missing pods to read live. The caller adds their names to `Observed.absent`, or the
    pods to its pods, and calls the function again before anything else.
    look_up_nodes: nodes to read live. The caller adds their names to `Observed.nodes_read`, and
    the nodes to its nodes, and calls the function again.
    look_up_events: the Events of the engine's object are to be read. The caller adds them to
    `EngineObserved.events`, and calls the function again.
    planned: names of pods that `status` plans and that do not exist. Once it is stored, the caller
    has their names in `Observed.uncreated` until it sends their creation.
    counted: `status` counts all pods of `Observed.gone`, or need not. Once it is stored, the caller
    forgets them.
    actions: in this order; creations of pods may run concurrently, after everything else.
    status: written last if it differs from the run's.
    after: seconds until the next reconcile is needed without an event; None if never.
    """

    status: RunStatus
    actions: tuple[Action, ...] = ()
    look_up: frozenset[str] = frozenset()
    look_up_nodes: frozenset[str] = frozenset()
    look_up_events: bool = False
    announcements: tuple[Announcement, ...] = ()
    after: float | None = None
    planned: frozenset[str] = frozenset()
    counted: bool = True
