"""Runs that each engine can run, for tests of rendering and converting."""

from __future__ import annotations

from typing import Any, Final

from tests.objects import an_object
from webhook.run.backends.kuberay import start_command, submit_command
from webhook.run.backends.table import BACKENDS, render_run
from webhook.run.model import Run

Json = dict[str, Any]


def a_run(name: str = "mnist", **spec: Any) -> Json:
    """A Run; without a template its pods have one container."""
    template = {"spec": {"containers": [{"name": "main", "image": "example.invalid/none"}]}}
    return an_object("fairlead.dev/v1alpha1", "Run", name, {"template": template, **spec})


def model(document: Json) -> Run:
    return Run.model_validate(document, by_alias=True, by_name=False)


def rendered(backend: str, document: Json) -> Json:
    (manifest,) = all_rendered(backend, document)
    return manifest


def all_rendered(backend: str, document: Json) -> list[Json]:
    return [*render_run(model(document), BACKENDS[backend])]


_WITH_SIDECAR: Final[Json] = {
    "metadata": {
        "labels": {"team": "vision"},
        "annotations": {"kubectl.kubernetes.io/default-container": "main"},
    },
    "spec": {
        "serviceAccountName": "trainer",
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "containers": [
            {"name": "log", "image": "example.invalid/log"},
            {
                "name": "main",
                "image": "example.invalid/train",
                "env": [
                    {
                        "name": "CPU",
                        "valueFrom": {
                            "resourceFieldRef": {
                                "containerName": "main",
                                "resource": "limits.cpu",
                            }
                        },
                    }
                ],
            },
        ],
    },
}
_GPU: Final[Json] = {"limits": {"nvidia.com/gpu": 8}}


def _main(**fields: Any) -> Json:
    """A template in which the main container has these fields too."""
    return {"spec": {"containers": [{"name": "main", **fields}]}}


# By backend: Runs with every field that the engine has.
WHOLE: Final[dict[str, list[Json]]] = {
    "kubeflow": [
        a_run(
            framework="tensorflow",
            template=_WITH_SIDECAR,
            mainContainer="main",
            replicas={
                "chief": {"restartPolicy": "Never"},
                "worker": {"count": 7, "resources": _GPU, "restartPolicy": "ExitCode"},
                "ps": {"count": 3, "environment": {"nodeSelector": {"pool": "cpu"}}},
                "evaluator": {},
            },
            tensorflow={"masterTaskType": "master", "port": 3333},
            backoffLimit=5,
            activeDeadlineSeconds=86400,
            ttlSecondsAfterFinished=3600,
            cleanPodPolicy="All",
            suspend=True,
            restartScope="Replica",
        ),
        a_run(framework="tensorflow", replicas={"worker": {"count": 2}}),
        a_run(
            framework="pytorch",
            replicas={"master": {"resources": _GPU}, "worker": {"count": 3, "resources": _GPU}},
            pytorch={"nprocPerNode": 8, "port": 23457},
        ),
        a_run(
            framework="pytorch",
            replicas={"worker": {"count": 3}},
            pytorch={"nprocPerNode": "auto", "elastic": {"minReplicas": 2, "maxRestarts": 5}},
        ),
        a_run(
            framework="pytorch",
            replicas={"master": {}, "worker": {"count": 3}},
            pytorch={"elastic": {"minReplicas": 2}},
        ),
        a_run(framework="paddle", replicas={"worker": {"count": 2}}),
        a_run(framework="paddle", replicas={"server": {"count": 2}, "worker": {"count": 2}}),
        a_run(framework="xgboost", replicas={"master": {}, "worker": {"count": 2}}),
        a_run(framework="jax", replicas={"worker": {"count": 4}}, jax={"port": 6667}),
        a_run(
            framework="mpi",
            template=_WITH_SIDECAR,
            mainContainer="main",
            replicas={"launcher": {}, "worker": {"count": 2, "restartPolicy": "OnFailure"}},
            mpi={
                "implementation": "Intel",
                "slotsPerWorker": 4,
                "sshAuthMountPath": "/home/mpi/.ssh",
                "launcherAsWorker": True,
            },
            backoffLimit=1,
        ),
    ],
    "jobset": [
        a_run(replicas={"worker": {"count": 3}}),
        a_run(
            framework="pytorch",
            template=_WITH_SIDECAR,
            mainContainer="main",
            replicas={"master": {}, "worker": {"count": 3, "restartPolicy": "ExitCode"}},
            pytorch={"nprocPerNode": 8},
            backoffLimit=4,
            activeDeadlineSeconds=600,
            ttlSecondsAfterFinished=60,
            suspend=True,
        ),
        a_run(
            framework="jax",
            replicas={"worker": {"count": 12}},
            restartScope="Run",
            backoffLimit=2,
        ),
        a_run(framework="tensorflow", replicas={"worker": {"count": 3}, "ps": {"count": 2}}),
        a_run(framework="xgboost", replicas={"master": {}, "worker": {"restartPolicy": "Never"}}),
    ],
    "dask": [
        a_run(
            framework="dask",
            template=_WITH_SIDECAR,
            mainContainer="main",
            replicas={
                "scheduler": {},
                "worker": {"count": 5, "resources": _GPU},
                "driver": {"restartPolicy": "OnFailure"},
            },
        ),
        a_run(framework="dask", replicas={"scheduler": {}, "worker": {}, "driver": {}}),
    ],
    "trainer": [
        a_run(
            framework="pytorch",
            template=_WITH_SIDECAR,
            mainContainer="main",
            replicas={"worker": {"count": 4, "resources": _GPU, "restartPolicy": "ExitCode"}},
            pytorch={"nprocPerNode": "auto"},
            backoffLimit=4,
            activeDeadlineSeconds=600,
            suspend=True,
        ),
        a_run(framework="pytorch", replicas={"worker": {"count": 2}}, restartScope="Run"),
        a_run(replicas={"worker": {"count": 2}}),
    ],
    "kuberay": [
        a_run(
            framework="ray",
            template=_WITH_SIDECAR,
            mainContainer="main",
            replicas={
                "head": {},
                "worker": {"count": 3, "resources": _GPU},
                "driver": {"restartPolicy": "Never"},
            },
            activeDeadlineSeconds=600,
            suspend=True,
        ),
        a_run(framework="ray", replicas={"head": {}, "worker": {}, "driver": {}}, backoffLimit=2),
        a_run(
            framework="ray",
            replicas={
                "head": {"template": _main(**start_command("head", {"num-cpus": "0"}))},
                "worker": {"count": 2, "template": _main(**start_command("worker", {}, "echo a"))},
                "driver": {"template": _main(**submit_command("python 'a b.py' && echo"))},
            },
            restartScope="Run",
            backoffLimit=2,
            activeDeadlineSeconds=600,
            cleanPodPolicy="None",
        ),
        a_run(framework="ray", replicas={"head": {}}),
    ],
    "spark": [
        a_run(
            framework="spark",
            template=_WITH_SIDECAR,
            mainContainer="main",
            replicas={
                "driver": {
                    "restartPolicy": "OnFailure",
                    "resources": {"limits": {"cpu": "2500m", "memory": "4Gi"}},
                }
            },
            spark={
                "executors": 8,
                "type": "Scala",
                "sparkVersion": "4.0.0",
                "mainApplicationFile": "local:///opt/spark/examples.jar",
                "mainClass": "example.Main",
                "arguments": ["--rows", "10"],
                "conf": {"spark.executor.memory": "4g"},
            },
            backoffLimit=2,
            ttlSecondsAfterFinished=60,
            cleanPodPolicy="Running",
        ),
        a_run(
            framework="spark",
            replicas={"driver": {}},
            spark={
                "type": "Python",
                "sparkVersion": "4.0.0",
                "mainApplicationFile": "local:///opt/etl.py",
            },
        ),
    ],
}
