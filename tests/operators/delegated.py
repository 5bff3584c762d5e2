"""Runs that the training operator carries out, as scenes of tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.cluster.rooms import Json, Room
from tests.cluster.scenes import TEMPLATE, Scene, run_manifest

JOB: Final = "training.kubeflow.org/job-name"


@dataclass(frozen=True)
class Shape:
    """A run of one framework. resource: of its object; deciding: the replica whose end ends it."""

    framework: str
    resource: str
    container: str
    replicas: Mapping[str, int]
    deciding: str
    failing: str

    def __str__(self) -> str:
        return self.framework

    @property
    def pods(self) -> list[str]:
        """All of its pods."""
        label = {"server": "master"} if self.framework == "paddle" else {}
        return [
            f"{label.get(role, role)}-{index}"
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


@dataclass(frozen=True)
class Delegated(Scene):
    """A run whose pods the operator makes."""

    shape: Shape

    def pods(self) -> dict[str, Json]:
        """Its pods by what comes after the run's name."""
        listed = self.room.items("pods", f"{JOB}={self.name}")
        return {each["metadata"]["name"].removeprefix(f"{self.name}-"): each for each in listed}

    def object(self) -> Json | None:
        """The operator's object."""
        return self.room.find(self.path, self.name)

    @property
    def path(self) -> str:
        """Its resource, as Room takes it."""
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


def play(room: Room, shape: Shape, name: str = "train", **spec: Any) -> Delegated:
    """Create a delegated run in the room."""
    replicas = {
        role: {"count": count, "restartPolicy": "ExitCode"}
        for role, count in shape.replicas.items()
    }
    whole = {
        "backend": "kubeflow",
        "framework": shape.framework,
        "replicas": replicas,
        "template": TEMPLATE,
        **spec,
    }
    room.create(run_manifest(name, **whole))
    return Delegated(room, name, shape)
