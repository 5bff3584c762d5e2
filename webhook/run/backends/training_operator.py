"""Kubeflow: the kinds of the training operator 1.9, and MPIJob v2beta1 of the MPI operator.

Source: pkg/apis/kubeflow.org/v1 and pkg/webhooks of kubeflow/trainer, branch release-1.9;
pkg/apis/kubeflow/v2beta1 of kubeflow/mpi-operator 0.6. Each kind is a row of KINDS.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from webhook.run.backends.backend import (
    BY_GPUS,
    Backend,
    FieldMapping,
    ObjectKind,
    container_problems,
    field_problems,
    make_object,
    render_fields,
    render_template,
    role_problems,
)
from webhook.strict import Problem, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.run.backends.backend import Drafts, Manifest
    from webhook.run.model import Run
    from webhook.run.plan import Draft

_NOT_COUNTED: Final = (
    "the operator counts restarts of containers within running pods only, and no ended pods"
)
_LATE: Final = "the operator looks at the deadline only when something else happens to the job"
_POLICY: Final = (
    FieldMapping("restartScope", "", only=("Replica",)),
    FieldMapping("backoffLimit", "runPolicy.backoffLimit", unset="no limit", note=_NOT_COUNTED),
    FieldMapping("activeDeadlineSeconds", "runPolicy.activeDeadlineSeconds", note=_LATE),
    FieldMapping("ttlSecondsAfterFinished", "runPolicy.ttlSecondsAfterFinished"),
    FieldMapping("cleanPodPolicy", "runPolicy.cleanPodPolicy", unset="None"),
    FieldMapping("suspend", "runPolicy.suspend"),
)
# The MPI operator's launcher is a batch Job, which counts and has a deadline.
_MPI_POLICY: Final = tuple(
    replace(
        field_mapping,
        note="",
        unset="6" if field_mapping.run == "backoffLimit" else field_mapping.unset,
    )
    for field_mapping in _POLICY
)
_PORT: Final = "the port of the main container by which the operator finds it"


@dataclass(frozen=True, slots=True)
class JobKind(ObjectKind):
    """A kind with replicas by role.

    replicas: the field of the spec with the replicas. container: the name of the main container.
    first: the main container is the first one. port: the name of the container's port.
    """

    replicas: str = ""
    container: str = ""
    first: bool = False
    port: str = ""


def _processes(value: Any) -> str:
    return str(value)


def _to_processes(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _row(
    kind: str,
    framework: str,
    roles: Mapping[str, str],
    container: str,
    replicas: str,
    *fields: FieldMapping,
) -> JobKind:
    restart = FieldMapping(
        "replicas.*.restartPolicy",
        f"{replicas}.*.restartPolicy",
        only=("Never", "OnFailure", "ExitCode"),
        unset="" if kind in ("PyTorchJob", "PaddleJob") else "Never",
    )
    return JobKind(
        api_version="kubeflow.org/v1",
        kind=kind,
        framework=framework,
        roles=roles,
        fields=(*_POLICY, restart, *fields),
        replicas=replicas,
        container=container,
        port=f"{kind.lower()}-port",
    )


KINDS: Final[Mapping[str, JobKind]] = {
    job_kind.framework or "": job_kind
    for job_kind in (
        _row(
            "TFJob",
            "tensorflow",
            {
                "master": "Chief, or Master with masterTaskType: master",
                "chief": "Chief, or Master with masterTaskType: master",
                "worker": "Worker",
                "ps": "PS",
                "evaluator": "Evaluator",
            },
            "tensorflow",
            "tfReplicaSpecs",
            FieldMapping("tensorflow.masterTaskType", "", place="the key Chief or Master"),
            FieldMapping("tensorflow.port", "", place=_PORT),
        ),
        _row(
            "PyTorchJob",
            "pytorch",
            {"master": "Master", "worker": "Worker"},
            "pytorch",
            "pytorchReplicaSpecs",
            FieldMapping(
                "pytorch.nprocPerNode",
                "nprocPerNode",
                to_engine=_processes,
                to_run=_to_processes,
                unset="auto",
                native=BY_GPUS,
            ),
            FieldMapping("pytorch.elastic.minReplicas", "elasticPolicy.minReplicas"),
            FieldMapping("pytorch.elastic.maxRestarts", "elasticPolicy.maxRestarts", unset="0"),
            FieldMapping("pytorch.port", "", place=_PORT),
        ),
        replace(
            _row(
                "PaddleJob",
                "paddle",
                {"server": "Master", "worker": "Worker"},
                "paddle",
                "paddleReplicaSpecs",
                FieldMapping("paddle.port", "", place=_PORT),
            ),
            port="master",
        ),
        _row(
            "XGBoostJob",
            "xgboost",
            {"master": "Master", "worker": "Worker"},
            "xgboost",
            "xgbReplicaSpecs",
            FieldMapping("xgboost.port", "", place=_PORT),
        ),
        _row(
            "JAXJob",
            "jax",
            {"worker": "Worker"},
            "jax",
            "jaxReplicaSpecs",
            FieldMapping("jax.port", "", place=_PORT),
        ),
        JobKind(
            api_version="kubeflow.org/v2beta1",
            kind="MPIJob",
            framework="mpi",
            roles={"launcher": "Launcher", "worker": "Worker"},
            fields=(
                *_MPI_POLICY,
                FieldMapping(
                    "replicas.*.restartPolicy",
                    "mpiReplicaSpecs.*.restartPolicy",
                    only=("Never", "OnFailure"),
                    unset="the launcher's: OnFailure, the workers': Never",
                    absent={"launcher": "OnFailure", "worker": "Never"},
                ),
                FieldMapping("mpi.implementation", "mpiImplementation"),
                FieldMapping("mpi.slotsPerWorker", "slotsPerWorker", unset="1", native=BY_GPUS),
                FieldMapping("mpi.sshAuthMountPath", "sshAuthMountPath"),
                FieldMapping("mpi.launcherAsWorker", "runLauncherAsWorker"),
            ),
            replicas="mpiReplicaSpecs",
            first=True,
        ),
    )
}
# The training operator's own MPIJob, whose launcher enters the workers by kubectl exec. It has the
# name of the MPI operator's definition, so a cluster has one of the two.
MPIJOB_V1: Final = JobKind(
    api_version="kubeflow.org/v1",
    kind="MPIJob",
    framework="mpi",
    roles={"launcher": "Launcher", "worker": "Worker"},
    fields=(
        *_POLICY,
        FieldMapping(
            "replicas.*.restartPolicy",
            "mpiReplicaSpecs.*.restartPolicy",
            only=("Never", "OnFailure", "ExitCode"),
            unset="Never",
        ),
        FieldMapping("mpi.slotsPerWorker", "slotsPerWorker", unset="1", native=BY_GPUS),
    ),
    replicas="mpiReplicaSpecs",
    first=True,
)
MPIJOB_VERSIONS: Final = ("v2beta1", "v1")
# Kinds that no backend renders by default: the older MPIJob, and MXJob, which was removed.
READ_ONLY: Final = (
    MPIJOB_V1,
    _row(
        "MXJob",
        "mxnet",
        {"scheduler": "Scheduler", "server": "Server", "worker": "Worker"},
        "mxnet",
        "mxReplicaSpecs",
        FieldMapping("mxnet.port", "", place=_PORT),
    ),
)
_COUNTED: Final = (("PyTorchJob", "master"), ("XGBoostJob", "master"), ("MPIJob", "worker"))
_INSTEAD: Final = {
    "mxnet": "MXJob was removed from the training operator in 1.9; use backend native",
    None: "a Run without a framework is a JobSet; use backend native, or write the JobSet with "
    "`fairlead run render --backend jobset`",
}


@dataclass(frozen=True)
class Kubeflow(Backend):
    """The training operator and the MPI operator; with mpijob v1 the training operator alone."""

    mpijob: str = MPIJOB_VERSIONS[0]
    name = "kubeflow"

    def kind(self, run: Run) -> JobKind | None:
        """Return the row of the run's framework."""
        if run.spec.framework == "mpi" and self.mpijob == "v1":
            return MPIJOB_V1
        return KINDS.get(run.spec.framework or "")

    def problems(self, run: Run) -> Sequence[Problem]:
        """Return what the operator's kind cannot do."""
        kind = self.kind(run)
        if kind is None:
            if run.spec.serving:
                what = f"a {run.spec.kind} runs until it is stopped; use backend native"
                return [Problem(("spec", "kind"), what)]
            frameworks = ", ".join(KINDS)
            cure = _INSTEAD.get(
                run.spec.framework, f"its frameworks are {frameworks}; use backend native"
            )
            framework = quoted(run.spec.framework) if run.spec.framework else "no framework"
            return [Problem(("spec", "framework"), f"{framework} has no kind of Kubeflow: {cure}")]
        return [*role_problems(run, kind), *field_problems(run, kind), *_elastic(run)]

    def render(self, drafts: Drafts) -> Sequence[Manifest]:
        """Return the one object."""
        kind = self.kind(drafts.run)
        return [] if kind is None else [render_job(drafts, kind)]

    def draft_problems(self, drafts: Drafts) -> Iterator[Problem]:
        """Yield problems with the merged templates."""
        kind = self.kind(drafts.run)
        yield from () if kind is None else container_problems(drafts, kind.container)


def render_job(drafts: Drafts, kind: JobKind) -> Manifest:
    """Return the object of the kind."""
    run = drafts.run
    spec = render_fields(run, kind)
    if kind.kind == "TFJob" and not {"master", "chief"} & {*drafts.roles}:
        # A run without a chief ends with all its workers; a TFJob with worker 0.
        spec["successPolicy"] = "AllWorkers"
    if "elasticPolicy" in spec:
        # Without these the operator allows as many nodes as the minimum, and torchrun uses its
        # static rendezvous. A master is one of the nodes (pkg/controller.v1/pytorch/elastic.go).
        nodes = sum(role.count for role in run.spec.roles.values())
        spec["elasticPolicy"] |= {"maxReplicas": nodes, "rdzvBackend": "c10d"}
    spec[kind.replicas] = {
        role_key(run, kind, role): _replica(run, kind, role, draft)
        for role, draft in drafts.roles.items()
    }
    return make_object(run, kind, spec)


def role_key(run: Run, kind: JobKind, role: str) -> str:
    """Return the key of a role's replicas in the object.

    TF_CONFIG has the key in lower case as the task type, where a run has masterTaskType.
    """
    if kind.kind == "TFJob" and role in ("master", "chief"):
        master = getattr(run.spec.settings, "master_task_type", "chief") == "master"
        return "Master" if master else "Chief"
    return kind.roles[role]


def _replica(run: Run, kind: JobKind, role: str, draft: Draft) -> JsonObject:
    replica = run.spec.roles[role]
    template = render_template(draft, container=kind.container, first=kind.first)
    port = getattr(run.spec.settings, "port", None)
    if kind.port and port is not None:
        main = template["spec"]["containers"][draft.at]
        main["ports"] = _with_port(main.get("ports") or [], kind.port, port)
    written = replica.model_fields_set
    # The webhook of these kinds wants the count; without one, an MPIJob has no workers.
    wanted = (kind.kind, role) in _COUNTED
    return {
        **({"replicas": replica.count} if "count" in written or wanted else {}),
        **({"restartPolicy": replica.restart_policy} if "restart_policy" in written else {}),
        "template": template,
    }


def _with_port(ports: Sequence[JsonObject], name: str, number: int) -> list[JsonObject]:
    """Return the ports with the operator's own, by which it finds the number."""
    if any(port.get("name") == name for port in ports):
        return [
            {**port, "containerPort": number} if port.get("name") == name else port
            for port in ports
        ]
    return [*ports, {"name": name, "containerPort": number}]


def _elastic(run: Run) -> Iterator[Problem]:
    elastic = getattr(run.spec.settings, "elastic", None)
    if elastic is None:
        return
    at = ("spec", "pytorch", "elastic")
    if "worker" not in run.spec.roles:
        what = "an elastic PyTorchJob needs a worker; make the master a worker, or remove it"
        yield Problem(at, what)
