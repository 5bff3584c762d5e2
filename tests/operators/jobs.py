"""The smallest object of each operator, as its user writes it, and the pods that it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.cluster.manifests import Json
from webhook import names

QUEUE: Final = "queue"


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
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


_PYTORCH_JOB: Final = made(
    "kubeflow.org/v1",
    "PyTorchJob",
    {
        "pytorchReplicaSpecs": {
            "Master": {"replicas": 1, "template": template("pytorch")},
            "Worker": {"replicas": 2, "template": template("pytorch")},
        }
    },
)
_MPI_JOB: Final = made(
    "kubeflow.org/v2beta1",
    "MPIJob",
    {
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "template": template()},
            "Worker": {"replicas": 2, "template": template()},
        }
    },
)
_JOB_SET: Final = made(
    "jobset.x-k8s.io/v1alpha2",
    "JobSet",
    {
        "replicatedJobs": [
            {
                "name": "workers",
                "template": {
                    "spec": {
                        "parallelism": 2,
                        "completions": 2,
                        "template": template(restartPolicy="Never"),
                    }
                },
            }
        ]
    },
)
_TRAIN_JOB: Final = made(
    "trainer.kubeflow.org/v1alpha1",
    "TrainJob",
    {
        "runtimeRef": {"name": "torch-distributed"},
        "trainer": {"image": "example.invalid/none", "numNodes": 2},
    },
)
_LEADER_WORKER_SET: Final = made(
    "leaderworkerset.x-k8s.io/v1",
    "LeaderWorkerSet",
    {"replicas": 1, "leaderWorkerTemplate": {"size": 3, "workerTemplate": template()}},
)
_DASK_CLUSTER: Final = made(
    "kubernetes.dask.org/v1",
    "DaskCluster",
    {
        "worker": {"replicas": 2, "spec": template("worker")["spec"]},
        "scheduler": {
            "spec": template("scheduler")["spec"],
            "service": {
                "type": "ClusterIP",
                "selector": {"dask.org/component": "scheduler"},
                "ports": [{"name": "tcp-comm", "port": 8786}],
            },
        },
    },
)
_RAY_CLUSTER: Final = made(
    "ray.io/v1",
    "RayCluster",
    {
        "headGroupSpec": {"rayStartParams": {}, "template": template()},
        "workerGroupSpecs": [
            {
                "groupName": "workers",
                "replicas": 2,
                "minReplicas": 0,
                "maxReplicas": 2,
                "rayStartParams": {},
                "template": template(),
            }
        ],
    },
)
SPARK_APPLICATION: Final = made(
    "sparkoperator.k8s.io/v1beta2",
    "SparkApplication",
    {
        "type": "Python",
        "mode": "cluster",
        "sparkVersion": "4.0.0",
        "image": "example.invalid/none",
        "mainApplicationFile": "local:///main.py",
        "driver": {"serviceAccount": "default"},
        "executor": {"instances": 1},
    },
)
_RAY_SPEC: Final = _RAY_CLUSTER["spec"]
_DASK_SPEC: Final = _DASK_CLUSTER["spec"]


def _training_job(kind: str, field: str, container: str, **roles: int) -> Json:
    """An object of the training operator, with so many replicas of each role."""
    replicas = {
        role: {"replicas": count, "template": template(container)} for role, count in roles.items()
    }
    return made("kubeflow.org/v1", kind, {field: replicas})


# One object of each kind: a policy rejects all pods of them.
REJECTED: Final = (
    _PYTORCH_JOB,
    _training_job("TFJob", "tfReplicaSpecs", "tensorflow", Chief=1, Worker=2),
    _training_job("XGBoostJob", "xgbReplicaSpecs", "xgboost", Master=1, Worker=2),
    _training_job("PaddleJob", "paddleReplicaSpecs", "paddle", Worker=2),
    _training_job("JAXJob", "jaxReplicaSpecs", "jax", Worker=2),
    _MPI_JOB,
    _JOB_SET,
    _TRAIN_JOB,
    _LEADER_WORKER_SET,
    _DASK_CLUSTER,
    made(
        "kubernetes.dask.org/v1",
        "DaskJob",
        {"job": template("job"), "cluster": {"spec": _DASK_SPEC}},
    ),
    _RAY_CLUSTER,
    made("ray.io/v1", "RayJob", {"entrypoint": "python run.py", "rayClusterSpec": _RAY_SPEC}),
    made("ray.io/v1", "RayService", {"serveConfigV2": "", "rayClusterConfig": _RAY_SPEC}),
)
_KUEUE: Final = "kueue.x-k8s.io/v1beta2"
_QUEUES: Final = (
    made(_KUEUE, "ResourceFlavor", {}, QUEUE),
    made(
        _KUEUE,
        "ClusterQueue",
        {
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": ["cpu"],
                    "flavors": [
                        {"name": QUEUE, "resources": [{"name": "cpu", "nominalQuota": "9"}]}
                    ],
                }
            ],
        },
        QUEUE,
    ),
    made(_KUEUE, "LocalQueue", {"clusterQueue": QUEUE}, QUEUE),
)
_QUEUED_JOB: Final = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train", "labels": {names.KUEUE_QUEUE: QUEUE}},
    "spec": {
        "parallelism": 2,
        "completions": 2,
        "template": template(restartPolicy="Never"),
    },
}
# Nothing marks these pods as a run's, so their namespace is placed as a whole.
_WHOLE: Final = {"fairlead.dev/place": "all"}

# Worker 0 does not lead, which only the objects show.
_PADDLE_JOB: Final = _training_job("PaddleJob", "paddleReplicaSpecs", "paddle", Master=1, Worker=2)
_DRIVEN_SET: Final = made(
    "jobset.x-k8s.io/v1alpha2",
    "JobSet",
    {
        "replicatedJobs": [
            {"name": name, "template": {"spec": {"template": template(restartPolicy="Never")}}}
            for name in ("driver", "workers")
        ]
    },
)
_RAY_SERVICE: Final = made(
    "ray.io/v1", "RayService", {"serveConfigV2": "", "rayClusterConfig": _RAY_SPEC}
)

EXAMPLES: Final = (
    Example(("kueue",), _QUEUED_JOB, 2, _WHOLE, _QUEUES),
    Example(("training-operator",), _PYTORCH_JOB, 3),
    Example(("training-operator",), _PADDLE_JOB, 3),
    Example(("jobset",), _JOB_SET, 2),
    Example(("jobset",), _DRIVEN_SET, 2),
    Example(("mpi-operator",), _MPI_JOB, 3),
    Example(("trainer",), _TRAIN_JOB, 2, there=("jobset", "trainer")),
    Example(("dask-kubernetes",), _DASK_CLUSTER, 3),
    Example(("kuberay-operator",), _RAY_CLUSTER, 3),
    Example(("kuberay-operator",), _RAY_SERVICE, 3),
    Example(("lws",), _LEADER_WORKER_SET, 3),
)
