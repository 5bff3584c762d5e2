"""The keeper: what it does in turn, when it rests, and what it tells of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import NoReturn

import pytest

from tests.controller.certificates.memory import (
    AUTHORITY,
    CONFIGURATION,
    INSTALLATION,
    SERVING,
    SLICES,
    TERMS,
    failing,
    refused,
    stage,
    until_waiting,
)
from tests.kube import virtual_time
from tests.wording import Wording
from webhook import names
from webhook.controller.certificates.keeper import LONGEST_REST
from webhook.controller.certificates.secrets import asks, data_of


async def ended(task: asyncio.Task[None]) -> None:
    """Cancel it, and see that it ends so."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_it_makes_everything_by_single_writes_and_then_waits() -> None:
    """One write a look; the last look finds nothing to do."""
    begun = stage()

    async def work() -> None:
        keeper = begun.keeper()
        writes = []
        for _ in range(5):
            rest = await keeper.look()
            writes.append(len(begun.memory.writes))
        assert writes == [1, 2, 3, 4, 4]
        assert rest.wakes
        assert keeper.reason.startswith("steady: ")
        assert ", until 2026-03-2" in keeper.reason

    virtual_time.run(work())
    assert begun.memory.writes == [
        ("create", AUTHORITY),
        ("patch", CONFIGURATION),
        ("replace", AUTHORITY),
        ("create", SERVING),
    ]


def test_a_request_during_a_rotation_is_answered_by_the_next_one() -> None:
    """The authority that is staged just now may be the one whose key has leaked."""
    begun = stage()
    signed = []

    def ask() -> None:
        begun.memory.objects[AUTHORITY]["metadata"]["annotations"] = {names.ROTATE: "now"}

    async def work() -> None:
        keeper = begun.keeper()
        await until_waiting(keeper)
        ask()
        for _ in range(40):
            rest = await keeper.look()
            begun.passes(rest.seconds)
            secret = begun.memory.objects[AUTHORITY]
            certificate = data_of(secret).get("tls.crt")
            if certificate not in signed:
                signed.append(certificate)
            if keeper.reason.startswith("published: every client") and len(signed) == 1:
                ask()
        assert keeper.reason.startswith("steady: ")
        assert not asks(secret)

    virtual_time.run(work())
    assert len(signed) == 3


def test_the_authority_is_read_last() -> None:
    """Whatever is published or issued by it is then no older than what it is written over."""
    begun = stage()
    virtual_time.run(begun.keeper().look())
    read = [path for verb, path in begun.memory.calls if verb in ("get", "list")]
    assert len(read) == 5
    assert set(read[:3]) == {*(place.path for place in INSTALLATION.places), SLICES}
    assert read[3:] == [SERVING, AUTHORITY]


def test_it_rests_a_minute_at_most() -> None:
    """What is due goes by the wall clock, which may be set, and no timer follows it."""
    begun = stage()

    async def work() -> None:
        keeper = begun.keeper()
        await until_waiting(keeper)
        assert (await keeper.look()).seconds == LONGEST_REST
        begun.now += timedelta(days=400)
        assert (await keeper.look()).seconds == 0

    virtual_time.run(work())


def test_what_it_waits_for_is_logged_once(
    caplog: pytest.LogCaptureFixture, wording: Wording
) -> None:
    """However often it looks."""
    begun = stage()

    async def work() -> None:
        keeper = begun.keeper()
        for _ in range(20):
            await keeper.look()

    with caplog.at_level("INFO"):
        virtual_time.run(work())
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 5
    assert said[0].startswith("certificates: authority written: ")
    assert [each.startswith("certificates: steady: ") for each in said].count(True) == 1
    wording("\n".join(said))


def test_a_change_ends_the_rest() -> None:
    """Told by the watch, a moment later; without one the next look is a minute away."""
    begun = stage()
    change: list[Callable[[], None]] = []

    async def watch(changed: Callable[[], None]) -> NoReturn:
        change.append(changed)
        await asyncio.sleep(1e9)
        raise AssertionError

    async def work() -> None:
        keeper = begun.keeper(watch=watch)
        leading = asyncio.create_task(keeper.lead())
        await asyncio.sleep(10)
        looks = len(begun.memory.calls)
        await asyncio.sleep(10)
        assert len(begun.memory.calls) == looks
        change[0]()
        await asyncio.sleep(1)
        assert len(begun.memory.calls) > looks
        looks = len(begun.memory.calls)
        await asyncio.sleep(LONGEST_REST)
        assert len(begun.memory.calls) > looks
        await ended(leading)

    virtual_time.run(work())


def test_without_its_watch_it_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """A bug there is logged; it looks once a minute."""
    begun = stage()

    async def watch(_changed: Callable[[], None]) -> NoReturn:
        raise KeyError("a bug")

    async def work() -> None:
        keeper = begun.keeper(watch=watch)
        leading = asyncio.create_task(keeper.lead())
        await asyncio.sleep(10)
        assert keeper.reason.startswith("steady")
        looks = len(begun.memory.calls)
        await asyncio.sleep(LONGEST_REST)
        assert len(begun.memory.calls) > looks
        await ended(leading)

    virtual_time.run(work())
    assert "not watched any more" in caplog.text


def test_it_is_ready_unless_it_leads_and_has_never_been_through() -> None:
    """A follower is; a leader without rights is not; a server that is away changes nothing."""
    begun = stage()
    ready = []

    async def work() -> None:
        keeper = begun.keeper()
        ready.append(keeper.ready)
        assert keeper.reason == "kept by whoever leads"
        failing(begun.memory, "get", AUTHORITY, refused(403))
        leading = asyncio.create_task(keeper.lead())
        await asyncio.sleep(5)
        ready.append(keeper.ready)
        failing(begun.memory, "get", AUTHORITY, None)
        await asyncio.sleep(120)
        ready.append(keeper.ready)
        failing(begun.memory, "get", AUTHORITY, refused(None, "nobody answers"))
        await asyncio.sleep(120)
        ready.append(keeper.ready)
        assert "nobody answers" in keeper.reason
        await ended(leading)
        assert keeper.reason == "kept by whoever leads"

    virtual_time.run(work())
    assert ready == [True, False, True, True]


def test_who_does_not_lead_tells_no_state() -> None:
    """Only the leader knows it: two that tell different things would be an alert for nothing."""
    begun = stage()

    async def work() -> None:
        keeper = begun.keeper()
        leading = asyncio.create_task(keeper.lead())
        await asyncio.sleep(5)
        assert begun.count("phase", phase="steady") == 1
        assert begun.count("expiry_timestamp_seconds", certificate="leaf")
        await ended(leading)
        assert begun.count("phase", phase="steady") is None
        assert begun.count("expiry_timestamp_seconds", certificate="leaf") is None
        assert begun.count("writes_total", object="authority") == 2

    virtual_time.run(work())


def test_a_leader_whose_clock_is_ahead_lets_clients_have_their_time() -> None:
    """It counts by its own steady clock, from when it saw what the leader before it has written."""
    begun = stage()

    async def work() -> None:
        first = begun.keeper()
        await until_waiting(first)
        begun.memory.objects[AUTHORITY]["metadata"]["annotations"] = {names.ROTATE: "now"}
        await until_waiting(first)
        assert first.reason.startswith("published: every client")
        begun.now += timedelta(minutes=10)
        second = begun.keeper()
        rest = await second.look()
        assert second.reason.startswith("published: every client")
        assert rest.seconds == TERMS.settle.total_seconds()
        begun.passes(rest.seconds - 1)
        assert (await second.look()).wakes
        begun.passes(1)
        assert not (await second.look()).wakes

    virtual_time.run(work())
