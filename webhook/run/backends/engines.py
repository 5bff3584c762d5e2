"""Engines to which a Run can be delegated: how their objects and pods are read, as one table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from webhook import names
from webhook.frameworks.table import ROLES
from webhook.run.backends import dask_operator, jobset
from webhook.run.backends.dask_operator import SECTIONS
from webhook.run.backends.table import BACKENDS
from webhook.run.backends.training_operator import KINDS, MPIJOB_V1, Kubeflow
from webhook.run.observation import engine_object, true_conditions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from webhook.placement.shapes import JsonObject
    from webhook.run.backends.backend import Backend
    from webhook.run.backends.training_operator import JobKind
    from webhook.run.facts import RoleFacts
    from webhook.run.model import Run
    from webhook.run.observed import EngineObject, EngineObserved, OwnedPod

FAILED: Final = "Failed"
_ACCOUNT: Final = (
    "spec.template.spec.serviceAccountName: the training operator gives the launcher's account the "
    "right to enter pods (pods/exec); remove it, or use backend native"
)


@dataclass(frozen=True)
class OwnerSource:
    """Objects that an engine creates between its own object and the pods, such as Jobs.

    label: all of them have it, and its value is the name of the engine's object.
    labelled: False if they do not have the Run's uid as a label.
    """

    api_version: str
    resource: str
    kind: str
    label: str
    labelled: bool = True

    @property
    def selector(self) -> str:
        """The label selector of the objects of Runs."""
        return f"{self.label},{names.RUN_UID}" if self.labelled else self.label


@dataclass(frozen=True)
class PodSource:
    """The pods of one operator, whatever their kind of object.

    label: all of them have it, and its value is the name of the object.
    role, index: labels; index is empty if the operator does not number its pods.
    containers: by kind of the pod's controller, the main container.
    owners: the objects between the operator's object and its pods, from the top; empty if the
    operator creates all pods itself.
    """

    label: str
    role: str
    index: str
    containers: Mapping[str, str]
    owners: tuple[OwnerSource, ...] = ()

    @property
    def selector(self) -> str:
        """The label selector of the pods of Runs."""
        return f"{self.label},{self.role},{names.RUN_UID}"


@dataclass(frozen=True)
class Engine:
    """One kind of object that makes pods, and how its status is read.

    renderer: makes the object. operator: the program that acts on it, for messages.
    roles: the value of the pods' role label -> the Run's role.
    templates: the dotted path of what others may edit: counts and pod templates; empty: the spec.
    labelled: yields the parts of an object whose metadata reaches the pods, or the objects between.
    succeeded: the type of the condition that ends it, beside Failed.
    suspend: the dotted path of the field that suspends it; empty: it is deleted instead.
    clean: the dotted path of cleanPodPolicy, which is Running if it is unset.
    own_limit: the engine has a limit of failures of its own, even if the Run sets none.

    What one engine does unlike all others, its class below overrides.
    """

    backend: str
    renderer: Backend
    operator: str
    api_version: str
    kind: str
    resource: str
    pods: PodSource
    roles: Mapping[str, str]
    templates: str
    labelled: Callable[[JsonObject], Iterator[JsonObject]]
    suspend: str = ""
    succeeded: str = "Succeeded"
    clean: str = ""
    own_limit: bool = False

    # Whether `absent_role` needs EngineObserved.between, for which all owners of pods are read.
    needs_owners: ClassVar[bool] = False

    def read(self, raw: Mapping[str, Any]) -> EngineObject | None:
        """Return the object; None if no Run owns it."""
        return engine_object(raw, self.suspend, self.templates, self.conditions)

    def conditions(self, status: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
        """Return reason and message by the type of the conditions that hold."""
        return true_conditions(status)

    def end(self, engine_object: EngineObject | None) -> str | None:
        """Return Succeeded or Failed if the engine reports that its object has ended."""
        if engine_object is None:
            return None
        if self.succeeded in engine_object.conditions:
            return "Succeeded"
        return "Failed" if FAILED in engine_object.conditions else None

    def problems(self, _spec: JsonObject) -> list[str]:
        """Return why the object, with this spec, must not be created."""
        return []

    def role_of(self, _roles: Collection[str], label: str) -> str:
        """Return the role of a Run with these roles for a value of the pods' role label."""
        return self.roles.get(label, label)

    def number(self, pods: list[OwnedPod]) -> list[OwnedPod]:
        """Return the pods of one object, which have their roles, with the Run's indexes."""
        return pods

    def absent_role(self, _facts: Mapping[str, RoleFacts], _observed: EngineObserved) -> str:
        """Return the role whose pod, or what is above the others, is gone; empty for none.

        Only where the engine does not replace it, so that the object has to be created again.
        """
        return ""

    def failed_for_good(self, _facts: Mapping[str, RoleFacts]) -> OwnedPod | None:
        """Return the failed pod that the engine does not replace while it is there."""
        return None


class _TfJob(Engine):
    def role_of(self, roles: Collection[str], label: str) -> str:
        # The key depends on masterTaskType, and both are one role of the Run.
        if label in ("chief", "master"):
            return next((role for role in ("chief", "master") if role in roles), label)
        return super().role_of(roles, label)


class _MpiJob(Engine):
    def conditions(self, status: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
        """Leave out Failed while the job goes on: the operator writes it for evicted workers."""
        conditions = super().conditions(status)
        if not status.get("completionTime"):
            conditions.pop(FAILED, None)
        return conditions

    def number(self, pods: list[OwnedPod]) -> list[OwnedPod]:
        """Assign numbers to workers by name: the index in the label may count the launcher."""
        ends = [(pod, pod.name.rpartition("-")[2]) for pod in pods]
        return [
            replace(pod, index=int(end)) if pod.role == "worker" and end.isdecimal() else pod
            for pod, end in ends
        ]

    def failed_for_good(self, facts: Mapping[str, RoleFacts]) -> OwnedPod | None:
        ended = facts["worker"].ended if "worker" in facts else {}
        return ended[min(ended)] if ended else None


class _MpiJobV1(Engine):
    def problems(self, spec: JsonObject) -> list[str]:
        # Source: getLauncherRoleBinding of pkg/controller.v1/mpi/mpijob_controller.go.
        pod = find_below(spec, ("mpiReplicaSpecs", "Launcher", "template", "spec"))
        return [_ACCOUNT] if pod.get("serviceAccountName") or pod.get("serviceAccount") else []


class _DaskJob(Engine):
    needs_owners = True

    def conditions(self, status: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
        """Return the phase as a condition: a DaskJob has no conditions."""
        phase = status.get("jobStatus")
        return {str(phase): ("", "")} if phase else {}

    def number(self, pods: list[OwnedPod]) -> list[OwnedPod]:
        """Assign numbers to pods by the uids of their controllers, in alphabetical order.

        A pod that takes the place of another has the same one.
        """
        by_role: dict[str, set[str]] = {}
        for pod in pods:
            by_role.setdefault(pod.role, set()).add(pod.run_uid)
        orders = {role: sorted(owners) for role, owners in by_role.items()}
        return [replace(pod, index=orders[pod.role].index(pod.run_uid)) for pod in pods]

    def absent_role(self, facts: Mapping[str, RoleFacts], observed: EngineObserved) -> str:
        """Return "driver" if its pod is gone, or the DaskCluster that the other pods belong to.

        The operator creates them once. After the driver's end it deletes the rest itself.
        """
        engine_object = observed.object
        begun = engine_object and engine_object.conditions.keys() & {"ClusterCreated", "Running"}
        if not begun or "driver" not in facts:
            return ""
        driver = facts["driver"]
        has_ended = driver.ended or driver.succeeded
        cluster_exists = observed.between
        return "" if has_ended or (driver.pods and cluster_exists) else "driver"


def _job_templates(replicas: str) -> Callable[[JsonObject], Iterator[JsonObject]]:
    """Return a function that yields the pod templates below the field `replicas` of the spec."""

    def templates(manifest: JsonObject) -> Iterator[JsonObject]:
        yield from (replica["template"] for replica in manifest["spec"][replicas].values())

    return templates


def _jobset_templates(manifest: JsonObject) -> Iterator[JsonObject]:
    for replicated_job in manifest["spec"]["replicatedJobs"]:
        yield replicated_job["template"]
        yield replicated_job["template"]["spec"]["template"]


def _dask_templates(manifest: JsonObject) -> Iterator[JsonObject]:
    # The operator copies the labels of a DaskJob to everything that it creates.
    yield manifest
    for path in SECTIONS.values():
        yield find_below(manifest["spec"], path)


_TRAINING_PODS: Final = PodSource(
    "training.kubeflow.org/job-name",
    "training.kubeflow.org/replica-type",
    "training.kubeflow.org/replica-index",
    {job_kind.kind: job_kind.container for job_kind in KINDS.values() if job_kind.container},
)
# The launcher is the pod of a Job, which has no other label.
_MPI_PODS: Final = PodSource(
    "training.kubeflow.org/job-name",
    "training.kubeflow.org/job-role",
    "training.kubeflow.org/replica-index",
    {},
    (OwnerSource("batch/v1", "jobs", "Job", "app", labelled=False),),
)
_JOBSET: Final = "jobset.sigs.k8s.io/jobset-name"
_JOBSET_PODS: Final = PodSource(
    _JOBSET,
    "jobset.sigs.k8s.io/replicatedjob-name",
    "jobset.sigs.k8s.io/job-index",
    {},
    (OwnerSource("batch/v1", "jobs", "Job", _JOBSET),),
)
_DASK: Final = "dask.org/cluster-name"
_DASK_VERSION: Final = "kubernetes.dask.org/v1"
_DASK_PODS: Final = PodSource(
    _DASK,
    "dask.org/component",
    "",
    {},
    (
        OwnerSource(_DASK_VERSION, "daskclusters", "DaskCluster", _DASK),
        OwnerSource(_DASK_VERSION, "daskworkergroups", "DaskWorkerGroup", _DASK),
        OwnerSource("apps/v1", "deployments", "Deployment", _DASK),
        OwnerSource("apps/v1", "replicasets", "ReplicaSet", _DASK),
    ),
)
_KUBEFLOW: Final = Kubeflow()
# The operator writes the keys of the replicas in lower case.
_TRAINING_ROLES: Final[Mapping[str, Mapping[str, str]]] = {
    "tensorflow": {"ps": "ps", "worker": "worker", "evaluator": "evaluator"},
    "paddle": {"master": "server", "worker": "worker"},
}


def _training(
    kind: JobKind, renderer: Kubeflow = _KUBEFLOW, engine: type[Engine] = Engine
) -> Engine:
    roles = {role: role for role in kind.roles}
    return engine(
        backend=renderer.name,
        renderer=renderer,
        operator="the training operator",
        api_version=kind.api_version,
        kind=kind.kind,
        resource=f"{kind.kind.lower()}s",
        pods=_TRAINING_PODS,
        roles=_TRAINING_ROLES.get(kind.framework or "", roles),
        templates=kind.replicas,
        labelled=_job_templates(kind.replicas),
        suspend="runPolicy.suspend",
        clean="runPolicy.cleanPodPolicy",
    )


_MPI: Final = replace(
    _training(KINDS["mpi"], engine=_MpiJob),
    operator="the MPI operator",
    pods=_MPI_PODS,
    own_limit=True,
)
_MPI_V1: Final = _training(MPIJOB_V1, Kubeflow("v1"), _MpiJobV1)


def _jobset(framework: str | None) -> Engine:
    return Engine(
        backend="jobset",
        renderer=BACKENDS["jobset"],
        operator="JobSet's controller",
        api_version=jobset.KIND.api_version,
        kind=jobset.KIND.kind,
        resource="jobsets",
        pods=_JOBSET_PODS,
        roles={role: role for role in ROLES[framework].names},
        templates="replicatedJobs",
        labelled=_jobset_templates,
        suspend="suspend",
        succeeded="Completed",
        own_limit=True,
    )


_DASK_JOB: Final = _DaskJob(
    backend="dask",
    renderer=BACKENDS["dask"],
    operator="Dask's operator",
    api_version=dask_operator.KIND.api_version,
    kind=dask_operator.KIND.kind,
    resource="daskjobs",
    pods=_DASK_PODS,
    roles={"scheduler": "scheduler", "worker": "worker", "job-runner": "driver"},
    templates="",
    labelled=_dask_templates,
    succeeded="Successful",
)
MPI_KEY: Final = "kubeflow/mpi"
# By engine_key.
ENGINES: Final[Mapping[str, Engine]] = {
    **{
        f"kubeflow/{framework}": _training(KINDS[framework])
        for framework in ("pytorch", "paddle", "xgboost", "jax")
    },
    "kubeflow/tensorflow": _training(KINDS["tensorflow"], engine=_TfJob),
    MPI_KEY: _MPI,
    **{f"jobset/{framework or ''}": _jobset(framework) for framework in ROLES},
    "dask/dask": _DASK_JOB,
}

# Engines whose objects are of one definition, in different versions: a cluster has one of them.
VARIANTS: Final[Mapping[str, tuple[Engine, ...]]] = {
    MPI_KEY: (_MPI, _MPI_V1),
}


def created_objects() -> dict[str, tuple[str, str]]:
    """Return group and resource of the object of each engine, by its key in ENGINES."""
    return {
        key: (engine.api_version.partition("/")[0], engine.resource)
        for key, engine in ENGINES.items()
    }


def engine_key(spec: Mapping[str, Any]) -> str:
    """Return the key of a raw spec's engine in ENGINES; empty without one."""
    key = f"{spec.get('backend')}/{spec.get('framework') or ''}"
    return key if key in ENGINES else ""


def find_engine(run: Run) -> Engine | None:
    """Return the engine of a delegated Run; None if its backend has none for the framework."""
    return ENGINES.get(f"{run.spec.backend}/{run.spec.framework or ''}")


def find_below(document: dict[str, Any], path: Iterable[str]) -> dict[str, Any]:
    """Return the mapping at the path; an empty one if it is not there."""
    for step in path:
        document = document.get(step) or {}
    return document
