"""The pods in which the webhook runs are found, and nothing else is asked."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from webhook.kube.client import Client, Listing
from webhook.kube.webhook_replicas import Replica, running

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
    """The replicas among these pods."""

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
