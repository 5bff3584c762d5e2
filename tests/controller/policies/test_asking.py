"""Replicas are asked over plain HTTP; one that does not answer keeps nobody waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from tests.kube.fake_api import Answer, Request, fake_api
from webhook.controller.policies.reporter import ReplicaReports, poll_replicas
from webhook.kube.webhook_replicas import Replica

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
