"""A cluster of a few objects, served in a thread beside the command that asks for them.

For what the real API server cannot be made to do: logs that break off, nodes that may not be seen.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from tests.kube.fake_api import Answer, FakeApi, Request, fake_api, write_kubeconfig
from webhook import names
from webhook.cli import fairlead

Json = dict[str, Any]
RUNS = f"/apis/{names.API_VERSION}/namespaces/default/{names.RUNS}"
PODS = "/api/v1/namespaces/default/pods"


def run_object(name: str = "mnist", uid: str = "u1", **status: Any) -> Json:
    """A Run of TensorFlow, as the API server has it."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.RUN_KIND,
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid,
            "generation": 1,
            "creationTimestamp": "2026-08-01T12:00:00Z",
        },
        "spec": {"framework": "tensorflow", "replicas": {"master": {}, "worker": {"count": 2}}},
        "status": {"observedGeneration": 1, **status} if status else {},
    }


def pod_object(replica: str, *, run: str = "mnist", uid: str = "u1", **status: Any) -> Json:
    """The pod of one replica, running on a node unless `status` says otherwise."""
    return {
        "metadata": {
            "name": f"{run}-{replica}",
            "uid": f"pod-{replica}",
            "labels": {names.RUN_UID: uid},
            "annotations": {names.DEFAULT_CONTAINER: "main"},
            "ownerReferences": [
                {
                    "apiVersion": names.API_VERSION,
                    "kind": names.RUN_KIND,
                    "name": run,
                    "uid": uid,
                    "controller": True,
                }
            ],
        },
        "spec": {"nodeName": "node-1", "containers": [{"name": "side"}, {"name": "main"}]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "main", "state": {"running": {}}}],
            **status,
        },
    }


def served_pod(rest: str) -> Json:
    """A pod of the Run's Deployment, which a ReplicaSet created."""
    pod = pod_object(rest)
    pod["metadata"]["labels"] |= {names.RUN: "mnist", "pod-template-hash": "x"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "mnist-x", "uid": "r"}
    pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    return pod


def delegated_run(uid: str = "u1", **status: Any) -> Json:
    """A Run of PaddlePaddle that the training operator carries out."""
    run = run_object(uid=uid, **status)
    replicas: Json = {"server": {}, "worker": {"count": 2}}
    run["spec"] = {"backend": "kubeflow", "framework": "paddle", "replicas": replicas}
    return run


def engine_pod_object(replica: str, *, run: str = "mnist", uid: str = "u1", **status: Any) -> Json:
    """A pod as the training operator creates it for that Run."""
    pod = pod_object(replica, run=run, uid=uid, **status)
    role, _, index = replica.rpartition("-")
    pod["metadata"]["labels"] |= {
        "training.kubeflow.org/job-name": run,
        "training.kubeflow.org/replica-type": role,
        "training.kubeflow.org/replica-index": index,
    }
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PaddleJob", "name": run, "uid": "o1"}
    pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    del pod["metadata"]["annotations"]
    pod["spec"]["containers"] = [{"name": "side"}, {"name": "paddle"}]
    return pod


@dataclass
class Cluster:
    """Objects by path. A path of `answers` is answered by its function instead."""

    objects: dict[str, Json] = field(default_factory=dict)
    answers: dict[str, Callable[[Request, Answer], Awaitable[None]]] = field(default_factory=dict)
    api: FakeApi | None = None

    def add(self, collection: str, *objects: Json) -> None:
        for each in objects:
            self.objects[f"{collection}/{each['metadata']['name']}"] = each

    @property
    def requests(self) -> list[Request]:
        assert self.api is not None
        return self.api.requests

    async def answer(self, request: Request, answer: Answer) -> None:
        if request.path in self.answers:
            await self.answers[request.path](request, answer)
        elif request.path in self.objects:
            await answer.json(self.objects[request.path])
        elif request.path.rpartition("/")[2] in ("pods", "nodes", names.RUNS):
            await answer.json({"metadata": {"resourceVersion": "1"}, "items": self._list(request)})
        else:
            await answer.status(404, "NotFound", f"{request.path} not found")

    def _list(self, request: Request) -> list[Json]:
        key, _, value = request.query.get("labelSelector", "").partition("=")
        everywhere = request.path.replace(f"/{names.RUNS}", "/namespaces/")
        return [
            each
            for path, each in self.objects.items()
            if path.startswith((f"{request.path}/", everywhere))
            and (not key or each["metadata"].get("labels", {}).get(key) == value)
        ]


@contextmanager
def served(cluster: Cluster, folder: Path) -> Iterator[Callable[..., Result]]:
    """Serve the cluster; gives a function that calls `fairlead run` with it."""
    started, ended = threading.Event(), threading.Event()

    async def serve() -> None:
        async with fake_api(cluster.answer) as api:
            cluster.api = api
            started.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    started.wait()
    try:
        kubeconfig = write_kubeconfig(folder, cluster.api.url if cluster.api else "")
        yield lambda *arguments: CliRunner().invoke(
            fairlead, ["run", *arguments, "--kubeconfig", str(kubeconfig)]
        )
    finally:
        ended.set()
        thread.join()
