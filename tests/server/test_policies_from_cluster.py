"""The set of a cluster's objects follows them, once a burst, and survives what is no set."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from tests.eventually import eventually_async
from tests.kube.fake_api import until
from tests.wording import Wording
from webhook.errors import ClusterError, FairleadError
from webhook.metric_names import ENGINE_ERRORS
from webhook.server.reload import Reloader, ReloadState
from webhook.server.serving_policies import (
    BACK,
    BURST_MAX_SECONDS,
    BURST_QUIET_SECONDS,
    CHECK_LONGEST,
    CHECK_QUIET,
    RETRY,
    ChecksWhenQuiet,
    PoliciesFromCluster,
    Snapshot,
)


@dataclass
class Objects:
    """What a watch would tell, as a test wants it."""

    now: dict[str, bytes] = field(default_factory=dict)
    said: str = ""
    missing: str = ""
    away: bool = False
    unchecked: str = ""
    doubtful: str = ""
    listeners: list[Callable[[object], None]] = field(default_factory=list)
    listed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def synced(self) -> bool:
        return self.listed.is_set()

    async def wait_synced(self) -> None:
        await self.listed.wait()

    def subscribe(self, listener: Callable[[object], None]) -> None:
        self.listeners.append(listener)

    def objects(self) -> dict[str, bytes]:
        return dict(self.now)

    def trouble(self) -> str:
        return self.said

    async def undefined(self) -> str:
        if self.away:
            raise ClusterError("no answer")
        return self.missing

    async def doubt(self) -> str:
        return self.doubtful

    def change(self, **values: str | None) -> None:
        for name, value in values.items():
            self.now.pop(name, None)
            if value is not None:
                self.now[name] = value.encode()
            for listener in self.listeners:
                listener(None)


class Stage:
    """A keeper whose time passes when the test says so."""

    def __init__(self) -> None:
        self.watched = Objects()
        self.compiled: list[str] = []
        self.refusals: list[ReloadState] = []
        self.time = 0.0
        self.sleeps: list[float] = []
        self.asleep: asyncio.Future[None] | None = None
        snapshot = Snapshot()
        self.reloader: Reloader[str] = Reloader(
            "policies", snapshot.read, self._compile, on_refused=self.refusals.append
        )
        self.kept = PoliciesFromCluster(
            cast(Any, self.watched),
            snapshot,
            self.reloader,
            clock=lambda: self.time,
            sleep=self._sleep,
        )

    def _compile(self, objects: dict[str, bytes]) -> str:
        text = " ".join(f"{name}={value.decode()}" for name, value in sorted(objects.items()))
        if "bad" in text:
            raise FairleadError(f"placementpolicies/x: {text}")
        self.compiled.append(text)
        return text

    async def _sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.asleep = asyncio.get_running_loop().create_future()
        await self.asleep

    async def wake(self) -> None:
        """Have the keeper's sleep be over, as soon as it sleeps."""
        await until(lambda: self.asleep is not None and not self.asleep.done())
        assert self.asleep is not None
        self.time += self.sleeps[-1]
        self.asleep.set_result(None)

    async def goes_on_until(self, text: str) -> None:
        """Have every sleep be over until this is what serves."""

        async def so() -> bool:
            # It sleeps no more once it has what it waits for, and that is compiled on a thread.
            if self.asleep is not None and not self.asleep.done():
                await self.wake()
            return self.reloader.current == text

        await eventually_async(f"{text} serves", so, period=0.001)

    async def takes(self, text: str) -> None:
        await until(lambda: self.reloader.current == text)

    async def refuses(self, *facts: str) -> str:
        """Wait until the newest is refused for this; return the error."""
        await until(lambda: all(fact in self.reloader.state().error for fact in facts))
        return self.reloader.state().error


@asynccontextmanager
async def stage(**objects: str) -> AsyncIterator[Stage]:
    played = Stage()
    task = asyncio.create_task(played.kept.run())
    try:
        played.watched.change(**objects)
        played.watched.listed.set()
        await played.wake()
        await until(lambda: played.reloader.state().outcome == "loaded")
        yield played
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_before_the_first_list_the_process_is_not_ready_and_reports_the_cure() -> None:
    played = Stage()
    played.watched.said = "the cluster does not know them; give it the definition"
    condition = played.kept.condition()
    assert not condition.ready
    assert condition.reason == f"not listed yet; {played.watched.said}"


async def test_no_objects_are_a_set_too() -> None:
    async with stage() as played:
        assert played.compiled == [""]
        assert played.kept.condition().ready


async def test_a_burst_is_compiled_once() -> None:
    async with stage(a="1") as played:
        for value in range(3):
            played.watched.change(**{f"b{value}": "1"})
            await played.wake()
        await played.takes("a=1 b0=1 b1=1 b2=1")
        assert len(played.compiled) == 2
        assert played.sleeps[1:] == [BURST_QUIET_SECONDS] * 3


async def test_changes_without_an_end_are_not_waited_for_for_ever() -> None:
    async with stage(a="0") as played:
        value = 0
        while len(played.compiled) < 2:
            value += 1
            played.watched.change(a=str(value))
            if played.asleep is None or played.asleep.done():
                await asyncio.sleep(0)
            else:
                await played.wake()
        assert sum(played.sleeps[1:]) <= BURST_MAX_SECONDS + BURST_QUIET_SECONDS


async def test_a_set_that_does_not_compile_leaves_the_last_good_one() -> None:
    """Readiness stays, and says what is wrong; what is good again is taken."""
    async with stage(a="1") as played:
        played.watched.change(b="bad")
        await played.wake()
        await played.refuses("placementpolicies/x: a=1 b=bad")
        assert played.reloader.current == "a=1"
        condition = played.kept.condition()
        assert condition.ready
        assert "b=bad" in condition.reason
        assert len(played.refusals) == 1
        played.watched.change(b="2")
        await played.wake()
        await played.takes("a=1 b=2")
        assert "bad" not in played.kept.condition().reason


async def test_objects_that_are_deleted_are_gone() -> None:
    """While the cluster still knows such objects, that is what was meant."""
    async with stage(a="1", b="1") as played:
        played.watched.change(a=None, b=None)
        await played.wake()
        await played.takes("")


async def test_objects_that_go_with_their_definition_leave_the_last_good_set(
    wording: Wording,
) -> None:
    """Until the definition is back for a while, or what was there; it is asked again and again."""
    async with stage(a="1", b="1") as played:
        played.watched.missing = "placementpolicies.fairlead.dev"
        played.watched.change(a=None)
        await played.wake()
        wording(await played.refuses("1 objects vanished", "definition of placementpolicies"))
        assert played.reloader.current == "a=1 b=1"
        assert played.kept.condition().ready
        await until(lambda: played.sleeps[-1] == RETRY)
        await played.wake()
        await until(lambda: played.sleeps[-1] == BURST_QUIET_SECONDS)
        played.watched.missing = ""
        gone = played.time
        await played.goes_on_until("b=1")
        assert played.time - gone >= BACK - RETRY - BURST_MAX_SECONDS
        assert played.reloader.state().error == ""
        assert len(played.refusals) == 2


async def test_objects_that_may_lack_fields_leave_the_last_good_set() -> None:
    """And are looked at again, without another change."""
    async with stage(a="whole") as played:
        await played.takes("a=whole")
        played.watched.doubtful = "the definition lacks spec.rollout"
        played.watched.change(a="narrow")
        await played.wake()
        await played.refuses("lacks spec.rollout")
        assert (played.reloader.current, played.compiled) == ("a=whole", ["a=whole"])
        played.watched.doubtful = ""
        played.watched.now["a"] = b"other"
        await played.goes_on_until("a=other")


async def test_objects_that_come_back_end_the_doubt() -> None:
    """The same set is loaded once more, and nothing is wrong any more."""
    async with stage(a="1") as played:
        played.watched.missing = "placementpolicies.fairlead.dev"
        played.watched.change(a=None)
        await played.wake()
        await played.refuses("vanished")
        played.watched.change(a="1")
        for _ in range(2):
            await played.wake()
        await until(lambda: played.reloader.state().error == "")
        assert played.reloader.current == "a=1"


async def test_of_a_definition_that_is_back_the_objects_are_waited_for(wording: Wording) -> None:
    """They come one after the other: no pod is placed by the first few of them alone."""
    async with stage(a="1", b="1") as played:
        played.watched.missing = "placementpolicies.fairlead.dev"
        played.watched.change(a=None, b=None)
        await played.wake()
        await played.refuses("vanished")
        played.watched.missing = ""
        await played.wake()
        await played.wake()
        wording(await played.refuses("2 objects vanished", "it is back"))
        played.watched.change(a="2")
        await played.wake()
        await played.wake()
        await played.refuses("1 objects vanished", "it is back")
        assert played.reloader.current == "a=1 b=1"
        played.watched.change(b="2")
        await played.goes_on_until("a=2 b=2")
        assert played.compiled == ["a=1 b=1", "a=2 b=2"]


async def test_an_api_server_that_cannot_say_why_objects_vanished_is_asked_again(
    wording: Wording,
) -> None:
    async with stage(a="1", b="1") as played:
        played.watched.away = True
        played.watched.change(a=None)
        await played.wake()
        wording(await played.refuses("vanished", "no answer"))
        assert played.reloader.current == "a=1 b=1"
        played.watched.away = False
        for _ in range(2):
            await played.wake()
        await played.takes("b=1")


async def test_a_watch_error_is_reported_with_the_set_in_force() -> None:
    async with stage(a="1") as played:
        played.watched.said = "no connection"
        condition = played.kept.condition()
        assert condition.ready
        assert condition.reason.endswith("; no connection")


async def test_a_set_serves_before_it_is_checked_and_a_burst_of_sets_is_checked_once() -> None:
    """In a burst without an end now and then. A check that fails is counted, and not the last."""
    unchecked, counted, checked, times = asyncio.Event(), Counter[str](), [], [0.0]

    async def check() -> None:
        checked.append(times[-1])
        if len(checked) < 3:
            unchecked.set()
        if len(checked) == 1:
            raise ValueError("a bug")

    async def sleep(seconds: float) -> None:
        times.append(times[-1] + seconds)
        if len(times) < 25:
            unchecked.set()
        await asyncio.sleep(0)

    observer = cast(Any, SimpleNamespace(count=lambda name: counted.update([name])))
    checks = ChecksWhenQuiet(unchecked, check, observer, clock=lambda: times[-1], sleep=sleep)
    task = asyncio.create_task(checks.run())
    unchecked.set()
    await until(lambda: len(checked) == 3)
    task.cancel()
    assert checked == [CHECK_LONGEST, 2 * CHECK_LONGEST, times[-1]]
    assert times[-1] - times[-2] == CHECK_QUIET
    assert counted == {ENGINE_ERRORS: 1}
