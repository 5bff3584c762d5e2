"""The smallest object of each operator, from files/jobs.yaml, and the pods that it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.cluster.manifests import Json
from tests.fast_yaml import load_yaml
from tests.objects import an_object

_OBJECTS: Final = load_yaml((Path(__file__).parent / "files" / "jobs.yaml").read_text())
SPARK_APPLICATION: Final[Json] = _OBJECTS["SparkApplication"]
# One object of each kind: a policy rejects all pods of them.
REJECTED: Final = tuple(
    _OBJECTS[kind]
    for kind in (
        *("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob", "JobSet"),
        *("TrainJob", "LeaderWorkerSet", "DaskCluster", "DaskJob"),
        *("RayCluster", "RayJob", "RayService"),
    )
)


@dataclass(frozen=True)
class Example:
    """An object that operators turn into pods.

    operators: those that the sandbox is asked for; pods: how many have been made when all are
    there; namespace: labels of the namespace; before: what an admin creates first; there: the
    operators that run, if that is more than those asked for.
    """

    operators: tuple[str, ...]
    manifest: Json
    pods: int
    namespace: Mapping[str, str] = field(default_factory=dict)
    before: tuple[Json, ...] = ()
    there: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{'+'.join(self.operators)} {self.manifest['kind']}"


def template(container: str = "main", **spec: Any) -> Json:
    """A template with one container of this name."""
    one = {"name": container, "image": "example.invalid/none", "command": ["run"]}
    return {"spec": {"containers": [one], **spec}}


def made(api_version: str, kind: str, spec: Json, name: str = "train") -> Json:
    """An object of an operator."""
    return an_object(api_version, kind, name, spec)


def _example(operator: str, name: str, pods: int, *there: str) -> Example:
    return Example((operator,), _OBJECTS[name], pods, there=there)


EXAMPLES: Final = (
    # Nothing marks these pods as a run's, so their namespace is placed as a whole.
    Example(
        ("kueue",),
        _OBJECTS["Job for a queue"],
        2,
        {"fairlead.dev/place": "all"},
        tuple(_OBJECTS["queues of Kueue"]),
    ),
    _example("training-operator", "PyTorchJob", 3),
    # Worker 0 does not lead, which only the objects show.
    _example("training-operator", "PaddleJob with a master", 3),
    _example("jobset", "JobSet", 2),
    _example("jobset", "JobSet with a driver", 2),
    _example("mpi-operator", "MPIJob", 3),
    _example("trainer", "TrainJob", 2, "jobset", "trainer"),
    _example("dask-kubernetes", "DaskCluster", 3),
    _example("kuberay-operator", "RayCluster", 3),
    _example("kuberay-operator", "RayService", 3),
    _example("lws", "LeaderWorkerSet", 3),
)
