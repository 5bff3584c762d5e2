"""What a Run asks for."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, Field, create_model

from webhook.run.model.checks import DEFAULT_ROLE, SERVING, environment_problems, spec_problems
from webhook.run.model.environment import Environment
from webhook.run.model.replica import PodTemplate, ReplicaSpec
from webhook.run.rendezvous.table import FRAMEWORKS, ROLES
from webhook.strict import Problem, Strict, distinct, own_error

RunKind: TypeAlias = Literal["experiment", "job", "build", "notebook", "tensorboard", "service"]
if TYPE_CHECKING:
    Framework: TypeAlias = str
else:
    Framework = Literal[tuple(FRAMEWORKS)]
_INT32 = 2**31 - 1
MAX_PORTS = 16
MAX_EXIT_CODES = 16
_CONTAINER_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_PORT_NAME = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"


ExitCode: TypeAlias = Annotated[int, Field(ge=1, le=255)]


def _distinct_codes(codes: list[int]) -> list[int]:
    return distinct(codes, codes, (), "the exit code")


class Port(Strict):
    """A port of a notebook, a tensorboard or a service."""

    name: str | None = Field(
        default=None,
        pattern=_PORT_NAME,
        max_length=15,
        description="The port's name; needed where there are several.",
    )
    port: int = Field(ge=1, le=65535, description="The port of the Service.")
    target_port: int | None = Field(
        default=None, ge=1, le=65535, description="The container's port. Default: the same."
    )


def _distinct_ports(ports: list[Port]) -> list[Port]:
    distinct(ports, [port.port for port in ports], ("port",), "the port")
    if len(ports) > 1 and not all(port.name for port in ports):
        raise own_error("where there are several ports, each needs a name")
    return distinct(ports, [port.name for port in ports], ("name",), "the name")


_Spec = TypeVar("_Spec", bound=Strict)


def _with_settings(spec: type[_Spec]) -> type[_Spec]:
    """The model with a field for each framework's settings, by the framework's name."""
    fields: dict[str, Any] = {
        name: (
            framework.settings | None,
            Field(default=None, description=f"For {framework.title}."),
        )
        for name, framework in FRAMEWORKS.items()
    }
    return create_model(
        spec.__name__, __base__=spec, __doc__=spec.__doc__, __module__=spec.__module__, **fields
    )


@_with_settings
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
    environment: Environment | None = Field(
        default=None, description="The run's own placement: every replica starts from it."
    )
    template: PodTemplate = Field(
        description="An ordinary pod template, the bottom layer of every replica: metadata with "
        "labels and annotations, spec with containers, volumes, service account.",
    )
    main_container: str | None = Field(
        default=None,
        pattern=_CONTAINER_NAME,
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
        le=_INT32,
        description="How many failures of the program are started again; the next one fails the "
        "run.",
    )
    disruption_limit: int | None = Field(
        default=None,
        ge=0,
        le=_INT32,
        description="How many disruptions (nodes that went away, evictions, preemptions) are "
        "started again; the next one fails the run. Left out: any number.",
    )
    disruption_exit_codes: Annotated[list[ExitCode], AfterValidator(_distinct_codes)] | None = (
        Field(
            default=None,
            min_length=1,
            max_length=MAX_EXIT_CODES,
            description="Exit codes of the main container by which a program says that it was told "
            "to go and has saved its state: a disruption, and no failure. Default: none.",
        )
    )
    active_deadline_seconds: int | None = Field(
        default=None,
        ge=1,
        le=_INT32,
        description="After so many seconds of activity the run fails. Suspension starts the "
        "count anew.",
    )
    ttl_seconds_after_finished: int | None = Field(
        default=None,
        ge=0,
        le=_INT32,
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
        min_length=1,
        max_length=MAX_PORTS,
        description="For notebook, tensorboard and service: the ports of the Service. Default: "
        "those that the main container names.",
    )
    max_age_seconds: int | None = Field(
        default=None,
        ge=1,
        le=_INT32,
        description="For notebook, tensorboard and service: so many seconds after its start the "
        "run is over.",
    )

    @property
    def serving(self) -> bool:
        """Whether the run stays until somebody ends it."""
        return self.kind in SERVING

    @property
    def settings(self) -> Strict | None:
        """The framework's own settings, if the run has any."""
        settings: Strict | None = getattr(self, self.framework) if self.framework else None
        return settings

    @property
    def roles(self) -> Mapping[str, ReplicaSpec]:
        """The replicas by role, in the framework's order; one master if none are named."""
        if self.replicas is None:
            return {DEFAULT_ROLE: ReplicaSpec()}
        order = ROLES[self.framework].known
        return {role: self.replicas[role] for role in order if role in self.replicas}

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Roles that the framework knows, and fields that mean something here."""
        yield from spec_problems(given)
        yield from environment_problems(given)
