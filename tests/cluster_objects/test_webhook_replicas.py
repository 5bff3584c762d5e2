"""The pods in which the webhook runs are found, and nothing else is asked."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import pytest

from tests.kube.fake_api import Answer, Request, client_of, fake_api
from webhook.cluster_objects.webhook_replicas import (
    Replica,
    read_by_replica,
    read_unmet,
    running,
)
from webhook.errors import ClusterError
from webhook.kube.client import Client, Listing
from webhook.server.readiness import Condition, evaluate

Json = dict[str, Any]


def pod(name: str, *, phase: str = "Running", ip: str | None = "10.0.0.1", **metadata: str) -> Json:
    """A pod of the webhook, as the manifests have it."""
    ports = [{"name": "https", "containerPort": 8443}, {"name": "health", "containerPort": 8081}]
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", **metadata},
        "spec": {"containers": [{"name": "webhook", "ports": ports}, {"name": "beside"}]},
        "status": {"phase": phase, **({"podIP": ip} if ip else {})},
    }


def found(*pods: Json) -> list[Replica]:
    class Listed:
        async def list(self, path: str, keep: Any, *, query: Json) -> Listing[Any]:
            assert (path, query) == (
                "/api/v1/namespaces/fairlead-system/pods",
                {
                    "labelSelector": "app.kubernetes.io/name=fairlead,"
                    "app.kubernetes.io/component=webhook"
                },
            )
            return Listing([keep(each) for each in pods], "5")

    return list(asyncio.run(running(cast(Client, Listed()), "fairlead-system")))


def test_a_replica_has_its_pods_uid_address_and_health_port() -> None:
    """In the order of their names; who is about to end still tells."""
    leaving = pod("a", deletionTimestamp="2026-03-01T12:00:00Z")
    assert found(pod("b"), leaving) == [
        Replica("uid-a", "a", "10.0.0.1", 8081, leaving=True),
        Replica("uid-b", "b", "10.0.0.1", 8081, leaving=False),
    ]


def test_what_does_not_run_cannot_be_asked() -> None:
    """Pods that wait, have ended, or have no address or no such port."""
    portless = pod("portless")
    portless["spec"]["containers"] = [{"name": "webhook"}]
    odd = {"metadata": {"name": "n", "uid": "u"}, "spec": {"containers": []}}
    assert found(pod("a", phase="Pending"), pod("b", ip=None), portless, odd) == []


async def test_every_replica_that_runs_is_asked_through_the_api_server(tmp_path: Path) -> None:
    """At the number of its health port: the API server knows no names of ports of pods."""

    async def handle(request: Request, answer: Answer) -> None:
        if "proxy" in request.path:
            await answer.raw(request.path.encode())
        else:
            items = [pod("a"), pod("b", phase="Pending"), pod("c")]
            await answer.json({"metadata": {"resourceVersion": "1"}, "items": items})

    async with fake_api(handle) as api, client_of(api, tmp_path) as client:
        pods = "/api/v1/namespaces/fairlead-system/pods"
        assert list((await read_by_replica(client)).values()) == [
            f"{pods}/{name}:8081/proxy/metrics" for name in ("a", "c")
        ]


async def test_why_a_replica_is_not_ready_is_read_though_the_answer_is_an_error(
    tmp_path: Path,
) -> None:
    """Its own page of readiness has 503 then; whether it was the replica that answered is clear."""
    ready = {"drain": lambda: Condition(ready=True, reason="not draining")}
    waits = {**ready, "policies": lambda: Condition(ready=False, reason="refused: x")}
    page = {"ready": False, "conditions": {k: asdict(v) for k, v in evaluate(waits).items()}}
    answers: list[tuple[Json, int]] = [(page, 503), ({"ready": True, "conditions": {}}, 200)]

    async def handle(request: Request, answer: Answer) -> None:
        if answers:
            assert request.path.partition("?")[0].endswith("/pods/a:8081/proxy/readyz")
            body, status = answers.pop(0)
            await answer.json(body, status)
        else:
            await answer.status(503, "ServiceUnavailable", "connection refused")

    async with fake_api(handle) as api, client_of(api, tmp_path) as client:
        assert await read_unmet(client, "a", 8081) == {"policies": "refused: x"}
        assert await read_unmet(client, "a", 8081) == {}
        with pytest.raises(ClusterError, match="connection refused"):
            await read_unmet(client, "a", 8081)


@pytest.mark.parametrize("refused", [True, False])
async def test_a_replica_that_cannot_be_asked_is_an_error(tmp_path: Path, refused: bool) -> None:
    """A sum that leaves one out would be wrong; so would none, where none runs."""

    async def handle(request: Request, answer: Answer) -> None:
        if "proxy" in request.path:
            await answer.status(403, "Forbidden", "no pods/proxy for you")
        else:
            items = [pod("a")] if refused else []
            await answer.json({"metadata": {"resourceVersion": "1"}, "items": items})

    async with fake_api(handle) as api, client_of(api, tmp_path) as client:
        with pytest.raises(ClusterError, match="no pods/proxy" if refused else "no replica"):
            await read_by_replica(client)
