"""What a Run asks for."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field

from webhook import names
from webhook.placement.schema.base import Problem, Strict, distinct, guess, shown
from webhook.placement.schema.placement import PlacementModel
from webhook.run.model import frameworks
from webhook.run.model.replica import JsonObject, ReplicaSpec
from webhook.run.roles import ROLES

RunKind: TypeAlias = Literal["experiment", "job", "build", "notebook", "tensorboard", "service"]
Framework: TypeAlias = Literal[
    "tensorflow", "pytorch", "jax", "mpi", "xgboost", "paddle", "mxnet", "dask", "spark", "ray"
]
# Kinds whose pod stays until somebody ends it.
SERVING = frozenset({"notebook", "tensorboard", "service"})
DEFAULT_ROLE = "master"


class Port(Strict):
    """A port of a notebook, a tensorboard or a service."""

    name: str | None = Field(
        default=None,
        pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$",
        max_length=15,
        description="The port's name; needed where there are several.",
    )
    port: int = Field(ge=1, le=65535, description="The port of the Service.")
    target_port: int | None = Field(
        default=None, ge=1, le=65535, description="The container's port. Default: the same."
    )


def _distinct_ports(ports: list[Port]) -> list[Port]:
    distinct(ports, [port.port for port in ports], ("port",), "the port")
    return distinct(ports, [port.name for port in ports], ("name",), "the name")


class RunSpec(Strict):
    """What a run is, and what its replicas are."""

    kind: RunKind = Field(
        default="job",
        description="What the run is. experiment, job and build come to an end; notebook, "
        "tensorboard and service stay: a Deployment of one pod and a Service before it.",
    )
    framework: Framework | None = Field(
        default=None,
        description="The framework that connects the replicas: it decides which roles there are "
        "and which variables each replica is told. Left out, replicas know nothing of each other.",
    )
    environment: PlacementModel | None = Field(
        default=None, description="The run's own placement: every replica starts from it."
    )
    template: JsonObject = Field(
        description="An ordinary pod template, the bottom layer of every replica: metadata with "
        "labels and annotations, spec with containers, volumes, service account.",
    )
    main_container: str | None = Field(
        default=None,
        min_length=1,
        max_length=63,
        description="The container that gets resources and rendezvous variables, and whose exit "
        "code counts. Default: the first.",
    )
    replicas: dict[str, ReplicaSpec] | None = Field(
        default=None,
        min_length=1,
        description="The replicas by role. Left out, the run is one pod, of role master. The "
        "set of roles is fixed at creation.",
    )
    restart_scope: Literal["Replica", "Role", "Run"] = Field(
        default="Replica",
        description="What starts again when one replica has to: itself, all replicas of its "
        "role, or all of the run.",
    )
    backoff_limit: int = Field(
        default=3,
        ge=0,
        le=2**31 - 1,
        description="How many failures of the program are started again; the next one fails the "
        "run.",
    )
    disruption_limit: int | None = Field(
        default=None,
        ge=0,
        le=2**31 - 1,
        description="How many disruptions (nodes that went away, evictions, preemptions) are "
        "started again; the next one fails the run. Left out: any number.",
    )
    active_deadline_seconds: int | None = Field(
        default=None,
        ge=1,
        le=2**31 - 1,
        description="After so many seconds of activity the run fails. Suspension starts the "
        "count anew.",
    )
    ttl_seconds_after_finished: int | None = Field(
        default=None,
        ge=0,
        le=2**31 - 1,
        description="So many seconds after its end the Run is deleted, and all that it owns. "
        "Left out: never.",
    )
    clean_pod_policy: Literal["Running", "All", "None"] = Field(
        default="Running",
        description="Which pods are deleted at the run's end: those that still run, all, or none.",
    )
    suspend: bool = Field(
        default=False,
        description="Whether the run is to rest: its pods are deleted, its counts are kept.",
    )
    ports: Annotated[list[Port], AfterValidator(_distinct_ports)] | None = Field(
        default=None,
        description="For notebook, tensorboard and service: the ports of the Service. Default: "
        "those that the main container names.",
    )
    max_age_seconds: int | None = Field(
        default=None,
        ge=1,
        le=2**31 - 1,
        description="For notebook, tensorboard and service: so many seconds after its start the "
        "run is over.",
    )
    tensorflow: frameworks.TensorFlow | None = Field(default=None, description="For TensorFlow.")
    pytorch: frameworks.PyTorch | None = Field(default=None, description="For PyTorch.")
    jax: frameworks.Jax | None = Field(default=None, description="For JAX.")
    mpi: frameworks.Mpi | None = Field(default=None, description="For MPI.")
    xgboost: frameworks.XGBoost | None = Field(default=None, description="For XGBoost.")
    paddle: frameworks.Paddle | None = Field(default=None, description="For Paddle.")
    mxnet: frameworks.MXNet | None = Field(default=None, description="For MXNet.")
    dask: frameworks.Dask | None = Field(default=None, description="For Dask.")
    spark: frameworks.Spark | None = Field(default=None, description="For Spark.")
    ray: frameworks.Ray | None = Field(default=None, description="For Ray.")

    @property
    def serving(self) -> bool:
        """Whether the run stays until somebody ends it."""
        return self.kind in SERVING

    @property
    def roles(self) -> Mapping[str, ReplicaSpec]:
        """The replicas by role, in the framework's order; one master if none are named."""
        if self.replicas is None:
            return {DEFAULT_ROLE: ReplicaSpec()}
        order = ROLES[self.framework].known
        return {role: self.replicas[role] for role in order if role in self.replicas}

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Roles that the framework knows, indexes that exist, fields that mean something here."""
        framework, replicas = given.get("framework"), given.get("replicas")
        if framework is None or framework in names.FRAMEWORKS:
            yield from _wrong_roles(framework, replicas, given.get("kind"))
        if isinstance(replicas, dict):
            for role, replica in replicas.items():
                yield from _wrong_indexes(role, replica)
        for name in names.FRAMEWORKS:
            if given.get(name) is not None and name != framework:
                yield Problem((name,), f"goes with framework {name} only")
        if given.get("kind") not in SERVING:
            for name in ("ports", "maxAgeSeconds"):
                if given.get(name) is not None:
                    yield Problem(
                        (name,), "goes with the kinds notebook, tensorboard and service only"
                    )
        elif framework is not None:
            yield Problem(("framework",), "goes with the kinds experiment, job and build only")


def _wrong_roles(framework: str | None, replicas: object, kind: object) -> Iterator[Problem]:
    roles = ROLES[framework]
    of = f"framework {framework}" if framework else "a run without a framework"
    if replicas is None:
        replicas = {DEFAULT_ROLE: None}
        if framework is not None and DEFAULT_ROLE not in roles.known:
            known = ", ".join(roles.known)
            yield Problem(("replicas",), f"is required for {of}; its roles are {known}")
            return
    if not isinstance(replicas, dict):
        return
    if kind in SERVING:
        for role, replica in replicas.items():
            if role != DEFAULT_ROLE or _count(replica) != 1:
                yield Problem(
                    ("replicas", role), f"a {kind} is one pod, of role {DEFAULT_ROLE}; remove it"
                )
        return
    for role, replica in replicas.items():
        if role not in roles.known:
            hint = guess(str(role), roles.known) or f"; the roles are {', '.join(roles.known)}"
            yield Problem(("replicas", role), f"{of} has no role {shown(role)}{hint}")
        count = _count(replica)
        if role in roles.single and count > 1:
            yield Problem(("replicas", role, "count"), f"{of} has one {role} at most, not {count}")
    for some in roles.required:
        if not any(role in replicas for role in some):
            yield Problem(("replicas",), f"{of} needs a {' or a '.join(some)}")
    if framework == "tensorflow" and "master" in replicas and "chief" in replicas:
        yield Problem(("replicas", "chief"), "is the master by its newer name; keep one of the two")


def _count(replica: object) -> int:
    count = replica.get("count") if isinstance(replica, dict) else None
    return count if isinstance(count, int) else 1


def _wrong_indexes(role: str, replica: object) -> Iterator[Problem]:
    if not isinstance(replica, dict) or not isinstance(replica.get("byIndex"), list):
        return
    count = replica.get("count", 1)
    for position, entry in enumerate(replica["byIndex"]):
        index = entry.get("index") if isinstance(entry, dict) else None
        if isinstance(index, int) and isinstance(count, int) and index >= count:
            yield Problem(
                ("replicas", role, "byIndex", position, "index"),
                f"there is no replica {index}: count is {count}, and indexes begin at 0",
            )
