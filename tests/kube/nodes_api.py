"""Nodes as kubelets report them, and an API server that lists and watches them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.kube.fake_api import Answer, FakeApi, Request, client_of, fake_api
from webhook.api_paths import NODES
from webhook.cluster_objects.watched_objects import NodeView
from webhook.kube.watches import Watches

Json = dict[str, Any]


def node(name: str, version: int = 5, *, beat: int = 0, **labels: str) -> Json:
    """A v1.Node; `beat` is in what changes by itself all the time."""
    return {
        "metadata": {
            "name": name,
            "resourceVersion": str(version),
            "uid": f"uid-{name}",
            "labels": {"kubernetes.io/hostname": name, **labels},
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": f"cloud:///{name}"},
        "status": {
            "capacity": {"cpu": "8", "memory": "32Gi"},
            "allocatable": {"cpu": "7910m", "memory": "28Gi", "pods": "110"},
            "conditions": [
                {"type": "Ready", "status": "True", "lastHeartbeatTime": f"2026-01-01T0:0:{beat}Z"}
            ],
            "images": [{"names": [f"image-{at}"], "sizeBytes": 1} for at in range(50)],
        },
    }


def listing(*items: Json, version: int = 10) -> Json:
    return {"metadata": {"resourceVersion": str(version)}, "items": list(items)}


@asynccontextmanager
async def viewed(
    folder: Path,
    lists: Sequence[Json],
    watches: Sequence[Callable[[Answer], Awaitable[None]]] = (),
) -> AsyncIterator[tuple[FakeApi, NodeView]]:
    """A view that runs; the last list is given again and again, and further watches stay open."""
    left, steps = list(lists), list(watches)

    async def handle(request: Request, answer: Answer) -> None:
        assert request.path == NODES
        if not request.is_watch:
            await answer.json(left.pop(0) if len(left) > 1 else left[0])
        elif steps:
            await steps.pop(0)(answer)
        else:
            await answer.begin()
            await asyncio.sleep(1000)

    async with (
        fake_api(handle) as api,
        client_of(api, folder) as client,
        Watches(client) as supervisor,
    ):
        yield api, NodeView(supervisor)
