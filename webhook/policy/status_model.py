"""The statuses of policies, classes, exceptions and sources, and an object with its status."""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from pydantic import Field

from webhook import names
from webhook.crd.conditions import Condition, Time
from webhook.lenient import Reported


class Served(Reported):
    """The policies that one replica of the webhook uses."""

    replica: str = Field(description="The name of the replica's pod.")
    hash: str = Field(
        description="The hash of the replica's policies and classes, as in the stamp on pods."
    )


class ObjectStatus(Reported):
    """The status fields that all kinds of a policy set share."""

    observed_generation: int = Field(
        default=0, description="The generation of the object that the status describes."
    )
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="The conditions of the object. Accepted: the webhook uses the object; while "
        "it is False, the last good set stays in force. Satisfiable: some node "
        "meets the object's requirements. Served: every replica of the webhook serves a set with "
        "this version of the object.",
    )
    served_hashes: tuple[Served, ...] = Field(
        default=(),
        description="The hash that each replica of the webhook uses. If two differ, replicas "
        "use different policies.",
    )
    summary: str = Field(
        default="",
        description="The lists in the object's spec, as kubectl get shows them: a policy's "
        "rollout namespaces, a class's nodes, an exception's policies, a source's marks.",
    )


class PolicyStatus(ObjectStatus):
    """The status of a policy in the cluster. Only the controller writes it."""

    pods_decided: int = Field(
        default=0,
        description="The number of pods that the policy matched since the time in `since`.",
    )
    pods_rejected: int = Field(
        default=0,
        description="The number of pods that the policy rejected since the time in `since`.",
    )
    since: Time | None = Field(default=None, description="When counting started.")
    last_match: Time | None = Field(default=None, description="When the policy last matched a pod.")


class ClassStatus(ObjectStatus):
    """The status of a capacity class in the cluster. Only the controller writes it."""


class ExceptionStatus(ObjectStatus):
    """The status of an exception in the cluster. Only the controller writes it."""


class SourceStatus(ObjectStatus):
    """The status of a source in the cluster. Only the controller writes it."""


# By resource, the name of its objects in messages, and the model of their status.
CALLED: Final[Mapping[str, str]] = {
    names.PLACEMENT_POLICIES: "policy",
    names.CAPACITY_CLASSES: "class",
    names.PLACEMENT_EXCEPTIONS: "exception",
    names.RUN_SOURCES: "source",
}
MODELS: Final[Mapping[str, type[ObjectStatus]]] = {
    names.PLACEMENT_POLICIES: PolicyStatus,
    names.CAPACITY_CLASSES: ClassStatus,
    names.PLACEMENT_EXCEPTIONS: ExceptionStatus,
    names.RUN_SOURCES: SourceStatus,
}

Version: TypeAlias = tuple[str, int]


class ObservedObject(NamedTuple):
    """What the API server has of one object.

    text: what a policy set is made of, as JSON: no status
    """

    resource: str
    name: str
    uid: str
    generation: int
    text: bytes
    status: ObjectStatus

    @property
    def place(self) -> str:
        """Its resource and name: `placementpolicies/spot`."""
        return f"{self.resource}/{self.name}"

    @property
    def version(self) -> Version:
        """What distinguishes two objects that were written under one name: uid and generation."""
        return self.uid, self.generation
