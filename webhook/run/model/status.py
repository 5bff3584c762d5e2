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
    failures: int = Field(
        default=0,
        description="How many failures there were without a stable time in between, of the "
        "program or by a kubelet that refused the pod.",
    )
    disruptions: int = Field(default=0, description="The same of disruptions.")
    refusals: int = Field(
        default=0, description="How many times in a row the kubelet has refused the pod."
    )
    wait_milliseconds: int | None = Field(
        default=None, description="How long they wait before they start again."
    )
    since: Time = Field(description="When they last went down.")


class RoleStatus(Reported):
    """The replicas of one role."""

    desired: int = Field(default=0, description="How many there are to be.")
    active: int = Field(default=0, description="Pods that are there and have not ended.")
    ready: int = Field(default=0, description="Pods that are ready.")
    succeeded: int = Field(default=0, description="Replicas that have finished their work.")
    failed: int = Field(
        default=0,
        description="Failures of the program so far: those of incidents that were no disruption.",
    )
    restarts: int = Field(default=0, description="How often replicas were started again.")
    disruptions: int = Field(
        default=0,
        description="Incidents that nodes which went away, evictions or preemptions have caused.",
    )
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


class Incident(Reported):
    """Replicas that went down together: why, and what it cost."""

    cause: Literal["Unknown", "Failure", "Disruption"] = Field(
        description="What is charged. Unknown: a disruption may still come to light."
    )
    reason: str = Field(description="What happened, in one word.")
    message: str = Field(default="", description="What happened, for a person.")
    replica: str = Field(description="The pod that went down first; of a disruption, its pod.")
    node: str = Field(default="", description="The node that it ran on.")
    capacity_class: str = Field(
        default="",
        validation_alias="class",
        serialization_alias="class",
        description="The capacity class of that node, as far as known.",
    )
    began: Time = Field(description="When the first replica was seen to go down.")
    decided: Time | None = Field(
        default=None,
        description="When the cause was decided. After the incident window it does not change.",
    )
    ended: Time | None = Field(
        default=None,
        description="Of a disruption: since when no pod of the run is on a node that is not "
        "ready. Failures within the incident window after that belong to it.",
    )
    failures: Mapping[str, int] = Field(
        default_factory=dict,
        description="Failures by role. They are charged if the cause is decided to be Failure.",
    )
    permanent: bool = Field(
        default=False,
        description="Whether the run is over if they are charged, by the role's restartPolicy.",
    )
    collateral: int = Field(
        default=0, description="Failures of programs that are charged to the disruption."
    )
    seconds_lost: int | None = Field(
        default=None, description="From its beginning until all replicas ran again."
    )


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
    incidents: tuple[Incident, ...] = Field(
        default=(), description="The last times that replicas went down, the latest at the end."
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
        if not document["incidents"]:
            del document["incidents"]
        return document
