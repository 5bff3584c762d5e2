"""What keeps statuses ends nothing else, whatever goes wrong in it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kube.fake_api import Answer, Request, client_of, fake_api, until
from webhook.controller.policies.reporter import FOLLOWS, PolicyReporter
from webhook.kube.replicas import Replica


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
    [(refuses, "give this account list and watch"), (unknown, "give it the definition")],
)
def test_what_is_missing_is_said_and_waited_for(
    handler: object, words: str, tmp_path: Path
) -> None:
    """In the readiness detail, with the cure."""

    async def work() -> None:
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

    asyncio.run(work())


async def empty(request: Request, answer: Answer) -> None:
    """An API server that has nothing."""
    if request.is_watch:
        await answer.begin()
        await asyncio.sleep(3600)
    await answer.json({"metadata": {"resourceVersion": "5"}, "items": []})


def test_a_bug_ends_neither_the_lead_nor_the_other_parts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is in the log, and what failed begins again later."""

    async def work() -> None:
        async with fake_api(empty) as api, client_of(api, tmp_path) as client:
            reporter = PolicyReporter(client, client, broken)
            task = asyncio.create_task(reporter.lead())
            with caplog.at_level(logging.ERROR):
                await until(lambda: "this is a bug" in caplog.text)
            assert not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(work())
