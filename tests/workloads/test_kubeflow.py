"""The pods of Kubeflow's kinds are those that its controllers make."""

from __future__ import annotations

import pytest

from tests.marked_pods import training, who
from tests.workloads.manifests import Json, labels, template, templates
from webhook.sources.kind_model import UNKNOWN

SPEC = {"replicas": 2, "template": template()}


def job(kind: str, field: str, **types: Json) -> Json:
    """The labels of the second pod of the last type."""
    found = templates("kubeflow.org/v1", kind, {field: types})
    assert [each.part for each in found] == [name.lower() for name in types]
    assert all(each.count == 2 for each in found)
    return labels(found[-1], 1)


@pytest.mark.parametrize(
    ("kind", "field", "framework"),
    [
        ("TFJob", "tfReplicaSpecs", "tensorflow"),
        ("PyTorchJob", "pytorchReplicaSpecs", "pytorch"),
        ("XGBoostJob", "xgbReplicaSpecs", "xgboost"),
        ("PaddleJob", "paddleReplicaSpecs", "paddle"),
        ("JAXJob", "jaxReplicaSpecs", "jax"),
        ("MXJob", "mxReplicaSpecs", "mxnet"),
    ],
)
def test_every_kind_labels_its_pods(kind: str, field: str, framework: str) -> None:
    """As createNewPod does; the table of marks then reads framework, role and index."""
    seen = job(kind, field, Master=SPEC, Worker=SPEC)
    assert seen == training(kind.lower(), "worker", 1)
    identity = who(seen)
    assert (identity.run, identity.framework, identity.role, identity.replica_index) == (
        "mnist",
        framework,
        "worker",
        1,
    )
    assert not identity.coordinator


def test_the_master_has_the_leaders_label() -> None:
    """So it leads, and the workers beside it do not."""
    spec = {"pytorchReplicaSpecs": {"Master": SPEC, "Worker": SPEC}}
    master, worker = templates("kubeflow.org/v1", "PyTorchJob", spec)
    assert labels(master) == training("pytorchjob", "master", 0, job_role="master")
    assert who(labels(master)).coordinator
    assert not who(labels(worker, 0)).coordinator


@pytest.mark.parametrize(
    ("kind", "field", "labelled"),
    [
        ("TFJob", "tfReplicaSpecs", True),
        ("PyTorchJob", "pytorchReplicaSpecs", True),
        ("JAXJob", "jaxReplicaSpecs", True),
        ("PaddleJob", "paddleReplicaSpecs", False),
    ],
)
def test_worker_0_leads_without_a_master(kind: str, field: str, labelled: bool) -> None:
    """It has the label of the master that is not there, but for a PaddleJob's."""
    (worker,) = templates("kubeflow.org/v1", kind, {field: {"Worker": SPEC}})
    assert ("training.kubeflow.org/job-role" in labels(worker, 0)) is labelled
    assert who(labels(worker, 0)).coordinator
    assert not who(labels(worker, 1)).coordinator


def test_the_operators_labels_replace_the_templates() -> None:
    """A template cannot say another index than the operator gives."""
    own = template() | {
        "metadata": {"labels": {"training.kubeflow.org/replica-index": "7", "a": "b"}}
    }
    spec = {"tfReplicaSpecs": {"PS": {"template": own}}}
    (found,) = templates("kubeflow.org/v1", "TFJob", spec)
    assert labels(found) == {"a": "b", **training("tfjob", "ps", 0)}


def test_an_mpi_job_of_the_mpi_operator_says_roles() -> None:
    """Launcher and workers; the launcher is a Job's pod, the workers are numbered."""
    replicas = {"Launcher": {"template": template()}, "Worker": SPEC}
    spec = {"mpiReplicaSpecs": replicas}
    launcher, worker = templates("kubeflow.org/v2beta1", "MPIJob", spec)
    assert labels(launcher)["job-name"] == "mnist-launcher"
    assert who(labels(launcher)).coordinator
    identity = who(labels(worker, 1))
    assert (identity.source, identity.role, identity.replica_index) == ("mpi-operator", "worker", 1)


def test_an_mpi_job_of_the_training_operator_says_replica_types() -> None:
    """Its workers are not numbered."""
    replicas = {"Launcher": {"template": template()}, "Worker": SPEC}
    _, worker = templates("kubeflow.org/v1", "MPIJob", {"mpiReplicaSpecs": replicas})
    identity = who(labels(worker, 1))
    assert (identity.source, identity.framework, identity.role, identity.replica_index) == (
        "kubeflow-training",
        "mpi",
        "worker",
        None,
    )


def test_a_notebooks_pod_has_the_notebooks_labels() -> None:
    """The controller passes by the labels of the template."""
    spec = {"template": template(team="ignored")}
    (found,) = templates("kubeflow.org/v1", "Notebook", spec, labels={"owner": "iris"})
    assert labels(found) == {
        "statefulset": "mnist",
        "notebook-name": "mnist",
        "controller-revision-hash": UNKNOWN,
        "owner": "iris",
    }
    assert who(labels(found)).kind == "notebook"


def test_an_mpi_job_of_2019_has_one_template() -> None:
    """Of v1alpha1: the launcher and the workers are made of it."""
    spec = {"replicas": 2, "template": template()}
    launcher, worker = templates("kubeflow.org/v1alpha1", "MPIJob", spec)
    assert (launcher.count, worker.count) == (1, 2)
    assert who(labels(launcher)).coordinator
    identity = who(labels(worker))
    assert (identity.source, identity.role) == ("mpi-operator", "worker")
