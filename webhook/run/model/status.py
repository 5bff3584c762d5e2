"""The status of a Run."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from pydantic import Field

from webhook import names
from webhook.crd.conditions import Condition, Time
from webhook.lenient import Reported, Words, readable
from webhook.run.model.intervals import check_intervals, parse_intervals
from webhook.run.model.replica import MAX_REPLICAS
from webhook.strict import quoted

Phase: TypeAlias = Literal[
    "Pending", "Starting", "Running", "Restarting", "Suspended", "Succeeded", "Failed"
]
PHASES: Final[tuple[Phase, ...]] = get_args(Phase)
# The condition that all replicas are ready.
READY: Final = "Ready"
# The condition about what this version does not understand, and the reason of it under which the
# run goes on.
UNDERSTOOD: Final = "Understood"
UNKNOWN_WORDS: Final = "UnknownWords"
GangState: TypeAlias = Literal["Waiting", "Starting", "Whole"]
GANG_STATES: Final[tuple[GangState, ...]] = get_args(GangState)
CAUSES: Final = ("Unknown", "Failure", "Disruption")
# The first whole number that JSON readers need not keep exactly.
_INEXACT: Final = 2**53
# One more digit than an annotation of a pod may have.
_MOST_ATTEMPTS: Final = 10**9


def _within(least: int, most: int) -> Any:
    def check(number: int) -> None:
        if not least <= number <= most:
            raise ValueError(f"want a number from {least} to {most}, not {quoted(number)}")

    return readable(check)


# Sets of replica indexes as text, as in completedIndexes of Jobs: "0-3,5".
Indexes: TypeAlias = Annotated[str, readable(check_intervals)]
# Below zero where a charge is taken back.
Count: TypeAlias = Annotated[int, _within(-_INEXACT, _INEXACT)]
Attempt: TypeAlias = Annotated[int, _within(0, _MOST_ATTEMPTS - 1)]
Desired: TypeAlias = Annotated[int, _within(0, MAX_REPLICAS)]


def _check_disjoint(entries: tuple[Any, ...]) -> None:
    _check_intervals(entry.indexes for entry in entries)


def _check_intervals(texts: Iterable[str]) -> None:
    """Raise ValueError if two texts have an index in common, before it reads many of them."""
    earlier_indexes: set[int] = set()
    for text in texts:
        indexes = parse_intervals(text)
        if earlier_indexes & indexes:
            raise ValueError(f"has index {min(earlier_indexes & indexes)} twice")
        earlier_indexes |= indexes


# Fields of a role's status that only the controller uses, by their outer names.
_CONTROLLER_FIELDS: Final = (
    "attempt",
    "countsFrom",
    "succeededIndexes",
    "activeIndexes",
    "creatingIndexes",
    "recreations",
    "firstAttempt",
    "nodes",
    "countedUIDs",
    "ending",
    "countedRestarts",
    "recovering",
    "history",
)


class Recovering(Reported):
    """Replicas that wait for their next start, or restarted recently."""

    indexes: Indexes = Field(description="The indexes of the replicas, as intervals.")
    failures: Count = Field(
        default=0,
        description="The number of failures since the replicas were last stable: of the program, "
        "and of kubelets that rejected the pod.",
    )
    disruptions: Count = Field(
        default=0, description="The number of disruptions since the replicas were last stable."
    )
    refusals: Count = Field(
        default=0, description="The number of consecutive times that kubelets rejected the pod."
    )
    wait_milliseconds: Count | None = Field(
        default=None, description="The time until the restart, from `since`."
    )
    since: Time = Field(description="The last time that the replicas went down.")


class HistoryEvent(Reported):
    """Nodes of a class were lost under replicas, or did not come for them."""

    capacity_class: str = Field(
        validation_alias="class",
        serialization_alias="class",
        description="The capacity class that the replicas required.",
    )
    time: Time = Field(description="When it was seen.")
    waited_seconds: Count | None = Field(
        default=None, description="How long they had waited for a node; without it, one was lost."
    )


class ReplicaHistory(Reported):
    """What happened to replicas, by which policies may give up a class."""

    indexes: Indexes = Field(description="The indexes of the replicas, as intervals.")
    as_of: Time = Field(description="Their latest start. Later events count at the next one.")
    events: tuple[HistoryEvent, ...] = Field(description="The events of a week, the latest last.")


class ReplicaNodes(Reported):
    """The nodes of replicas of one class."""

    capacity_class: str = Field(
        default="",
        validation_alias="class",
        serialization_alias="class",
        description="The capacity class of the nodes, if it is known.",
    )
    fallback: tuple[str, ...] = Field(
        default=(), description="The classes that the replicas require until policies give them up."
    )
    nodes: Mapping[str, Indexes] = Field(
        default_factory=dict, description="The indexes of the replicas by node, as intervals."
    )


def _check_nodes(entries: tuple[ReplicaNodes, ...]) -> None:
    _check_intervals(text for entry in entries for text in entry.nodes.values())


class Ending(Reported):
    """Replicas whose pods do not count any more, and whose programs may still run."""

    indexes: Indexes = Field(description="The indexes of the replicas, as intervals.")
    since: Time = Field(description="The time up to which `usage` has what the pods used.")
    repeated: bool = Field(description="True if that time is repeated.")


class RoleStatus(Reported):
    """The replicas of one role."""

    desired: Desired = Field(default=0, description="The desired number of replicas.")
    active: Count = Field(
        default=0, description="The number of pods that exist and have not ended."
    )
    ready: Count = Field(default=0, description="The number of ready pods.")
    succeeded: Count = Field(default=0, description="The number of replicas that have succeeded.")
    failed: Count = Field(
        default=0,
        description="The number of program failures, without those that a disruption has caused.",
    )
    restarts: Count = Field(default=0, description="The number of restarts of replicas.")
    disruptions: Count = Field(
        default=0,
        description="The number of incidents caused by lost nodes, evictions or preemptions.",
    )
    attempt: Attempt = Field(
        default=0,
        description="The number of times that all replicas of the role restarted. Pods of an "
        "earlier attempt do not count.",
    )
    counts_from: Attempt = Field(
        default=0,
        description="The first attempt whose successes count. A suspension starts a new attempt "
        "and keeps this value, so that finished replicas stay finished.",
    )
    succeeded_indexes: Indexes = Field(
        default="", description="The indexes of replicas that have succeeded."
    )
    active_indexes: Indexes = Field(
        default="", description="The indexes of replicas that had a pod at the last reconcile."
    )
    creating_indexes: Indexes = Field(
        default="",
        description="The indexes of replicas whose pods are created next. It is written before "
        "they are, so a pod that the watch does not show is known to be possible. If the run is "
        "suspended or over: the indexes of pods that may still exist.",
    )
    recreations: Count = Field(
        default=0,
        description="The number of times that pods were created again without a restart being "
        "counted: nobody saw whether there was one before, or it had no node.",
    )
    first_attempt: Attempt = Field(
        default=0,
        description="The FAIRLEAD_ATTEMPT of the first pods: of a retry it is greater than that of "
        "all pods of the Runs before.",
    )
    nodes: Annotated[tuple[ReplicaNodes, ...], readable(_check_nodes)] = Field(
        default=(),
        description="The nodes of replicas that run, as far as they fit into 32 KiB: so a node "
        "that is lost while no controller runs is known.",
    )
    counted_uids: tuple[str, ...] = Field(
        default=(),
        alias="countedUIDs",
        description="The uids of ended pods that are counted and not deleted yet.",
    )
    ending: Annotated[tuple[Ending, ...], readable(_check_disjoint)] = Field(
        default=(),
        description="Replicas whose pods the controller ends, until their end is known: the rest "
        "of their time is added then.",
    )
    counted_restarts: Mapping[str, Count] = Field(
        default_factory=dict,
        description="The counted restarts of a pod's main container, by its uid. Only if another "
        "engine creates the pods.",
    )
    recovering: Annotated[tuple[Recovering, ...], readable(_check_disjoint)] = Field(
        default=(), description="Replicas that went down and are not stable yet."
    )
    history: Annotated[tuple[ReplicaHistory, ...], readable(_check_disjoint)] = Field(
        default=(),
        description="What happened to replicas whose policies have a fallback.",
    )


class LastFailure(Reported):
    """The last time a replica went down."""

    replica: str = Field(description="The pod's name.")
    node: str = Field(default="", description="The pod's node.")
    exit_code: Count | None = Field(default=None, description="The main container's exit code.")
    reason: str = Field(description="The reason, in one word.")
    message: str = Field(default="", description="The last lines of the log, or other details.")
    disruption: bool = Field(
        default=False, description="True for a disruption, false for a failure of the program."
    )
    time: Time = Field(description="The time when the replica went down.")


class Incident(Reported):
    """Replicas that went down together: the cause and the cost."""

    cause: Annotated[str, Words(CAUSES)] = Field(
        description="The cause that is charged: Failure or Disruption. Unknown: a disruption may "
        "still be detected."
    )
    reason: str = Field(description="The reason, in one word.")
    message: str = Field(default="", description="A description for people.")
    replica: str = Field(description="The first pod that went down, or the pod that was disrupted.")
    node: str = Field(default="", description="The pod's node.")
    capacity_class: str = Field(
        default="",
        validation_alias="class",
        serialization_alias="class",
        description="The capacity class of that node, if it is known.",
    )
    other_nodes: tuple[str, ...] = Field(
        default=(), description="Further nodes that were lost in it, at most ten."
    )
    began: Time = Field(description="The time when the first replica was observed to be down.")
    decided: Time | None = Field(
        default=None,
        description="The time when the cause was decided. It is final after the incident window.",
    )
    ended: Time | None = Field(
        default=None,
        description="For a disruption: the time since which no pod of the run is on a node that is "
        "not ready. Failures within the incident window after that belong to the disruption.",
    )
    failures: Mapping[str, Count] = Field(
        default_factory=dict,
        description="The number of failures by role. They are charged if the cause is Failure.",
    )
    permanent: bool = Field(
        default=False,
        description="True if the run fails once they are charged, because of the restartPolicy.",
    )
    collateral: Count = Field(
        default=0, description="The number of program failures charged to the disruption."
    )
    seconds_lost: Count | None = Field(
        default=None, description="The seconds from the start until all replicas ran again."
    )


class Usage(Reported):
    """Time of replicas whose attempts are over, or of one of their accelerators."""

    capacity_class: str = Field(
        default="",
        validation_alias="class",
        serialization_alias="class",
        description="The capacity class of their nodes; empty without one, or without a node.",
    )
    resource: str = Field(
        description="`replicas`, or an extended resource that their pods request."
    )
    seconds: Count = Field(default=0, description="The seconds on nodes.")
    waiting_seconds: Count = Field(
        default=0,
        description="The seconds without a node, and those on nodes that a start gave back.",
    )
    repeated_seconds: Count = Field(
        default=0,
        description="Those of `seconds` that a disruption or a failure ended: programs repeat all "
        "of it, or what they did since their last checkpoint.",
    )


class GangWait(Reported):
    """Replicas that have waited for a class in earlier tries of a start."""

    role: str = Field(description="The role of the replicas.")
    indexes: Indexes = Field(description="The indexes of the replicas, as intervals.")
    capacity_class: str = Field(
        validation_alias="class",
        serialization_alias="class",
        description="The capacity class that they required.",
    )
    since: Time = Field(description="When they began to wait for it.")


class GangStatus(Reported):
    """The start of a run whose replicas start all at once."""

    state: Annotated[str, Words(GANG_STATES)] = Field(
        description="Waiting: no pod is created. Starting: some have no node yet. Whole: all had "
        "one."
    )
    since: Time = Field(description="Since when.")
    tries: Count = Field(default=0, description="How often the pods were created.")
    not_before: Time | None = Field(
        default=None, description="The earliest time of the next try, after one without success."
    )
    lacked: str = Field(
        default="", description="What a replica lacked in the latest try without success."
    )
    held_seconds: Count = Field(
        default=0, description="The seconds for which replicas had a node before all had one."
    )
    priority: Count = Field(
        default=0, description="The priority of its pods, as of the latest try."
    )
    waited: tuple[GangWait, ...] = Field(
        default=(),
        description="Since when replicas wait for a capacity class, over all tries: so policies "
        "give it up as early.",
    )


class RunStatus(Reported):
    """The state of a run, written only by the controller."""

    phase: Annotated[str, Words(PHASES)] = Field(
        default="Pending", description=f"The phase of the run: {', '.join(PHASES)}."
    )
    message: str = Field(default="", description="The reason for the phase, for people.")
    observed_generation: Count = Field(default=0, description="The generation last reconciled.")
    start_time: Time | None = Field(
        default=None, description="The start time; reset after a suspension."
    )
    completion_time: Time | None = Field(default=None, description="The time when the run ended.")
    duration: str | None = Field(default=None, description="The time from start to end.")
    replicas_ready: str | None = Field(default=None, description="Ready and desired replicas.")
    restarts: Count = Field(default=0, description="The number of restarts in all roles.")
    disruptions: Count = Field(default=0, description="The number of disruptions in all roles.")
    address: str | None = Field(
        default=None, description="The URL of a notebook, a tensorboard or a service."
    )
    ssh_secret: str | None = Field(
        default=None,
        description="The Secret of the SSH keys, which the controller has made. Pods mount no "
        "other.",
    )
    replicas: Mapping[str, RoleStatus] = Field(
        default_factory=dict, description="The replicas by role."
    )
    last_failure: LastFailure | None = Field(
        default=None, description="The last time that a replica went down."
    )
    incidents: tuple[Incident, ...] = Field(
        default=(), description="The last incidents in which replicas went down, the latest last."
    )
    gang: GangStatus | None = Field(
        default=None, description="The start, of a run whose replicas start all at once."
    )
    usage: tuple[Usage, ...] = Field(
        default=(),
        description="What the run used, without pods that live, by class and resource.",
    )
    unseen: Count = Field(
        default=0,
        description="The number of pods whose time is unknown: they vanished, or restarted under a "
        "version that records no `usage`.",
    )
    repeated: str | None = Field(
        default=None, description="The time on nodes that disruptions and failures ended."
    )
    conditions: tuple[Condition, ...] = Field(default=(), description="The conditions of the run.")

    @property
    def ended(self) -> bool:
        """Whether the run is over; a phase that is not known is final with a completion time."""
        is_known_phase = self.phase in PHASES
        return self.phase in names.TERMINAL_PHASES or (
            not is_known_phase and self.completion_time is not None
        )

    @property
    def starting(self) -> bool:
        """Whether replicas that start all at once have pods, and not all had a node yet."""
        return self.gang is not None and self.gang.state == "Starting"

    @property
    def stopped(self) -> bool:
        """Whether no pod is planned: the run is suspended, or waits to start all at once.

        Its `creating_indexes` are then those of pods that are not known to be gone.
        """
        return self.phase == "Suspended" or (self.gang is not None and self.gang.state == "Waiting")

    @property
    def held(self) -> bool:
        """Whether phase and counts may be old, because the controller does not understand the run.

        What it wrote of an ended or a suspended run stays true.
        """
        return not (self.ended or self.phase == "Suspended") and any(
            (condition.type, condition.status) == (UNDERSTOOD, "False")
            and condition.reason != UNKNOWN_WORDS
            for condition in self.conditions
        )

    @property
    def begun(self) -> bool:
        """Whether pods were made for the run."""
        return self.start_time is not None or any(
            role_status.attempt
            or role_status.active
            or role_status.succeeded
            or role_status.failed
            or role_status.restarts
            for role_status in self.replicas.values()
        )

    def to_json(self) -> dict[str, Any]:
        """Return the status as JSON, without the controller's own fields that are empty.

        `kubectl describe` shows every field that is present.
        """
        document = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        for role in document["replicas"].values():
            for field in _CONTROLLER_FIELDS:
                if not role[field]:
                    del role[field]
        # Without `usage`, a status with restarts is of a version that records none.
        kept = ("usage",) if self.restarts else ()
        for field in ("incidents", "usage", "unseen"):
            if not document[field] and field not in kept:
                del document[field]
        if self.gang is not None:
            for field in ("lacked", "waited"):
                if not document["gang"][field]:
                    del document["gang"][field]
        return document
