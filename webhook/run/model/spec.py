"""The Run as the API server stores it, and its spec."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, Field, create_model

from webhook import names
from webhook.dns_names import LABEL, MAX_LABEL, SERVICE_NAME
from webhook.foreign_text import whole_number
from webhook.frameworks.native_default import native_default
from webhook.frameworks.table import FRAMEWORKS, ROLES
from webhook.placement.schema.syntax import AnnotationKey, LabelKey, LabelValue, ServiceName, span
from webhook.run.model.replica import Environment, PodTemplate, ReplicaSpec
from webhook.run.model.run_checks import (
    DEFAULT_ROLE,
    SERVING,
    environment_problems,
    name_problems,
    spec_problems,
)
from webhook.run.model.status import RoleStatus, RunStatus
from webhook.strict import Problem, Strict, distinct, own_error
from webhook.times import is_time

RunKind: TypeAlias = Literal["experiment", "job", "build", "notebook", "tensorboard", "service"]
if TYPE_CHECKING:
    Framework: TypeAlias = str
else:
    Framework = Literal[tuple(FRAMEWORKS)]
MAX_INT32 = 2**31 - 1
MAX_PORTS = 16
MAX_EXIT_CODES = 16


ExitCode: TypeAlias = Annotated[int, Field(ge=1, le=255)]


def _distinct_codes(codes: list[int]) -> list[int]:
    return distinct(codes, codes, (), "the exit code")


class Port(Strict):
    """A port of a notebook, a tensorboard or a service."""

    name: str | None = Field(
        default=None,
        pattern=f"^{SERVICE_NAME}$",
        max_length=15,
        description="The port's name; required if there are several ports.",
    )
    port: int = Field(ge=1, le=65535, description="The port of the Service.")
    target_port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="The container's port. Default: the value of port.",
    )


def _distinct_ports(ports: list[Port]) -> list[Port]:
    distinct(ports, [port.port for port in ports], ("port",), "the port")
    if len(ports) > 1 and not all(port.name for port in ports):
        raise own_error("where there are several ports, each needs a name")
    return distinct(ports, [port.name for port in ports], ("name",), "the name")


class GangSpec(Strict):
    """How the replicas of a run start all at once."""

    start_within: span("1m", "24h") = Field(  # type: ignore[valid-type]
        description="The time from the creation of the pods until all have a node. Then they are "
        "deleted if some cannot have one, and are created again after a pause. Range: 1m to 24h.",
    )


_Spec = TypeVar("_Spec", bound=Strict)


def _with_settings(spec: type[_Spec]) -> type[_Spec]:
    """Add a field for each framework's settings to the model, named after the framework."""
    fields: dict[str, Any] = {
        name: (
            framework.settings | None,
            Field(default=None, description=f"Settings of {framework.title}."),
        )
        for name, framework in FRAMEWORKS.items()
    }
    return create_model(
        spec.__name__, __base__=spec, __doc__=spec.__doc__, __module__=spec.__module__, **fields
    )


@_with_settings
class RunSpec(Strict):
    """The spec of a run: its kind, framework and replicas."""

    kind: RunKind = Field(
        default="job",
        description="The kind of the run. experiment, job and build finish. notebook, tensorboard "
        "and service run until they are stopped, as a Deployment of one pod with a Service.",
    )
    backend: Literal["native", "kubeflow", "jobset", "dask"] = native_default(
        "native",
        "Who creates the pods. native: Fairlead's controller. For another engine Fairlead creates "
        "one object, whose status it reports. kubeflow: the training operator, and the MPI "
        "operator. jobset: JobSet's controller. dask: Dask's operator.",
    )
    framework: Framework | None = Field(
        default=None,
        description="The framework that connects the replicas. It determines the valid roles and "
        "the variables of each replica. Default: none, and the replicas are independent.",
    )
    environment: Environment | None = Field(
        default=None,
        description="The placement of all replicas; a role or replica may override it.",
    )
    template: PodTemplate = Field(
        description="The pod template of every replica: metadata with labels and annotations, spec "
        "with containers, volumes and service account.",
    )
    main_container: str | None = Field(
        default=None,
        pattern=f"^{LABEL}$",
        max_length=MAX_LABEL,
        description="The container that gets the resources and the rendezvous variables, and whose "
        "exit code counts. Default: the first container.",
    )
    replicas: dict[str, ReplicaSpec] | None = Field(
        default=None,
        min_length=1,
        description="The replicas by role. Default: one pod of role master. The set of roles is "
        "immutable.",
    )
    restart_scope: Literal["Replica", "Role", "Run"] = native_default(
        "Replica",
        "Which replicas restart together with a failed one: only itself, all of its role, or all "
        "of the run.",
    )
    backoff_limit: int = native_default(
        3,
        "The number of program failures after which replicas restart; the next one fails the run. "
        "May be changed while the run lives. On another engine: only if it was set at creation and "
        "restartScope is not Run.",
        ge=0,
        le=MAX_INT32,
    )
    disruption_limit: int | None = Field(
        default=None,
        ge=0,
        le=MAX_INT32,
        description="The number of disruptions (lost nodes, evictions, preemptions) after which "
        "replicas restart; the next one fails the run. May be changed while the run lives. "
        "Default: no limit.",
    )
    disruption_exit_codes: Annotated[list[ExitCode], AfterValidator(_distinct_codes)] | None = (
        Field(
            default=None,
            min_length=1,
            max_length=MAX_EXIT_CODES,
            description="Exit codes of the main container that count as a disruption and not as a "
            "failure: the program was asked to stop and has saved its state. Default: none.",
        )
    )
    active_deadline_seconds: int | None = Field(
        default=None,
        ge=1,
        le=MAX_INT32,
        description="The number of seconds after its start at which an active run fails. "
        "Suspension resets the start. May be changed while the run lives.",
    )
    ttl_seconds_after_finished: int | None = Field(
        default=None,
        ge=0,
        le=MAX_INT32,
        description="The number of seconds after its end at which the Run and all objects that it "
        "owns are deleted. May be changed at any time. Default: never.",
    )
    clean_pod_policy: Literal["Running", "All", "None"] = native_default(
        "Running",
        "The pods to delete at the run's end: those still running, all, or none. May be changed at "
        "any time, if Fairlead creates the pods.",
    )
    suspend: bool = Field(
        default=False,
        description="Suspends the run: its pods are deleted, and its counts are kept. May be "
        "changed while the run lives.",
    )
    gang: GangSpec | None = Field(
        default=None,
        description="Starts the replicas all at once: each gets a node, or none keeps one. Only "
        "for `backend: native`, a run that finishes, without a queue. Default: each by itself.",
    )
    ports: Annotated[list[Port], AfterValidator(_distinct_ports)] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_PORTS,
        description="For notebook, tensorboard and service: the ports of the Service. Default: "
        "the ports of the main container.",
    )
    max_age_seconds: int | None = Field(
        default=None,
        ge=1,
        le=MAX_INT32,
        description="For notebook, tensorboard and service: the number of seconds after its start "
        "at which the run ends.",
    )

    @property
    def delegated(self) -> bool:
        """True if another engine creates the pods."""
        return self.backend != "native"

    @property
    def serving(self) -> bool:
        """True if the run continues until it is stopped."""
        return self.kind in SERVING

    @property
    def settings(self) -> Strict | None:
        """The framework's settings, with its defaults if the run has none; None: no framework."""
        if self.framework is None:
            return None
        written: Strict | None = getattr(self, self.framework)
        return written or FRAMEWORKS[self.framework].settings()

    @property
    def elastic_from(self) -> int | None:
        """The number of replicas with which an elastic run goes on; None: it is not elastic, or
        another engine decides."""
        elastic = None if self.delegated else getattr(self.settings, "elastic", None)
        return elastic.min_replicas if elastic else None

    @property
    def roles(self) -> Mapping[str, ReplicaSpec]:
        """The replicas by role, in the framework's order; one master by default."""
        if self.replicas is None:
            return {DEFAULT_ROLE: ReplicaSpec()}
        order = ROLES[self.framework].names
        return {role: self.replicas[role] for role in order if role in self.replicas}

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Check roles against the framework, and fields against the kind."""
        yield from spec_problems(given)
        yield from environment_problems(given)


class RunMetadata(Strict):
    """The metadata of a run: its name, and fields that the API server sets."""

    name: ServiceName = Field(
        description="The name of the run and of its Service. The names of its pods start with it, "
        "such as mnist-worker-0, and have at most 63 characters."
    )
    generate_name: Any = Field(default=None, description="The prefix of a generated name.")
    namespace: str = Field(default="default", description="The namespace of the run's pods.")
    labels: dict[LabelKey, LabelValue] | None = Field(
        default=None, description="Labels of the Run itself; its pods get the template's labels."
    )
    annotations: dict[AnnotationKey, str] | None = Field(
        default=None, description="Annotations of the Run itself."
    )
    uid: str = Field(default="", description="Set by the API server.")
    resource_version: str = Field(default="", description="Set by the API server.")
    generation: int = Field(default=1, description="Set by the API server.")
    creation_timestamp: str | None = Field(default=None, description="Set by the API server.")
    deletion_timestamp: str | None = Field(default=None, description="Set by the API server.")
    deletion_grace_period_seconds: Any = Field(default=None, description="Set by the API server.")
    finalizers: Any = Field(default=None, description="Set by controllers.")
    owner_references: Any = Field(default=None, description="Set by controllers.")
    managed_fields: Any = Field(default=None, description="Set by the API server.")
    self_link: Any = Field(default=None, description="Set by API servers before Kubernetes 1.20.")


class Run(Strict):
    """A run of machine-learning work: one pod, or the replicas of distributed training."""

    api_version: Literal["fairlead.dev/v1alpha1"] = Field(description="The version of the schema.")
    kind: Literal["Run"] = Field(description="The kind of this object.")
    metadata: RunMetadata = Field(description="The run's name, labels and annotations.")
    spec: RunSpec = Field(description="The desired state of the run.")
    status: RunStatus = Field(default=RunStatus(), description="Set by Fairlead.")

    @property
    def name(self) -> str:
        """The run's name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The run's namespace."""
        return self.metadata.namespace

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Check that the names of the pods are valid hostnames."""
        yield from name_problems(given)

    @property
    def first_attempt(self) -> int:
        """FAIRLEAD_ATTEMPT of the first pods, by the annotation of a retry; else 0."""
        return whole_number((self.metadata.annotations or {}).get(names.FIRST_ATTEMPT)) or 0

    @property
    def start_now(self) -> str:
        """When somebody asked for a start without a pause, RFC 3339; empty if nobody did."""
        text = (self.metadata.annotations or {}).get(names.START_NOW) or ""
        return text if is_time(text) else ""

    def role_status(self, role: str) -> RoleStatus:
        """Return the status of a role; one that has none yet begins with the annotation's number.

        From then on the status decides, whoever changes the annotation.
        """
        return self.status.replicas.get(role) or RoleStatus(first_attempt=self.first_attempt)

    def pod_name(self, role: str, index: int) -> str:
        """Return the name of one replica's pod."""
        return f"{self.name}-{role}-{index}"
