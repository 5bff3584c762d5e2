"""The same replicas as a Run, as an Indexed Job, and as a PyTorchJob."""

from __future__ import annotations

from typing import Any, Final

from tests.bench.reviews import NAMESPACE
from tests.objects import an_object
from webhook import names

Json = dict[str, Any]

RUN: Final = "run"
JOB: Final = "job"
PYTORCH_JOB: Final = "pytorchjob"
# A Run that the training operator carries out.
DELEGATED: Final = "delegated"
ARMS: Final = (RUN, JOB, PYTORCH_JOB)
TITLES: Final = {
    RUN: "Run",
    JOB: "Indexed Job",
    PYTORCH_JOB: "PyTorchJob",
    DELEGATED: "Run with `backend: kubeflow`",
}

# The label by which the pods of one object are found, whoever makes them; or those of several.
LABEL: Final = "bench"

_COLLECTIONS: Final = {
    RUN: f"/apis/{names.API_VERSION}/namespaces/{NAMESPACE}/{names.RUNS}",
    JOB: f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs",
    DELEGATED: f"/apis/{names.API_VERSION}/namespaces/{NAMESPACE}/{names.RUNS}",
    PYTORCH_JOB: f"/apis/kubeflow.org/v1/namespaces/{NAMESPACE}/pytorchjobs",
}


def collection(arm: str) -> str:
    """The path to which the arm's objects are posted."""
    return _COLLECTIONS[arm]


def manifest(arm: str, name: str, count: int, label: str = "") -> Json:
    """The object whose controller makes `count` pods, from a template that is the same for all.

    A Run and a PyTorchJob are one master and `count` - 1 workers.
    """
    if arm in (RUN, DELEGATED):
        made = run(name, {"master": 1, "worker": count - 1} if count > 1 else {"master": 1}, label)
        return made if arm == RUN else {**made, "spec": {**made["spec"], "backend": "kubeflow"}}
    if arm == JOB:
        spec: Json = {
            "completionMode": "Indexed",
            "completions": count,
            "parallelism": count,
            "template": template(name, _marks(name)),
        }
        return _object("batch/v1", "Job", name, spec)
    replicas = {
        role: {"replicas": number, "restartPolicy": "Never", "template": template(name, marks)}
        for role, number, marks in (
            ("Master", 1, _marks(name, "master")),
            ("Worker", count - 1, _marks(name)),
        )
    }
    return _object("kubeflow.org/v1", "PyTorchJob", name, {"pytorchReplicaSpecs": replicas})


def run(name: str, roles: dict[str, int], label: str = "") -> Json:
    """A PyTorch Run with so many replicas by role; its pods' LABEL is `label`, or its name."""
    return _object(
        names.API_VERSION,
        names.RUN_KIND,
        name,
        {
            "kind": "experiment",
            "framework": "pytorch",
            "template": template(label or name, {}),
            "replicas": {role: {"count": count} for role, count in roles.items()},
        },
    )


def template(label: str, marks: dict[str, str]) -> Json:
    """A pod template about as small as there is; PyTorchJobs want the container's name."""
    return {
        "metadata": {"labels": {LABEL: label, **marks}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "pytorch", "image": "example.invalid/train:1"}],
        },
    }


def _marks(name: str, role: str = "worker") -> dict[str, str]:
    """The labels by which the webhook is sent a pod; a Run's controller puts them there itself."""
    return {
        names.RUN: name,
        names.KIND: "experiment",
        names.FRAMEWORK: "pytorch",
        names.ROLE: role,
    }


def _object(api_version: str, kind: str, name: str, spec: Json) -> Json:
    return an_object(api_version, kind, {"name": name, "namespace": NAMESPACE}, spec)
