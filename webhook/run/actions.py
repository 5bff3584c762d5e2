"""What reconciling decides: values, for the controller to carry out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from webhook.run.model import RunStatus


@dataclass(frozen=True, slots=True)
class CreateKeys:
    """Make a pair of SSH keys and keep it in the run's Secret. One that is there is left alone."""


@dataclass(frozen=True, slots=True)
class RestoreKeys:
    """Make the Secret of SSH keys again if somebody has deleted it.

    Nothing waits for it, and a refusal is ignored: under a full quota the API server refuses the
    Secret although it is there, and the controller may not read Secrets.
    """


@dataclass(frozen=True, slots=True)
class CreateConfigMap:
    """Create the ConfigMap of the run's shared files."""


@dataclass(frozen=True, slots=True)
class CreateService:
    """Create the run's Service: headless, or before a notebook's Deployment.

    closed: selecting no pod, until OpenService.
    """

    closed: bool = False


@dataclass(frozen=True, slots=True)
class OpenService:
    """Have the run's Service select its pods: from now on they have addresses."""


@dataclass(frozen=True, slots=True)
class CreateDeployment:
    """Create the Deployment of a notebook, a tensorboard or a service."""


@dataclass(frozen=True, slots=True)
class ScaleDeployment:
    """Set the Deployment's replicas: 0 while suspended, or 1."""

    replicas: int


@dataclass(frozen=True, slots=True)
class DeleteDeployment:
    """Delete the Deployment and its pods."""


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Create one replica's pod. An answer of 409 for a pod of our own is success."""

    role: str
    index: int
    attempt: int


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete one pod, if it is still the one with this uid. A 404 or 409 is success."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ForceDeletePod:
    """Delete one pod without its kubelet's word, if it is still the one with this uid.

    Only of a pod whose machine is off, by a live read of its node for this very decision: else the
    program may go on beside its replacement.
    """

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class DeleteRun:
    """Delete the Run, its time to live being over; the garbage collector takes what it owns."""


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
    | DeleteRun
)


@dataclass(frozen=True, slots=True)
class Announcement:
    """An Event to be written once the status has been: of the Run, never one per pod."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True)
class Outcome:
    """What is to be done now.

    look_up: pods that are missing and must be looked up live; with their names in
        `Observed.absent`, or in its pods, the function is to be called again before anything else.
    look_up_nodes: nodes that must be read live; with their names in `Observed.nodes_read`, and in
        its nodes, the function is to be called again, too.
    actions: in this order; creations of pods may go side by side, after all else.
    status: to be written at the end if it differs from the run's.
    after: seconds until time alone changes anything; None if it never does.
    """

    status: RunStatus
    actions: tuple[Action, ...] = ()
    look_up: frozenset[str] = frozenset()
    look_up_nodes: frozenset[str] = frozenset()
    announcements: tuple[Announcement, ...] = ()
    after: float | None = None
