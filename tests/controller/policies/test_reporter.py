"""What keeps statuses ends nothing else, whatever goes wrong in it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.controller.policies.memory import Json, raw_policy
from tests.kube.fake_api import Answer, Request, client_of, fake_api, until
from webhook import names
from webhook.controller.policies import reporter as reporter_module
from webhook.controller.policies.reporter import FOLLOWS, PolicyReporter
from webhook.kube.webhook_replicas import Replica


async def refuses(_: Request, answer: Answer) -> None:
    """An API server that gives this account no right at all."""
    await answer.status(403, "Forbidden", "you may not")


async def unknown(_: Request, answer: Answer) -> None:
    """An API server that knows no policies."""
    await answer.status(404, "NotFound", "the server could not find the requested resource")


async def broken() -> Sequence[Replica]:
    """A bug."""
    raise RuntimeError("a bug")


@pytest.mark.parametrize(
    ("handler", "words"),
    [(refuses, "list and watch"), (unknown, "give it the definition")],
)
async def test_a_missing_object_is_reported_and_waited_for(
    handler: object, words: str, tmp_path: Path
) -> None:
    """In the readiness detail, with the cure."""
    async with fake_api(handler) as api, client_of(api, tmp_path) as client:  # type: ignore[arg-type]
        reporter = PolicyReporter(client, client, broken)
        assert reporter.reason == FOLLOWS
        task = asyncio.create_task(reporter.lead())
        await until(lambda: words in reporter.reason)
        assert "no object judged yet" in reporter.reason
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert reporter.reason == FOLLOWS


async def empty(request: Request, answer: Answer) -> None:
    """An API server that has nothing."""
    if request.is_watch:
        await answer.begin()
        await asyncio.sleep(3600)
    await answer.json({"metadata": {"resourceVersion": "5"}, "items": []})


async def test_a_bug_ends_neither_the_lead_nor_the_other_parts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is in the log, and what failed begins again later."""
    async with fake_api(empty) as api, client_of(api, tmp_path) as client:
        reporter = PolicyReporter(client, client, broken)
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
    monkeypatch.setattr(reporter_module, "LAST_WRITES", 60.0)
    world = World(raw_policy("p"))

    async with (
        fake_api(world.serve) as api,
        fake_api(world.metrics) as replica,
        client_of(api, tmp_path) as client,
    ):
        port = int(replica.url.rpartition(":")[2])

        async def replicas() -> Sequence[Replica]:
            return [Replica("w", "w", "127.0.0.1", port, leaving=False)]

        reporter = PolicyReporter(client, client, replicas, interval=3600.0)
        task = asyncio.create_task(reporter.lead())
        await until(lambda: "servedHashes" in world.status)
        world.decided += 7
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert world.status["podsDecided"] == 7


class World:
    """An API server that holds one policy, and a replica that has decided on pods by it."""

    def __init__(self, policy: Json) -> None:
        self.policy = policy
        self.decided = 100

    @property
    def status(self) -> Json:
        """The policy's, as it was written last."""
        found: Json = self.policy.get("status") or {}
        return found

    async def serve(self, request: Request, answer: Answer) -> None:
        """Lists, silent watches, and patches of the status."""
        if request.method == "PATCH":
            self.policy["status"] = json.loads(request.body)["status"]
            version = int(self.policy["metadata"]["resourceVersion"]) + 1
            self.policy["metadata"]["resourceVersion"] = str(version)
            await answer.json(self.policy)
        elif request.path.endswith(f"/{names.PLACEMENT_POLICIES}") and not request.is_watch:
            await answer.json({"metadata": {"resourceVersion": "5"}, "items": [self.policy]})
        else:
            await empty(request, answer)

    async def metrics(self, _: Request, answer: Answer) -> None:
        """What the replica says."""
        policy = self.policy["metadata"]["name"]
        text = (
            'fairlead_policy_set_info{hash="abc"} 1.0\nprocess_start_time_seconds 1.7e9\n'
            f'fairlead_decisions_total{{policy="{policy}",result="placed"}} {self.decided}\n'
        )
        await answer.raw(text.encode())
