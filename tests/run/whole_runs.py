"""Runs that use every field, to compare those that judge Runs: model, schema and API server."""

from __future__ import annotations

import copy
from typing import Any

from tests.fast_yaml import load_all_yaml
from tests.policy.examples import EVERYTHING
from webhook.placement.schema.placement import PlacementModel

Json = dict[str, Any]

HEAD: Json = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "Run"}
POD_TEMPLATE: Json = {
    "metadata": {"labels": {"team": "vision"}, "annotations": {"note": "any"}},
    "spec": {
        "containers": [{"name": "main", "image": "example.invalid/none", "env": []}],
        "terminationGracePeriodSeconds": 5,
    },
}
RESOURCES: Json = {
    "requests": {"cpu": 1, "memory": "1.5Gi"},
    "limits": {"nvidia.com/gpu": "1", "memory": "2e9"},
    "claims": [{"name": "net", "request": "one"}],
}


def an_environment() -> Json:
    """Every field that an environment has."""
    policy = next(
        document for document in load_all_yaml(EVERYTHING) if document["kind"] == "PlacementPolicy"
    )
    parts = [policy["spec"][part] for part in ("defaults", "overrides", "requirements")]
    found = {**parts[0], **parts[1], **parts[2], "patchStrategy": "Replace", "nodeName": "n1"}
    return {name: each for name, each in found.items() if name in PlacementModel.outer_names()}


def a_run(**spec: Any) -> Json:
    whole = {**HEAD, "metadata": {"name": "mnist"}, "spec": {"template": POD_TEMPLATE, **spec}}
    return copy.deepcopy(whole)


# One of tensorflow with every field, one of each other framework with its own, and a notebook.
TENSORFLOW: Json = a_run(
    kind="experiment",
    backend="native",
    framework="tensorflow",
    environment=an_environment(),
    mainContainer="main",
    replicas={
        "master": {"resources": RESOURCES},
        "worker": {
            "count": 7,
            "resources": RESOURCES,
            "environment": an_environment(),
            "template": POD_TEMPLATE,
            "restartPolicy": "ExitCode",
            "byIndex": [
                {"index": 2, "resources": RESOURCES, "environment": an_environment()},
                {"index": 6},
            ],
        },
        "ps": {"count": 3},
    },
    restartScope="Role",
    backoffLimit=5,
    disruptionLimit=10,
    disruptionExitCodes=[85, 143],
    activeDeadlineSeconds=86400,
    ttlSecondsAfterFinished=3600,
    cleanPodPolicy="All",
    suspend=True,
    gang={"startWithin": "20m"},
    tensorflow={"masterTaskType": "master", "port": 3333},
)
OTHERS: list[Json] = [
    a_run(
        framework="pytorch",
        replicas={"master": {}, "worker": {"count": 3}},
        pytorch={
            "nprocPerNode": "auto",
            "elastic": {"minReplicas": 2, "maxRestarts": 5},
            "port": 23457,
        },
    ),
    a_run(framework="pytorch", replicas={"worker": {"count": 3}}, pytorch={"nprocPerNode": 8}),
    a_run(framework="jax", replicas={"worker": {"count": 2}}, jax={"port": 6667}),
    a_run(
        framework="mpi",
        replicas={"launcher": {}, "worker": {"count": 2}},
        mpi={
            "implementation": "MPICH",
            "slotsPerWorker": 8,
            "sshAuthMountPath": "/home/mpi/.ssh",
            "launcherAsWorker": True,
            "port": 2022,
        },
    ),
    a_run(framework="xgboost", replicas={"master": {}, "worker": {}}, xgboost={"port": 9998}),
    a_run(framework="paddle", replicas={"master": {}, "server": {}}, paddle={"port": 36544}),
    a_run(
        framework="mxnet",
        replicas={"scheduler": {}, "server": {"count": 2}, "worker": {"count": 2}},
        mxnet={"port": 9092},
    ),
    a_run(
        framework="dask", replicas={"scheduler": {}, "worker": {}, "driver": {}}, dask={"port": 1}
    ),
    a_run(
        framework="spark",
        replicas={"driver": {}},
        spark={
            "executors": 4,
            "port": 7079,
            "type": "Scala",
            "sparkVersion": "4.0.0",
            "mainApplicationFile": "local:///opt/etl.jar",
            "mainClass": "example.Etl",
            "arguments": ["--rows", "10"],
            "conf": {"spark.executor.memory": "4g"},
        },
    ),
    a_run(framework="ray", replicas={"head": {}, "worker": {}, "driver": {}}, ray={"port": 6380}),
    a_run(
        framework="deepspeed",
        replicas={"launcher": {}, "worker": {"count": 2}},
        deepspeed={
            "slotsPerWorker": 8,
            "sshAuthMountPath": "/home/ds/.ssh",
            "sshPort": 2222,
            "port": 29501,
        },
    ),
    a_run(
        kind="notebook",
        ports=[{"name": "http", "port": 80, "targetPort": 8888}, {"name": "more", "port": 81}],
        maxAgeSeconds=86400,
    ),
    a_run(gang={"startWithin": "20m"}),
]
ALL: list[Json] = [TENSORFLOW, *OTHERS]
