"""Runs that real operators carry out, one a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.cluster.live_runs import TEMPLATE, LiveRun, run_manifest
from tests.cluster.spaces import Json, Space


@dataclass(frozen=True)
class Labels:
    """By which an operator's pods are known. index: none if they are not numbered."""

    job: str
    role: str
    index: str = ""


_KUBEFLOW: Final = "training.kubeflow.org"
TRAINING: Final = Labels(
    f"{_KUBEFLOW}/job-name", f"{_KUBEFLOW}/replica-type", f"{_KUBEFLOW}/replica-index"
)
MPI: Final = Labels(f"{_KUBEFLOW}/job-name", f"{_KUBEFLOW}/job-role", f"{_KUBEFLOW}/replica-index")
_JOBSET: Final = "jobset.sigs.k8s.io"
JOBSET: Final = Labels(
    f"{_JOBSET}/jobset-name", f"{_JOBSET}/replicatedjob-name", f"{_JOBSET}/job-index"
)
DASK: Final = Labels("dask.org/cluster-name", "dask.org/component")


@dataclass(frozen=True)
class Shape:
    """A run of one framework on one engine.

    resource: of its object; deciding: the replica whose end ends it; failing: one that the engine
    replaces when it fails; keeps: its Jobs keep pods that failed.
    """

    framework: str
    resource: str
    container: str
    replicas: Mapping[str, int]
    deciding: str
    failing: str
    backend: str = "kubeflow"
    labels: Labels = TRAINING
    restarts: str = "ExitCode"
    keeps: bool = False

    def __str__(self) -> str:
        return self.resource

    @property
    def pods(self) -> list[str]:
        """All of its pods, by the operator's names of roles."""
        label = {
            ("paddle", "server"): "master",
            ("dask", "driver"): "job-runner",
        }
        return [
            f"{label.get((self.framework, role), role)}-{index}"
            for role, count in self.replicas.items()
            for index in range(count)
        ]


SHAPES: Final = (
    Shape(
        "tensorflow",
        "tfjobs",
        "tensorflow",
        {"chief": 1, "worker": 7, "ps": 3},
        "chief-0",
        "worker-6",
    ),
    Shape("pytorch", "pytorchjobs", "pytorch", {"master": 1, "worker": 2}, "master-0", "worker-1"),
    Shape("paddle", "paddlejobs", "paddle", {"server": 2, "worker": 2}, "", "worker-1"),
    Shape("xgboost", "xgboostjobs", "xgboost", {"master": 1, "worker": 2}, "master-0", "worker-0"),
    Shape("jax", "jaxjobs", "jax", {"worker": 3}, "", "worker-2"),
)
PYTORCH: Final = SHAPES[1]
ON_JOBSET: Final = Shape(
    "pytorch",
    "jobsets",
    "main",
    {"master": 1, "worker": 2},
    "master-0",
    "worker-1",
    "jobset",
    JOBSET,
    "OnFailure",
    keeps=True,
)
ON_MPI: Final = Shape(
    "mpi",
    "mpijobs",
    "main",
    {"launcher": 1, "worker": 2},
    "launcher-0",
    "launcher-0",
    labels=MPI,
    restarts="OnFailure",
    keeps=True,
)
# By the training operator, which has no Job for the launcher.
ON_MPI_V1: Final = replace(ON_MPI, labels=TRAINING, failing="worker-1")
ON_DASK: Final = Shape(
    "dask",
    "daskjobs",
    "main",
    {"scheduler": 1, "worker": 2, "driver": 1},
    "job-runner-0",
    "worker-1",
    "dask",
    DASK,
    "",
)


@dataclass(frozen=True)
class Delegated(LiveRun):
    """A run whose pods the operator makes."""

    shape: Shape

    def pods(self) -> dict[str, Json]:
        """Its pods by the operator's role and index; of one replica's the latest that lives."""
        labels = self.shape.labels
        listed = self.space.items("pods", f"{labels.job}={self.name}")
        listed.sort(key=_life)
        if labels.index:
            return {
                f"{_label(each, labels.role)}-{_label(each, labels.index) or 0}": each
                for each in listed
            }
        by_role: dict[str, dict[str, Json]] = {}
        for each in listed:
            owner = each["metadata"]["ownerReferences"][0]["uid"]
            by_role.setdefault(_label(each, labels.role), {})[owner] = each
        return {
            f"{role}-{index}": pods[owner]
            for role, pods in by_role.items()
            for index, owner in enumerate(sorted(pods))
        }

    def patch_status(self, replica: str, status: Mapping[str, Any]) -> None:
        """Merge this into the pod's status, as its kubelet would."""
        pod = self.pods()[replica]["metadata"]["name"]
        self.space.patch("pods", f"{pod}/status", {"status": dict(status)})

    def object(self) -> Json | None:
        """The operator's object."""
        return self.space.find(self.path, self.name)

    @property
    def path(self) -> str:
        """Its resource, as Space takes it."""
        return self.shape.resource

    @property
    def container(self) -> str:
        """The one that the operator looks for."""
        return self.shape.container

    def until_all_run(self) -> dict[str, Json]:
        """Wait until all replicas run, and the status says so."""
        self.until_running(*self.shape.pods)
        self.until_whole(len(self.shape.pods))
        return self.live()

    def until_whole(self, count: int) -> None:
        """Wait until the run is Running with so many replicas."""
        self.until(
            f"{count} replicas run",
            lambda: (
                self.status.get("phase") == "Running"
                and self.status.get("replicasReady") == f"{count}/{count}"
            ),
        )

    def succeeds(self) -> None:
        """All replicas that decide end with 0."""
        deciding = self.shape.deciding
        for replica in [deciding] if deciding else self.shape.pods:
            self.ends(replica, 0)


def _label(pod: Json, key: str) -> str:
    found: str = pod["metadata"]["labels"].get(key, "")
    return found


def _life(pod: Json) -> tuple[bool, str]:
    """Sorts a pod that lives after those that do not, and the latest last."""
    ended = pod["status"].get("phase") in ("Succeeded", "Failed")
    over = ended or "deletionTimestamp" in pod["metadata"]
    return not over, pod["metadata"]["creationTimestamp"]


def play(space: Space, shape: Shape, name: str = "train", **spec: Any) -> Delegated:
    """Create a delegated run in the space."""
    restarts = {"restartPolicy": shape.restarts} if shape.restarts else {}
    replicas = {role: {"count": count, **restarts} for role, count in shape.replicas.items()}
    whole = {
        "backend": shape.backend,
        "framework": shape.framework,
        "replicas": replicas,
        "template": TEMPLATE,
        **spec,
    }
    space.create(run_manifest(name, **whole))
    return Delegated(space, name, shape)
