"""What the controller may not read is not called fine; what it does not know is not reported."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from tests.controller.runs import refused
from webhook import metric_names, names, validating
from webhook.controller.interception import LONG_PERIOD, Interception
from webhook.errors import ClusterError
from webhook.interception import record_annotations, webhooks
from webhook.kube.client import Client

Json = dict[str, Any]
FIRST = "pods-0.fairlead.dev"


class Cluster:
    """All that is read, by the last part of its path; and the Events that are written."""

    def __init__(self, long_period: float = LONG_PERIOD) -> None:
        annotations = record_annotations(["pods-0", "namespaces"], ["policies"], [])
        metadata = {"uid": "u", "creationTimestamp": "2026-01-02T00:00:00Z"}
        self.objects: dict[str, Json] = {
            names.CONTROLLER: {"metadata": {**metadata, "annotations": annotations}},
            "mutatingwebhookconfigurations": {"webhooks": webhooks(ca_bundle=b"x")},
            "validatingwebhookconfigurations": {"webhooks": validating.webhooks(ca_bundle=b"x")},
        }
        self.lists: dict[str, list[Json]] = {"namespaces": [{"metadata": {"name": "a"}}]}
        self.fails: dict[str, ClusterError] = {}
        self.events: list[Json] = []
        self.registry = CollectorRegistry()
        client = cast("Client", self)
        self.interception = Interception(
            client, client, self.registry, namespace="x", period=0.01, long_period=long_period
        )

    def _check(self, path: str) -> None:
        for part, error in self.fails.items():
            if part in path:
                raise error

    async def find(self, path: str) -> Json | None:
        self._check(path)
        return next((each for part, each in self.objects.items() if part in path), None)

    async def list(
        self, path: str, keep: Callable[[Json], Any], *, query: Mapping[str, str] | None = None
    ) -> Any:
        assert query or path.endswith("/namespaces")
        self._check(path)
        found = self.lists.get(path.rpartition("/")[2], [])
        return SimpleNamespace(items=[keep(each) for each in found])

    async def create(self, path: str, body: Json) -> Json:
        assert path.endswith("/events")
        self.events.append(body)
        return body

    def look(self) -> dict[str, str]:
        asyncio.run(self.interception.look())
        return {each.entry: each.reason for each in self.interception.states if each.reason}

    def in_force(self) -> str | None:
        """The status of the condition of a policy for every pod."""
        sent = self.interception.sent
        return sent.condition(b'{"spec": {}}').status if sent else None

    def unplaced(self) -> float | None:
        return self.registry.get_sample_value(metric_names.UNPLACED_PODS)

    def gauge(self, entry: str, reason: str = "") -> float | None:
        labels = {"entry": entry, "reason": reason}
        return self.registry.get_sample_value(metric_names.INTERCEPTING, labels)


@pytest.mark.parametrize("status", [403, 405])
def test_what_may_not_be_read_is_not_in_force(status: int) -> None:
    """Each by itself; and no pods are counted without the entries that select them."""
    cluster = Cluster()
    assert cluster.look() == {}
    assert (cluster.gauge(FIRST), cluster.unplaced()) == (1, 0)
    cluster.fails = {"/mutatingwebhookconfigurations": refused(status, "Forbidden")}
    assert cluster.look() == {FIRST: "NotRead", "namespaces.fairlead.dev": "NotRead"}
    assert (cluster.gauge(FIRST), cluster.gauge(FIRST, "NotRead")) == (None, 0)
    assert cluster.unplaced() is None
    assert cluster.in_force() == "Unknown"
    cluster.fails = {"/validatingwebhookconfigurations": refused(status, "Forbidden")}
    assert cluster.look() == {"policies.fairlead.dev": "NotRead"}
    assert cluster.in_force() == "True"


def test_pods_that_are_younger_than_the_installation_are_counted() -> None:
    """Those that are older may have been there before; those with a stamp are placed."""
    cluster = Cluster()
    created = {"old": "2026-01-01T00:00:00Z", "of-the-gap": "2026-01-03T00:00:00Z"}
    cluster.lists["pods"] = [
        {"metadata": {"name": name, "namespace": "a", "creationTimestamp": at}}
        for name, at in created.items()
    ]
    cluster.look()
    assert cluster.unplaced() == 1


def test_an_event_is_written_once_for_each_change() -> None:
    """It has all that changed, and what is over."""
    cluster = Cluster()
    cluster.look()
    gone = cluster.objects.pop("mutatingwebhookconfigurations")
    cluster.look()
    cluster.look()
    cluster.objects["mutatingwebhookconfigurations"] = gone
    cluster.look()
    assert [each["reason"] for each in cluster.events] == ["NotIntercepting", "Intercepting"]
    assert all(FIRST in each["message"] for each in cluster.events)


def test_who_does_not_lead_reports_nothing() -> None:
    """An API server that does not answer changes nothing as long as the process leads."""
    cluster = Cluster()
    cluster.look()

    async def lead() -> float | None:
        cluster.fails = {"": refused(503, "Unavailable")}
        leading = asyncio.create_task(cluster.interception.lead())
        await asyncio.sleep(0.05)
        meanwhile = cluster.gauge(FIRST)
        leading.cancel()
        with suppress(asyncio.CancelledError):
            await leading
        return meanwhile

    assert asyncio.run(lead()) == 1
    assert cluster.gauge(FIRST) is None
    assert cluster.unplaced() is None
    assert cluster.in_force() is None


def test_what_was_not_looked_at_for_long_is_not_reported() -> None:
    """A right that was taken away leaves the leader its Lease, and nothing that it knows."""
    cluster = Cluster(long_period=0.2)

    async def lead() -> tuple[float | None, ...]:
        leading = asyncio.create_task(cluster.interception.lead())
        await asyncio.sleep(0.05)
        before = cluster.gauge(FIRST)
        cluster.fails = {"/deployments": refused(403, "Forbidden")}
        await asyncio.sleep(0.5)
        meanwhile = (cluster.gauge(FIRST), cluster.unplaced())
        cluster.fails = {}
        await asyncio.sleep(0.1)
        after = (cluster.gauge(FIRST), cluster.unplaced())
        leading.cancel()
        with suppress(asyncio.CancelledError):
            await leading
        return (before, *meanwhile, *after)

    assert asyncio.run(lead()) == (1, None, None, 1, 0)


def test_a_bug_is_logged_and_reported_as_unknown(caplog: pytest.LogCaptureFixture) -> None:
    """What leads beside it goes on, and it looks again."""
    cluster = Cluster()
    cluster.look()
    good = cluster.objects["mutatingwebhookconfigurations"]
    cluster.objects["mutatingwebhookconfigurations"] = {"webhooks": [{}]}

    async def lead() -> tuple[float | None, float | None]:
        leading = asyncio.create_task(cluster.interception.lead())
        await asyncio.sleep(0.05)
        meanwhile = cluster.gauge(FIRST)
        cluster.objects["mutatingwebhookconfigurations"] = good
        await asyncio.sleep(0.1)
        after = cluster.gauge(FIRST)
        leading.cancel()
        with suppress(asyncio.CancelledError):
            await leading
        return meanwhile, after

    assert asyncio.run(lead()) == (None, 1)
    assert "this is a bug" in caplog.text
