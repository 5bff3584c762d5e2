"""A cluster of a few objects, served in a thread beside the command that asks for them.

For what the real API server cannot be made to do: logs that break off, nodes that may not be seen.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from tests.kube.fake_api import Answer, FakeApi, Request, fake_api, write_kubeconfig
from webhook import names
from webhook.cli import fairlead

Json = dict[str, Any]
RUNS = f"/apis/{names.API_VERSION}/namespaces/default/{names.RUNS}"
PODS = "/api/v1/namespaces/default/pods"
Handler = Callable[[Request, Answer], Awaitable[None]]


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


def log(*chunks: bytes, pause: float = 0.0, ends: bool = True) -> Handler:
    """A log that comes in these pieces."""

    async def handle(_: Request, answer: Answer) -> None:
        await answer.begin()
        for chunk in chunks:
            await answer.chunk(chunk)
            await asyncio.sleep(pause)
        if ends:
            await answer.end()

    return handle


def refuse(code: int) -> Handler:
    async def handle(_: Request, answer: Answer) -> None:
        if code == HTTPStatus.NOT_FOUND:
            # As of a path that is not served (k8s.io/apiserver, server/handler.go).
            await answer.raw(b"404 page not found", code)
        else:
            await answer.status(code, "Refused", f"the server answers {code}")

    return handle


@dataclass
class Cluster:
    """Objects by path. A path of `answers` is answered by its function instead."""

    objects: dict[str, Json] = field(default_factory=dict)
    answers: dict[str, Handler] = field(default_factory=dict)
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
