"""What the controller reports of a policy or a capacity class that is in the cluster."""

from pydantic import Field

from webhook.crd.reported import Condition, Reported, Time


class Served(Reported):
    """Which policies one replica of the webhook decides by."""

    replica: str = Field(description="The replica: the name of its pod.")
    hash: str = Field(
        description="The hash of its set of policies and classes, as the stamp on pods has it."
    )


class ObjectStatus(Reported):
    """What is known of a policy as well as of a capacity class."""

    observed_generation: int = Field(default=0, description="The generation that was looked at.")
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="What is true of the object. Accepted: the webhook decides by it; while it is "
        "False the last good set stays in force. Satisfiable: some node meets what it requires.",
    )
    served_hashes: tuple[Served, ...] = Field(
        default=(),
        description="The hash that each replica of the webhook serves. Where two differ, replicas "
        "decide by different policies.",
    )
    summary: str = Field(
        default="",
        description="What a list of objects shows of the lists in this one's spec: of a policy the "
        "namespaces of its rollout, of a class its nodes, of an exception its policies.",
    )


class PolicyStatus(ObjectStatus):
    """What is known of a policy in the cluster: written by the controller alone."""

    pods_decided: int = Field(
        default=0, description="The pods that the policy matched, since the time in `since`."
    )
    pods_rejected: int = Field(
        default=0, description="The pods that it rejected, since the time in `since`."
    )
    since: Time | None = Field(default=None, description="When counting began.")
    last_match: Time | None = Field(default=None, description="When it last matched a pod.")


class ClassStatus(ObjectStatus):
    """What is known of a capacity class in the cluster: written by the controller alone."""


class ExceptionStatus(ObjectStatus):
    """What is known of an exception in the cluster: written by the controller alone."""
