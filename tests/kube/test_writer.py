"""Writes: in turn, only while we may, and again only where nothing was done."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import pytest

from tests.kube.fake_api import THING, THINGS, Answer, Request, client_of, fake_api, until
from webhook.errors import ClusterError, NotLeading
from webhook.kube.rate_limit import TokenBucket
from webhook.kube.throttling import TRIES
from webhook.kube.writer import Writer


class Pauses:
    """A clock that is moved by sleeping alone."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def bucket(self) -> TokenBucket:
        return TokenBucket(clock=lambda: self.now, sleep=self.sleep)


async def fine(_: Request, answer: Answer) -> None:
    await answer.json({"kind": "Thing"})


def scripted(codes: Iterable[int], **headers: str) -> Callable[[Request, Answer], Awaitable[None]]:
    """Answers with these statuses in turn, then 200."""
    steps = iter(codes)

    async def handle(request: Request, answer: Answer) -> None:
        code = next(steps, 200)
        if code == 200:
            await fine(request, answer)
        else:
            await answer.status(code, "", "as the test wants it", **headers)

    return handle


async def test_each_verb_reaches_the_server_as_the_client_s_does(tmp_path: Path) -> None:
    async with fake_api(fine) as api, client_of(api, tmp_path) as client:
        writer = Writer(client, TokenBucket())
        await writer.create(THINGS, {"x": 1}, query={"fieldManager": "f"})
        await writer.replace(THING, {"x": 2}, query={"fieldManager": "f"})
        await writer.patch(THING, {"x": 3}, "merge", query={"fieldManager": "f"})
        await writer.delete(THING, {"x": 4}, query={"fieldManager": "f"})
        result = [
            (seen.method, seen.path, json.loads(seen.body), seen.query.get("fieldManager"))
            for seen in api.requests
        ]
    assert result == [
        ("POST", THINGS, {"x": 1}, "f"),
        ("PUT", THING, {"x": 2}, "f"),
        ("PATCH", THING, {"x": 3}, "f"),
        ("DELETE", THING, {"x": 4}, "f"),
    ]


async def test_a_call_that_is_throttled_is_made_again_when_the_server_has_had_its_quiet(
    tmp_path: Path,
) -> None:
    """429 with Retry-After: nothing was done then."""
    handler = scripted([429, 429], Retry_After="7")
    async with fake_api(handler) as api, client_of(api, tmp_path) as client:
        time = Pauses()
        bucket = time.bucket()
        writer = Writer(client, bucket)
        assert await writer.create(THINGS, {}) == {"kind": "Thing"}
        assert len(api.requests) == 3
        assert [round(seconds) for seconds in time.slept] == [7, 7]
        assert (writer.throttled, bucket.window.inside) == (2, 0)
        assert bucket.pace.rate == 300.0 / 4 + 1


async def test_a_server_that_throttles_for_ever_is_given_up(tmp_path: Path) -> None:
    """After ten tries the caller hears of it."""
    handler = scripted([429] * 100, Retry_After="1")
    async with fake_api(handler) as api, client_of(api, tmp_path) as client:
        with pytest.raises(ClusterError) as caught:
            await Writer(client, Pauses().bucket()).create(THINGS, {})
        assert caught.value.status == 429
        assert len(api.requests) == TRIES


@pytest.mark.parametrize(
    ("code", "headers"),
    [
        (429, {}),
        (400, {}),
        (403, {}),
        (409, {}),
        (500, {"Retry_After": "1"}),
        (503, {"Retry_After": "1"}),
        (504, {}),
    ],
)
async def test_nothing_else_is_made_again(
    tmp_path: Path, code: int, headers: dict[str, str]
) -> None:
    """It may have been done, or will not be done a second time either."""
    handler = scripted([code], **headers)
    async with fake_api(handler) as api, client_of(api, tmp_path) as client:
        bucket = Pauses().bucket()
        with pytest.raises(ClusterError) as caught:
            await Writer(client, bucket).create(THINGS, {})
        assert caught.value.status == code
        assert len(api.requests) == 1
        assert bucket.window.inside == 0


@pytest.mark.parametrize(
    ("code", "rate"), [(429, 150.0), (502, 150.0), (503, 150.0), (504, 150.0), (403, 300.0)]
)
async def test_overload_slows_all_down_and_a_refusal_of_one_does_not(
    tmp_path: Path, code: int, rate: float
) -> None:
    """A quota that is used up in one namespace is no concern of the others."""
    async with fake_api(scripted([code])) as api, client_of(api, tmp_path) as client:
        bucket = Pauses().bucket()
        with pytest.raises(ClusterError):
            await Writer(client, bucket).create(THINGS, {})
        assert bucket.pace.rate == rate


async def test_a_server_that_does_not_answer_slows_all_down(tmp_path: Path) -> None:
    """It is away, or far too busy."""

    async def stall(_: Request, __: Answer) -> None:
        await asyncio.sleep(1000)

    async with fake_api(stall) as api, client_of(api, tmp_path, timeout=0.05) as client:
        bucket = Pauses().bucket()
        with pytest.raises(ClusterError, match="did not answer"):
            await Writer(client, bucket).create(THINGS, {})
        assert bucket.pace.rate == 150.0


async def test_a_retry_after_cannot_stop_the_writer_for_hours(tmp_path: Path) -> None:
    """A proxy's maintenance page may say so; five minutes are kept."""
    handler = scripted([429], Retry_After="86400")
    async with fake_api(handler) as api, client_of(api, tmp_path) as client:
        time = Pauses()
        await Writer(client, time.bucket()).create(THINGS, {})
        assert [round(seconds) for seconds in time.slept] == [300]


async def test_without_the_lease_nothing_is_sent(tmp_path: Path) -> None:
    """It is asked when the call's turn has come, and before each try."""
    may = iter([True, False])

    handler = scripted([429], Retry_After="1")
    async with fake_api(handler) as api, client_of(api, tmp_path) as client:
        bucket = Pauses().bucket()
        writer = Writer(client, bucket, may_write=lambda: next(may))
        with pytest.raises(NotLeading):
            await writer.create(THINGS, {})
        assert len(api.requests) == 1
        assert bucket.window.inside == 0


async def test_a_call_that_is_cancelled_gives_its_place_back(tmp_path: Path) -> None:
    """Whether anything was done then nobody knows."""

    async def stall(_: Request, __: Answer) -> None:
        await asyncio.sleep(1000)

    async with fake_api(stall) as api, client_of(api, tmp_path) as client:
        bucket = TokenBucket()
        task = asyncio.create_task(Writer(client, bucket).create(THINGS, {}))
        await until(lambda: len(api.requests) == 1)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert (bucket.window.inside, bucket.pace.rate) == (0, 300.0)
