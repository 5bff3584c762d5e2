"""A reflector on a collection whose lists and watches go as a test has written them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.kube.fake_api import THINGS, Answer, FakeApi, Request, client_of, fake_api
from webhook.backoff import WATCH_DELAYS, Delays
from webhook.kube.cache import Cache
from webhook.kube.reflector import Reflector


def thing(name: str, version: int, value: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}, "value": value}


def listing(version: int, *things: dict[str, Any]) -> Callable[[Answer], Awaitable[None]]:
    async def step(answer: Answer) -> None:
        await answer.json({"metadata": {"resourceVersion": str(version)}, "items": list(things)})

    return step


def events(
    *seen: tuple[str, dict[str, Any]], ends: bool = True
) -> Callable[[Answer], Awaitable[None]]:
    """A watch with these events, which the server then ends well, or leaves open."""

    async def step(answer: Answer) -> None:
        await answer.begin()
        for kind, item in seen:
            await answer.event(kind, item)
        if not ends:
            await asyncio.sleep(1000)
        await answer.end()

    return step


def refused(code: int, reason: str = "", **headers: str) -> Callable[[Answer], Awaitable[None]]:
    """An answer that is no list and no watch."""

    async def step(answer: Answer) -> None:
        await answer.status(code, reason, "as the test wants it", **headers)

    return step


@dataclass
class Stage:
    """What a test looks at. When the last written step is done, the server leaves watches open."""

    api: FakeApi
    cache: Cache[str]
    reflector: Reflector[str]
    running: asyncio.Task[None] | None = None
    pauses: list[float] = field(default_factory=list)
    now: float = 1000.0

    @property
    def watches(self) -> list[Request]:
        return [request for request in self.api.requests if request.is_watch]

    @property
    def lists(self) -> list[Request]:
        return [request for request in self.api.requests if not request.is_watch]

    def values(self) -> dict[str, str]:
        return dict(self.cache.items())


@asynccontextmanager
async def stage(
    folder: Path,
    *,
    lists: list[Callable[[Answer], Awaitable[None]]],
    watches: list[Callable[[Answer], Awaitable[None]]],
    silence: float = 30.0,
    delays: Delays = WATCH_DELAYS,
    pauses: int = 100,
    metadata_only: bool = False,
    keep: Callable[[dict[str, Any]], str] = lambda seen: str(seen["value"]),
) -> AsyncIterator[Stage]:
    """Run a reflector against the script; after `pauses` pauses it sleeps for good."""
    first, *_ = lists

    async def handle(request: Request, answer: Answer) -> None:
        steps = watches if request.is_watch else lists
        if steps:
            await steps.pop(0)(answer)
        elif request.is_watch:
            await events(ends=False)(answer)
        else:
            await first(answer)

    async with fake_api(handle) as api, client_of(api, folder) as client:
        cache: Cache[str] = Cache(keep, clock=lambda: played.now)

        async def sleep(seconds: float) -> None:
            played.pauses.append(seconds)
            await asyncio.sleep(0 if len(played.pauses) < pauses else 1000)

        reflector = Reflector(
            client,
            THINGS,
            cache,
            metadata_only=metadata_only,
            silence=silence,
            delays=delays,
            clock=lambda: played.now,
            sleep=sleep,
            random=Random(1),
        )
        played = Stage(api, cache, reflector)
        played.running = asyncio.create_task(reflector.keep_current())
        try:
            yield played
        finally:
            played.running.cancel()
            await asyncio.wait([played.running])
