"""What the controller reports of a Run, and all that it remembers of it."""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from pydantic import Field

from webhook.crd.reported import Condition, Reported, Time

Phase: TypeAlias = Literal[
    "Pending", "Starting", "Running", "Restarting", "Suspended", "Succeeded", "Failed"
]
# Sets of indexes as intervals: "0-3,5".
Indexes: TypeAlias = str

# What a role's status holds for the controller and not for people, by its outer names.
_REMEMBERED: Final = (
    "attempt",
    "countsFrom",
    "succeededIndexes",
    "activeIndexes",
    "countedUIDs",
    "recovering",
)


class Recovering(Reported):
    """Replicas that wait for their next start, or have started again not long ago."""

    indexes: Indexes = Field(description="Which replicas, as intervals.")
    failures: int = Field(description="How many times in a row they have gone down.")
    since: Time = Field(description="When they last went down.")


class RoleStatus(Reported):
    """The replicas of one role."""

    desired: int = Field(default=0, description="How many there are to be.")
    active: int = Field(default=0, description="Pods that are there and have not ended.")
    ready: int = Field(default=0, description="Pods that are ready.")
    succeeded: int = Field(default=0, description="Replicas that have finished their work.")
    failed: int = Field(default=0, description="Failures of the program so far.")
    restarts: int = Field(default=0, description="How often replicas were started again.")
    disruptions: int = Field(default=0, description="Nodes that went away, evictions, preemptions.")
    attempt: int = Field(
        default=0,
        description="How often all replicas of the role were begun anew; pods of an earlier "
        "attempt do not count.",
    )
    counts_from: int = Field(
        default=0,
        description="The attempt from which on successes count. A suspension begins a new "
        "attempt and leaves this as it is: what had finished stays finished.",
    )
    succeeded_indexes: Indexes = Field(default="", description="Which replicas have finished.")
    active_indexes: Indexes = Field(default="", description="Which replicas had a pod when seen.")
    counted_uids: tuple[str, ...] = Field(
        default=(),
        alias="countedUIDs",
        description="Pods that have ended, are counted, and not gone yet.",
    )
    recovering: tuple[Recovering, ...] = Field(
        default=(), description="Replicas that went down and are not stable yet."
    )


class LastFailure(Reported):
    """The last time a replica went down."""

    replica: str = Field(description="The pod's name.")
    node: str = Field(default="", description="The node that it ran on.")
    exit_code: int | None = Field(default=None, description="The main container's exit code.")
    reason: str = Field(description="What happened, in one word.")
    message: str = Field(default="", description="The last lines that it wrote, or what is known.")
    disruption: bool = Field(
        default=False, description="Whether it was the node's doing and not the program's."
    )
    time: Time = Field(description="When.")


class RunStatus(Reported):
    """The state of a run: written by the controller alone."""

    phase: Phase = Field(default="Pending", description="Where the run is in its life.")
    message: str = Field(default="", description="Why it is there, for a person.")
    observed_generation: int = Field(default=0, description="The generation that was looked at.")
    start_time: Time | None = Field(
        default=None, description="When it was begun; anew after a suspension."
    )
    completion_time: Time | None = Field(default=None, description="When it ended.")
    duration: str | None = Field(default=None, description="From its beginning to its end.")
    replicas_ready: str | None = Field(default=None, description="Ready and desired replicas.")
    restarts: int = Field(default=0, description="Restarts of all roles.")
    disruptions: int = Field(default=0, description="Disruptions of all roles.")
    address: str | None = Field(
        default=None, description="Where a notebook, a tensorboard or a service is reached."
    )
    replicas: Mapping[str, RoleStatus] = Field(
        default_factory=dict, description="The replicas by role."
    )
    last_failure: LastFailure | None = Field(
        default=None, description="The last time that a replica went down."
    )
    conditions: tuple[Condition, ...] = Field(
        default=(), description="What is true of the run, each with its reason."
    )

    def written(self) -> dict[str, Any]:
        """The status as the API server is to keep it: of what is remembered nothing that is empty.

        `kubectl describe` shows every field that is there.
        """
        document = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        for role in document["replicas"].values():
            for field in _REMEMBERED:
                if not role[field]:
                    del role[field]
        return document
