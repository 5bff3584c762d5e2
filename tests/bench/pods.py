"""Pods of ML runs, as people write them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import orjson

from tests.bench.reviews import as_sent
from tests.objects import an_object

Json = dict[str, Any]

# A pod of this size or more has a volume, a command and more labels than it needs.
_PLAIN = 3000
# A pod of this size or more has a sidecar, an init container and more volumes than one.
_MANY_CONTAINERS = 5000

_WORDS = ("batch size", "learning rate", "checkpoint path", "dataset uri", "warmup steps", "seed")


def manifest(size: int) -> Json:
    """One worker of a training run, such that as_sent() makes about `size` bytes of JSON of it.

    Of 5,000 bytes and more it has three containers, a probe and five volumes; the rest is
    environment variables. The smallest is of about 2,000 bytes.
    """
    labels = {
        "fairlead.dev/run": "mnist",
        "fairlead.dev/kind": "experiment",
        "fairlead.dev/framework": "tensorflow",
        "fairlead.dev/role": "worker",
        "project": "vision",
    }
    spec: Json = {"restartPolicy": "Never", "containers": [_container("main")], "volumes": []}
    pod: Json = an_object("v1", "Pod", {"generateName": "mnist-worker-", "labels": labels}, spec)
    if size >= _PLAIN:
        labels |= {"app.kubernetes.io/name": "mnist", "fairlead.dev/replica-index": "3"}
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": "datasets"}}
        spec["volumes"].append(claim)
        spec["containers"][0].update(
            command=["python", "-m", "train", "--config", "/etc/run/config.yaml"],
            volumeMounts=[{"name": "data", "mountPath": "/data"}],
        )
    if size >= _MANY_CONTAINERS:
        _add_companions(spec)
    for variable, container in zip(_variables(), _in_turn(spec), strict=False):
        if len(orjson.dumps(as_sent(pod))) >= size:
            break
        container["env"].append(variable)
    return pod


def with_own_placement() -> Json:
    """A small pod with a nodeSelector, a toleration and two terms of node affinity of its own."""
    pod = manifest(0)
    terms = [
        {"matchExpressions": [{"key": "gpu", "operator": "In", "values": [gpu]}]}
        for gpu in ("a100", "h100")
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod["spec"].update(
        nodeSelector={"pool": "vision"},
        tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}],
        affinity={"nodeAffinity": required},
    )
    return pod


def _container(name: str) -> Json:
    return {
        "name": name,
        "image": f"registry.example.com/ml/{name}:2.4.1",
        "env": [],
        "resources": {
            "requests": {"cpu": "4", "memory": "16Gi"},
            "limits": {"memory": "16Gi", "nvidia.com/gpu": "1"},
        },
        "volumeMounts": [],
    }


def _add_companions(spec: Json) -> None:
    spec["containers"].append(
        {
            **_container("metrics"),
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
            "ports": [{"name": "metrics", "containerPort": 9090, "protocol": "TCP"}],
            "readinessProbe": {"httpGet": {"path": "/healthz", "port": 9090}, "periodSeconds": 10},
        }
    )
    spec["initContainers"] = [{**_container("fetch"), "resources": {}}]
    spec["volumes"] += [
        {"name": "config", "configMap": {"name": "mnist-config"}},
        {"name": "scratch", "emptyDir": {"sizeLimit": "20Gi"}},
        {"name": "memory", "emptyDir": {"medium": "Memory"}},
        {"name": "keys", "secret": {"secretName": "bucket-keys"}},
    ]


def _variables() -> Iterator[Json]:
    for number in count():
        word = _WORDS[number % len(_WORDS)]
        name = f"{word.replace(' ', '_').upper()}_{number}"
        if number % 5 == 4:
            key = {"name": "mnist-settings", "key": word.replace(" ", "-")}
            yield {"name": name, "valueFrom": {"configMapKeyRef": key}}
        else:
            yield {"name": name, "value": f"gs://bucket/{word.replace(' ', '-')}/{number:04}"}


def _in_turn(spec: Json) -> Iterator[Json]:
    containers = [*spec["containers"], *spec.get("initContainers", ())]
    for number in count():
        yield containers[number % len(containers)]
