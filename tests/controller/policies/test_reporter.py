"""What keeps statuses ends nothing else, whatever goes wrong in it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Gauge

from tests.controller.policies.memory import Json, raw_policy
from tests.kube.fake_api import Answer, Request, client_of, fake_api, until
from webhook import names
from webhook.cluster_objects.webhook_replicas import Replica
from webhook.controller.controller_metrics import ControllerMetrics
from webhook.controller.policies import reporter as reporter_module
from webhook.controller.policies.reporter import (
    FOLLOWS,
    PolicyReporter,
    ReplicaReports,
    poll_replicas,
)
from webhook.judgement.reporting.statuses import CONDITIONS
from webhook.kube.watches import Watches
from webhook.policy.status_model import CALLED


async def refuses(_: Request, answer: Answer) -> None:
    """An API server that gives this account no right at all."""
    await answer.status(403, "Forbidden", "you may not")


async def unknown(_: Request, answer: Answer) -> None:
    """An API server that knows no policies."""
    await answer.status(404, "NotFound", "the server could not find the requested resource")


@asynccontextmanager
async def watched(
    handler: Callable[[Request, Answer], Awaitable[None]], folder: Path
) -> AsyncIterator[Watches]:
    """The watches of a process beside this API server."""
    async with (
        fake_api(handler) as api,
        client_of(api, folder) as client,
        Watches(client) as watches,
    ):
        yield watches


async def broken() -> Sequence[Replica]:
    raise RuntimeError("a bug")


@pytest.mark.parametrize(
    ("handler", "words"),
    [(refuses, "list and watch"), (unknown, "give it the definition")],
)
async def test_a_missing_object_is_reported_and_waited_for(
    handler: Callable[[Request, Answer], Awaitable[None]], words: str, tmp_path: Path
) -> None:
    """In the readiness detail, with the cure."""
    async with watched(handler, tmp_path) as watches:
        reporter = PolicyReporter(watches, watches.client, broken, gauge())
        assert reporter.reason == FOLLOWS
        task = asyncio.create_task(reporter.lead())
        await until(lambda: words in reporter.reason)
        assert "no object judged yet" in reporter.reason
        assert len(watches) > 0
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert reporter.reason == FOLLOWS
        # A process that follows watches nothing for it.
        assert len(watches) == 0


async def empty(request: Request, answer: Answer) -> None:
    if request.is_watch:
        await answer.begin()
        await asyncio.sleep(3600)
    await answer.json({"metadata": {"resourceVersion": "5"}, "items": []})


async def test_a_bug_ends_neither_the_lead_nor_the_other_parts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is in the log, and what failed begins again later."""
    async with watched(empty, tmp_path) as watches:
        reporter = PolicyReporter(watches, watches.client, broken, gauge())
        task = asyncio.create_task(reporter.lead())
        with caplog.at_level(logging.ERROR):
            await until(lambda: "this is a bug" in caplog.text)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_leader_that_stops_writes_its_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever leads next counts on from what is written."""
    monkeypatch.setattr(reporter_module, "LAST_WRITES_SECONDS", 60.0)
    world, counts = World(raw_policy("p")), gauge()

    async with (
        fake_api(world.serve) as api,
        fake_api(world.metrics) as replica,
        client_of(api, tmp_path) as client,
        Watches(client) as watches,
    ):
        port = int(replica.url.rpartition(":")[2])

        async def replicas() -> Sequence[Replica]:
            return [Replica("w", "w", "127.0.0.1", port, leaving=False)]

        reporter = PolicyReporter(watches, client, replicas, counts, interval=3600.0)
        task = asyncio.create_task(reporter.lead())
        await until(lambda: "servedHashes" in world.status)
        world.decided += 7
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert world.status["podsDecided"] == 7


async def test_conditions_are_counted_as_objects_change_and_by_the_leader_only(
    tmp_path: Path,
) -> None:
    """By kind, type and status; not what others wrote into a status."""
    world, counts = (
        World(raw_policy("p", status=status_of(Accepted="False", Theirs="True"))),
        gauge(),
    )
    async with (
        fake_api(world.serve) as api,
        client_of(api, tmp_path) as client,
        Watches(client) as watches,
    ):

        async def replicas() -> Sequence[Replica]:
            return []

        task = asyncio.create_task(PolicyReporter(watches, client, replicas, counts).lead())
        await until(lambda: numbers(counts).get(("policy", "Accepted", "True")) == 1)
        found = numbers(counts)
        assert found["policy", "Accepted", "False"] == 0
        assert found["policy", "Served", "False"] == 1
        assert not any(condition == "Theirs" for _, condition, _ in found)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    # There is a series of each that can be False, at all times.
    assert numbers(counts) == {
        (kind, condition, "False"): 0 for kind in CALLED.values() for condition in CONDITIONS
    }


def gauge() -> Gauge:
    """The controller's, in a registry of its own."""
    return ControllerMetrics(CollectorRegistry()).policies


def numbers(counts: Gauge) -> dict[tuple[str, str, str], float]:
    """Its values by kind, condition and status."""
    (family,) = counts.collect()
    labels = ("kind", "condition", "status")
    return {
        (each.labels["kind"], each.labels["condition"], each.labels["status"]): each.value
        for each in family.samples
        if {*labels} <= each.labels.keys()
    }


def status_of(**conditions: str) -> Json:
    """A status with these conditions."""
    at = {"lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "X"}
    return {"conditions": [{"type": kind, "status": it, **at} for kind, it in conditions.items()]}


class World:
    """An API server that holds one policy, and a replica that has decided on pods by it."""

    def __init__(self, policy: Json) -> None:
        self.policy = policy
        self.decided = 100

    @property
    def status(self) -> Json:
        found: Json = self.policy.get("status") or {}
        return found

    async def serve(self, request: Request, answer: Answer) -> None:
        """Lists, silent watches, and patches of the status."""
        if request.method == "PATCH":
            assert "json-patch" in request.headers["content-type"]
            self.policy["status"] = json.loads(request.body)[-1]["value"]
            version = int(self.policy["metadata"]["resourceVersion"]) + 1
            self.policy["metadata"]["resourceVersion"] = str(version)
            await answer.json(self.policy)
        elif "customresourcedefinitions" in request.path:
            await unknown(request, answer)
        elif request.path.endswith(f"/{names.PLACEMENT_POLICIES}") and not request.is_watch:
            await answer.json({"metadata": {"resourceVersion": "5"}, "items": [self.policy]})
        else:
            await empty(request, answer)

    async def metrics(self, _: Request, answer: Answer) -> None:
        policy = self.policy["metadata"]["name"]
        text = (
            'fairlead_policy_set_info{hash="abc"} 1.0\nprocess_start_time_seconds 1.7e9\n'
            f'fairlead_decisions_total{{policy="{policy}",result="placed"}} {self.decided}\n'
        )
        await answer.raw(text.encode())


TEXT = b"""# HELP fairlead_policy_set_info The policy set in force.
fairlead_policy_set_info{hash="abc"} 1.0
process_start_time_seconds 1.7e9
fairlead_decisions_total{policy="p",result="placed"} 3.0
"""


async def good(request: Request, answer: Answer) -> None:
    """Metrics, as the webhook has them."""
    assert (request.method, request.path) == ("GET", "/metrics")
    await answer.raw(TEXT)


async def other(_: Request, answer: Answer) -> None:
    """Something else that listens there."""
    await answer.raw(b'fairlead_decisions_total{policy="p"} many\n')


async def failing(_: Request, answer: Answer) -> None:
    """A replica in trouble."""
    await answer.raw(TEXT, 500)


async def elsewhere(_: Request, answer: Answer) -> None:
    """It is not followed, for it could lead anywhere."""
    await answer.raw(b"", 302, Location="http://example.invalid/metrics")


async def silent(_: Request, answer: Answer) -> None:
    """It begins, and never ends."""
    await answer.begin()
    await asyncio.sleep(3600)


def look(*handlers: object) -> ReplicaReports:
    """Ask one replica for each handler, and one more that is not there."""

    async def work() -> ReplicaReports:
        async with AsyncExitStack() as stack:
            replicas = [Replica("gone", "gone", "127.0.0.1", 1, leaving=False)]
            for handler in handlers:
                api = await stack.enter_async_context(fake_api(handler))  # type: ignore[arg-type]
                name = handler.__name__  # type: ignore[attr-defined]
                port = int(api.url.rpartition(":")[2])
                replicas.append(Replica(name, name, "127.0.0.1", port, leaving=False))

            async def found() -> Sequence[Replica]:
                return replicas

            return await poll_replicas(found, patience=3.0)

    return asyncio.run(work())


def test_each_replica_that_answers_is_reported() -> None:
    seen = look(good, other, failing, elsewhere, silent)
    assert [each.key for each in seen.replicas] == [
        "gone",
        "good",
        "other",
        "failing",
        "elsewhere",
        "silent",
    ]
    assert list(seen.reports) == ["good"]
    report = seen.reports["good"]
    assert (report.hash, report.counts["p"].decided) == ("abc", 3)
