"""Events about Runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from tests.controller.runs import Api, refused, stored_run
from webhook.controller.announcer import (
    BURST,
    EVENT_INTERVAL_SECONDS,
    REPEATED_EVENT_SECONDS,
    Announcer,
)
from webhook.run.actions import Announcement

STARTED = Announcement("Normal", "Running", "3 of 3 replicas run")
DOWN = Announcement("Warning", "ReplicaDown", "mnist-worker-1 exited with 1")
WHEN = datetime(2026, 11, 21, 20, 15, tzinfo=UTC)


class Stage:
    """An announcer whose clock stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.api = Api()
        self.announcer = Announcer(self.api.writer, clock=lambda: self.now, now=lambda: WHEN)

    async def say(self, *announcements: Announcement, name: str = "mnist") -> None:
        """Announce, and wait until that is written."""
        self.announcer.announce(stored_run(name=name), announcements)
        await self.announcer.flushed()


@asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    """A stage whose announcer writes."""
    stage = Stage()
    writing = asyncio.create_task(stage.announcer.run())
    try:
        yield stage
    finally:
        writing.cancel()


async def test_an_event_is_about_the_run_as_kubectl_describe_looks_for_it() -> None:
    """By kind, namespace, name and uid of the object that it involves."""
    async with staged() as stage:
        await stage.say(STARTED)
        [event] = stage.api.bodies
        involved = event["involvedObject"]
        assert (involved["kind"], involved["namespace"]) == ("Run", "lab")
        assert (involved["name"], involved["uid"]) == ("mnist", "uid-mnist")
        assert (event["type"], event["reason"], event["count"]) == ("Normal", "Running", 1)
        assert event["message"] == "3 of 3 replicas run"
        assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-11-21T20:15:00Z"
        assert event["metadata"]["namespace"] == "lab"
        assert event["metadata"]["name"].startswith("mnist.")


async def test_the_same_again_is_counted() -> None:
    """Not written as another Event; after some minutes it is one."""
    async with staged() as stage:
        stage.api.answers["patch", "*"] = {}
        await stage.say(STARTED, DOWN)
        await stage.say(STARTED)
        await stage.say(STARTED)
        assert [verb for verb, _ in stage.api.calls] == ["create", "create", "patch", "patch"]
        assert stage.api.named("patch") == [stage.api.named("create")[0]] * 2
        assert [body["count"] for body in stage.api.bodies[2:]] == [2, 3]
        stage.now += REPEATED_EVENT_SECONDS
        await stage.say(STARTED)
        assert len(stage.api.named("create")) == 3


async def test_an_event_that_the_server_has_forgotten_is_written_again() -> None:
    """It keeps them for an hour, unless told otherwise."""
    async with staged() as stage:
        await stage.say(STARTED)
        await stage.say(STARTED)
        assert [verb for verb, _ in stage.api.calls] == ["create", "patch", "create"]
        assert stage.announcer.dropped == 0


async def test_one_run_cannot_flood_the_cluster_and_takes_nothing_from_others() -> None:
    """What it says too often is dropped and counted."""
    async with staged() as stage:
        many = [Announcement("Warning", "ReplicaDown", str(n)) for n in range(BURST + 5)]
        await stage.say(*many)
        assert len(stage.api.calls) == BURST
        assert stage.announcer.dropped == 5
        await stage.say(STARTED, name="other")
        assert len(stage.api.calls) == BURST + 1
        stage.now += EVENT_INTERVAL_SECONDS
        await stage.say(STARTED)
        assert len(stage.api.calls) == BURST + 2


async def test_an_event_that_cannot_be_written_is_lost_and_the_next_one_is_not() -> None:
    """The status says it all the same."""
    async with staged() as stage:
        stage.api.answers["create", "*"] = refused(500)
        await stage.say(STARTED)
        del stage.api.answers["create", "*"]
        await stage.say(DOWN)
        assert stage.announcer.dropped == 1
        assert stage.api.bodies[-1]["reason"] == "ReplicaDown"


async def test_a_long_message_is_cut() -> None:
    """The API server takes a kilobyte."""
    async with staged() as stage:
        await stage.say(Announcement("Warning", "ReplicaDown", "x" * 5000))
        assert len(stage.api.bodies[0]["message"]) == 1024


async def test_what_goes_on_stays_one_event() -> None:
    """The minutes count from the last time that it was counted, not from the first."""
    async with staged() as stage:
        stage.api.answers["patch", "*"] = {}
        for _ in range(4):
            await stage.say(DOWN)
            stage.now += REPEATED_EVENT_SECONDS - 1
        assert len(stage.api.named("create")) == 1
        assert stage.api.bodies[-1]["count"] == 4
