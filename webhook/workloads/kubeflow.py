"""The pod templates of Kubeflow's kinds, with what each controller adds to its pods.

Source: training-operator 1.8 (createNewPod of pkg/controller.v1/common/pod.go, IsMasterRole of
each reconciler), mpi-operator v2beta1 (mpi_job_controller.go), notebook-controller.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from webhook.replicas import TRAINING, TRAINING_ROLE
from webhook.run.rendezvous.table import KUBEFLOW_JOBS
from webhook.workloads.core_kinds import job_labels
from webhook.workloads.template import Made, PodTemplate, at, count_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.policy.findings import Path
    from webhook.workloads.object import Object

_JOBS: Final = {job.kind: job for job in KUBEFLOW_JOBS.values()}
_INDEX: Final = f"{TRAINING}/replica-index"
_MPI_REPLICAS: Final = "mpiReplicaSpecs"


def training_job(source: Object) -> Iterator[PodTemplate]:
    """A job of the training operator: one template a replica type."""
    job = _JOBS[source.kind]
    specs = _types(source, job.replicas)
    led = any(name.lower() in job.leaders for name in specs)
    for name in specs:
        replica_type = name.lower()
        # Where no leader's type is there, worker 0 of some kinds has the leader's label.
        zero = not led and replica_type == "worker" and job.worker_zero
        labels = _labels(source, job.operator) | {f"{TRAINING}/replica-type": replica_type}
        made = partial(_replica, labels, replica_type in job.leaders, zero)
        yield _of_type(source, job.replicas, name, made)


def _replica(labels: Mapping[str, str], leads: bool, zero_leads: bool, index: int) -> Made:
    role = {TRAINING_ROLE: "master"} if leads or (zero_leads and index == 0) else {}
    return Made({**labels, _INDEX: str(index), **role})


def mpi_job(source: Object) -> Iterator[PodTemplate]:
    """An MPIJob: of the MPI operator (v2beta1), or of the training operator (v1)."""
    own_operator = not str(source.value.get("apiVersion")).endswith("/v1")
    for name in _types(source, _MPI_REPLICAS):
        role = name.lower()
        if not own_operator:
            labels = _labels(source, "mpijob-controller") | {f"{TRAINING}/replica-type": role}
        else:
            labels = _labels(source, "mpi-operator") | {TRAINING_ROLE: role}
            if role == "launcher":
                labels |= job_labels(f"{source.name}-launcher")
        numbered = own_operator and role == "worker"
        yield _of_type(source, _MPI_REPLICAS, name, partial(_mpi_replica, labels, numbered))


def _mpi_replica(labels: Mapping[str, str], numbered: bool, index: int) -> Made:
    return Made({**labels, _INDEX: str(index)} if numbered else labels)


def notebook(source: Object) -> Iterator[PodTemplate]:
    """A Notebook: its pod has the Notebook's labels, and none of the template's."""
    own = source.metadata.get("labels")
    labels = {"statefulset": source.name, "notebook-name": source.name}
    made = Made(labels | own if isinstance(own, dict) else labels, alone=True)
    yield PodTemplate(source, ("spec", "template"), made=lambda _: made)


def _types(source: Object, field: str) -> list[str]:
    found = at(source.value, ("spec", field))
    return [name for name, spec in found.items() if spec] if isinstance(found, dict) else []


def _labels(source: Object, operator: str) -> dict[str, str]:
    return {f"{TRAINING}/operator-name": operator, f"{TRAINING}/job-name": source.name}


def _of_type(source: Object, field: str, name: str, made: partial[Made]) -> PodTemplate:
    path: Path = ("spec", field, name)
    count = count_at(source.value, (*path, "replicas"))
    return PodTemplate(source, (*path, "template"), name.lower(), count, made)


KINDS: Final = {
    **{("kubeflow.org", kind): training_job for kind in _JOBS},
    ("kubeflow.org", "MPIJob"): mpi_job,
    ("kubeflow.org", "Notebook"): notebook,
}
