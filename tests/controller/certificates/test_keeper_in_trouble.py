"""The keeper when things go wrong: it never gives up, and never makes it worse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from certs.authority import new_authority
from certs.issue import issue_server
from certs.kept import Authority, Serving
from certs.rotation import KeepAuthority, KeepServing, Observed, Publish
from tests.controller.certificates.memory import (
    AUTHORITY,
    CONFIGURATION,
    SERVING,
    START,
    TERMS,
    Stage,
    entry,
    failing,
    refused,
    stage,
    until_waiting,
)
from tests.kube import virtual_time
from webhook.controller.certificates.keeper import (
    FORGOTTEN,
    FREE,
    LONGEST_REST,
    Keeper,
    Quarrel,
    cause,
)
from webhook.errors import ClusterError, NotLeading

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (403, "forbidden"),
        (401, "forbidden"),
        (None, "unreachable"),
        (429, "unreachable"),
        (500, "unreachable"),
        (503, "unreachable"),
        (422, "refused"),
        (404, "refused"),
    ],
)
async def test_errors_are_counted_reported_and_retried_with_backoff(
    status: int | None, reason: str
) -> None:
    """The API server's own words are in the reason of /readyz; then it goes on."""
    begun = stage()
    failing(begun.memory, "create", AUTHORITY, refused(status, "its own words"))

    keeper = begun.keeper()
    rests = [await keeper.take_step() for _ in range(8)]
    assert not any(rest.wakes for rest in rests)
    assert 0.3 < rests[0].seconds < 1.3
    assert 15 <= rests[-1].seconds <= 45
    assert "its own words" in keeper.reason
    assert begun.count("errors_total", reason=reason) == 8
    failing(begun.memory, "create", AUTHORITY, None)
    await until_waiting(keeper)
    assert "its own words" not in keeper.reason


def test_the_server_is_left_alone_for_as_long_as_it_asks() -> None:
    """Up to a minute: a proxy's page may ask for hours."""
    begun = stage()
    for asked, rested in ((7.0, 7.0), (9000.0, LONGEST_REST)):
        error = ClusterError("busy", status=503, retry_after=asked)
        failing(begun.memory, "get", SERVING, error)
        assert virtual_time.run(begun.keeper().take_step()).seconds == rested


async def test_a_conflict_is_not_an_error() -> None:
    """Somebody was quicker: soon it looks again, and nobody is told."""
    begun = stage()
    failing(begun.memory, "create", AUTHORITY, refused(409))

    keeper = begun.keeper()
    rest = await keeper.take_step()
    assert rest.seconds < 0.2
    assert begun.count("errors_total", reason="conflict") == 1
    assert ";" not in keeper.reason
    # Yet not in a tight loop, should it never end.
    for _ in range(12):
        rest = await keeper.take_step()
    assert rest.seconds > 10


def test_what_changes_between_look_and_write_is_left_as_it_is() -> None:
    """The write is refused, for it names the version that was read."""
    begun = stage()
    memory = begun.memory
    virtual_time.run(until_waiting(begun.keeper()))
    memory.objects[CONFIGURATION]["webhooks"] = [entry("one")]

    def before(verb: str, path: str) -> None:
        if verb == "patch":
            memory.put(path, webhooks=[entry("one", "bWluZQ==")])

    memory.before = before
    virtual_time.run(begun.keeper().take_step())
    (left,) = memory.objects[CONFIGURATION]["webhooks"]
    assert left["clientConfig"]["caBundle"] == "bWluZQ=="
    assert begun.count("errors_total", reason="conflict") == 1


async def test_without_the_lease_no_error_is_final() -> None:
    begun = stage()
    failing(begun.memory, "create", AUTHORITY, NotLeading("not the leader"))

    keeper = begun.keeper()
    assert (await keeper.take_step()).seconds > 0
    failing(begun.memory, "create", AUTHORITY, None)
    await until_waiting(keeper)


async def test_a_bug_takes_nothing_with_it(caplog: pytest.LogCaptureFixture) -> None:
    begun = stage()
    failing(begun.memory, "create", AUTHORITY, KeyError("a bug"))

    keeper = begun.keeper()
    assert (await keeper.take_step()).seconds > 0
    assert "this is a bug" in keeper.reason
    begun.seconds += 5
    assert begun.count("failing_seconds") == 5
    failing(begun.memory, "create", AUTHORITY, None)
    await until_waiting(keeper)
    assert begun.count("failing_seconds") == 0
    assert "this is a bug" in caplog.text


async def test_who_undoes_a_write_again_and_again_is_not_fought() -> None:
    """After some times it pauses, longer each time, and says so; left alone, it is done again."""
    begun = stage()
    memory = begun.memory

    def wipe() -> None:
        webhooks = [entry("one"), entry("two")]
        memory.put(CONFIGURATION, webhooks=webhooks)

    keeper = begun.keeper()
    await until_waiting(keeper)
    for _ in range(FREE - 1):
        wipe()
        assert (await keeper.take_step()).seconds == 0
    wipe()
    written = len(memory.writes)
    rest = await keeper.take_step()
    assert (rest.seconds, rest.wakes) == (1.0, False)
    assert "bundle was written 5 times" in keeper.reason
    assert "managedFields" in keeper.reason
    assert begun.count("errors_total", reason="undone") == 1
    assert len(memory.writes) == written
    pauses = []
    for _ in range(8):
        begun.seconds += (await keeper.take_step()).seconds
        await keeper.take_step()
        wipe()
        pauses.append((await keeper.take_step()).seconds)
        # The writes between succeed, and the certificates are not kept all the same.
        assert begun.count("failing_seconds") == sum(pauses[:-1]) + 1.0
    assert pauses == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    begun.seconds += 60
    await until_waiting(keeper)
    assert "written" not in keeper.reason
    assert begun.count("failing_seconds")
    begun.seconds += FORGOTTEN
    await until_waiting(keeper)
    assert begun.count("failing_seconds") == 0


async def test_a_requested_change_is_not_a_conflict() -> None:
    begun = stage()

    keeper = begun.keeper()
    await until_waiting(keeper)
    for _ in range(3 * FREE):
        for path in (AUTHORITY, SERVING):
            metadata = begun.memory.objects[path]["metadata"]
            metadata["annotations"] = {"fairlead.dev/rotate": "now"}
        await settled(begun, keeper)
    assert begun.count("errors_total", reason="undone") == 0


async def settled(begun: Stage, keeper: Keeper) -> None:
    for _ in range(40):
        rest = await keeper.take_step()
        assert "reverts" not in keeper.reason
        if "nothing is due" in keeper.reason:
            return
        begun.passes(rest.seconds)
    raise AssertionError(keeper.reason)


ONE = Authority(new_authority("one", START))
TWO = Authority(new_authority("two", START))
STAGED = replace(ONE, staged=TWO.signing)
LEAF = Serving(issue_server(new_authority("a", START), "leaf", TERMS.names, START), b"bundle")
SEEN = Observed(ONE, LEAF)


def test_a_pause_passes() -> None:
    quarrel = Quarrel()
    for _ in range(FREE + 3):
        quarrel.wrote("it", 10.0)
    assert quarrel.pause("it", 11.0) == 7.0
    assert quarrel.pause("it", 18.0) == 0.0
    assert quarrel.pause("another", 11.0) == 0.0


def test_after_a_long_quiet_it_is_forgotten() -> None:
    quarrel = Quarrel()
    for _ in range(FREE + 1):
        quarrel.wrote("it", 10.0)
    quarrel.wrote("another", 10.0 + FORGOTTEN)
    assert quarrel.times("it") == 0


def test_a_write_is_the_same_if_it_brings_the_same_bundle_for_the_same_reason() -> None:
    assert cause(Publish(b"a", "x"), SEEN) == cause(Publish(b"a", "x"), Observed(TWO, None))
    assert cause(Publish(b"a", "x"), SEEN) != cause(Publish(b"b", "x"), SEEN)
    another = LEAF.trusting(b"another")
    assert cause(KeepServing(LEAF, "x"), SEEN) != cause(KeepServing(another, "x"), SEEN)
    assert cause(KeepServing(LEAF, "x"), SEEN) != cause(KeepServing(LEAF, "y"), SEEN)
    assert cause(KeepAuthority(ONE, "x"), SEEN) != cause(KeepAuthority(STAGED, "x"), SEEN)


def test_an_authority_that_is_lost_again_is_the_same_though_it_is_another() -> None:
    lost = Observed(None, None)
    assert cause(KeepAuthority(ONE, "x"), lost) == cause(KeepAuthority(TWO, "x"), lost)


def test_what_was_asked_for_is_never_counted() -> None:
    asked = replace(SEEN, renew_authority=True, renew_leaf=True)
    quarrel = Quarrel()
    for write in (KeepServing(LEAF, "asked"), KeepAuthority(STAGED, "asked")):
        for _ in range(3 * FREE):
            quarrel.wrote(cause(write, asked), 10.0)
        assert quarrel.pause(cause(write, asked), 10.0) == 0.0
    assert cause(KeepAuthority(STAGED, "on its way"), replace(asked, authority=STAGED))
