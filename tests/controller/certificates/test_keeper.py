"""The keeper: what it does in turn, when it rests, and what it tells of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography import x509

from certs.authority import new_authority
from certs.issue import issue_server
from certs.kept import Authority, Serving
from certs.life import renewal_time
from certs.rotation import KeepAuthority, KeepServing, Observed, Publish
from tests.controller.certificates.memory import (
    AUTHORITY,
    CONFIGURATION,
    INSTALLATION,
    SERVING,
    SLICES,
    START,
    TERMS,
    Memory,
    entry,
    failing,
    refused,
    stage,
    until_waiting,
)
from tests.kube import virtual_time
from tests.wording import Wording
from webhook import names
from webhook.controller.certificates.certificate_metrics import ERRORS
from webhook.controller.certificates.certificate_objects import is_renewal_requested
from webhook.controller.certificates.keeper import LONGEST_REST, carry_out, describe_error, kind_of
from webhook.controller.certificates.observe import ObservedCertificates
from webhook.errors import ClusterError
from webhook.kube.secrets import data_of

pytestmark = pytest.mark.virtual_time

SIGNING = new_authority("one", START)
STEADY = Authority(SIGNING)
STAGED = replace(STEADY, staged=new_authority("two", START))
LEAF = Serving(issue_server(SIGNING, "leaf", TERMS.names, START), STEADY.bundle)
OTHER_LEAF = Serving(issue_server(SIGNING, "leaf", TERMS.names, START), STEADY.bundle)
CURES = {409: "", 403: "needs this right", 422: "delete it", 404: "", 503: ""}


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_it_makes_everything_by_single_writes_and_then_waits() -> None:
    """One write a look; the last look finds nothing to do."""
    begun = stage()

    keeper = begun.keeper()
    writes = []
    for _ in range(5):
        rest = await keeper.take_step()
        writes.append(len(begun.memory.writes))
    assert writes == [1, 2, 3, 4, 4]
    assert rest.wakes
    assert keeper.reason.startswith("steady: ")
    leaf = x509.load_pem_x509_certificate(data_of(begun.memory.objects[SERVING])["tls.crt"])
    due = renewal_time(leaf).isoformat(timespec="seconds")
    assert keeper.reason.endswith(f", until {due}")
    assert begun.memory.writes == [
        ("create", AUTHORITY),
        ("patch", CONFIGURATION),
        ("replace", AUTHORITY),
        ("create", SERVING),
    ]


async def test_a_request_during_a_rotation_is_answered_by_the_next_one() -> None:
    """The authority that is staged just now may be the one whose key has leaked."""
    begun = stage()
    signed = []

    def ask() -> None:
        begun.memory.objects[AUTHORITY]["metadata"]["annotations"] = {names.ROTATE: "now"}

    keeper = begun.keeper()
    await until_waiting(keeper)
    ask()
    for _ in range(40):
        rest = await keeper.take_step()
        begun.passes(rest.seconds)
        secret = begun.memory.objects[AUTHORITY]
        certificate = data_of(secret).get("tls.crt")
        if certificate not in signed:
            signed.append(certificate)
        if keeper.reason.startswith("published: waiting") and len(signed) == 1:
            ask()
    assert keeper.reason.startswith("steady: ")
    assert not is_renewal_requested(secret)
    assert len(signed) == 3


def test_the_authority_is_read_last() -> None:
    """Whatever is published or issued by it is then no older than what it is written over."""
    begun = stage()
    virtual_time.run(begun.keeper().take_step())
    read = [path for verb, path in begun.memory.calls if verb in ("get", "list")]
    assert len(read) == 5
    assert set(read[:3]) == {*(place.path for place in INSTALLATION.places), SLICES}
    assert read[3:] == [SERVING, AUTHORITY]


async def test_it_rests_a_minute_at_most() -> None:
    """What is due goes by the wall clock, which may be set, and no timer follows it."""
    begun = stage()

    keeper = begun.keeper()
    await until_waiting(keeper)
    assert (await keeper.take_step()).seconds == LONGEST_REST
    begun.now += timedelta(days=400)
    assert (await keeper.take_step()).seconds == 0


def test_what_it_waits_for_is_logged_once(
    caplog: pytest.LogCaptureFixture, wording: Wording
) -> None:
    begun = stage()

    async def work() -> None:
        keeper = begun.keeper()
        for _ in range(20):
            await keeper.take_step()

    with caplog.at_level("INFO"):
        virtual_time.run(work())
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 5
    assert said[0].startswith("certificates: authority written: ")
    assert [each.startswith("certificates: steady: ") for each in said].count(True) == 1
    wording("\n".join(said))


async def test_a_change_ends_the_rest() -> None:
    """Told by the watch, a moment later; without one the next look is a minute away."""
    begun = stage()
    change: list[Callable[[], None]] = []

    @contextmanager
    def watch(changed: Callable[[], None]) -> Iterator[None]:
        change.append(changed)
        yield

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


async def test_it_is_ready_unless_it_leads_and_has_never_been_through() -> None:
    """A follower is; a leader without rights is not; a server that is away changes nothing."""
    begun = stage()
    ready = []

    keeper = begun.keeper()
    ready.append(keeper.ready)
    assert keeper.reason == "done by the leader"
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
    assert keeper.reason == "done by the leader"
    assert ready == [True, False, True, True]


async def test_who_does_not_lead_tells_no_state() -> None:
    """Only the leader knows it: two that tell different things would be an alert for nothing."""
    begun = stage()

    keeper = begun.keeper()
    leading = asyncio.create_task(keeper.lead())
    await asyncio.sleep(5)
    assert begun.count("phase", phase="steady") == 1
    assert begun.count("expiry_timestamp_seconds", certificate="leaf")
    await ended(leading)
    assert begun.count("phase", phase="steady") is None
    assert begun.count("expiry_timestamp_seconds", certificate="leaf") is None
    assert begun.count("writes_total", object="authority") == 2


async def test_a_leader_whose_clock_is_ahead_lets_clients_have_their_time() -> None:
    """It counts by its own steady clock, from when it saw what the leader before it has written."""
    begun = stage()

    first = begun.keeper()
    await until_waiting(first)
    begun.memory.objects[AUTHORITY]["metadata"]["annotations"] = {names.ROTATE: "now"}
    await until_waiting(first)
    assert first.reason.startswith("published: waiting until every client")
    begun.now += timedelta(minutes=10)
    second = begun.keeper()
    rest = await second.take_step()
    assert second.reason.startswith("published: waiting until every client")
    assert rest.seconds == TERMS.settle.total_seconds()
    begun.passes(rest.seconds - 1)
    assert (await second.take_step()).wakes
    begun.passes(1)
    assert not (await second.take_step()).wakes


def kept(memory: Memory, path: str) -> dict[str, object]:
    """A Secret that somebody asked to be renewed."""
    name = path.rpartition("/")[2]
    metadata = {"name": name, "annotations": {names.ROTATE: "now"}}
    return memory.put(path, metadata=metadata, type="Opaque", data={})


def seen_in(memory: Memory, observed: Observed) -> ObservedCertificates:
    """As it was observed, with the objects of the memory."""
    places = tuple(
        (place, memory.objects[place.path])
        for place in INSTALLATION.places
        if place.path in memory.objects
    )
    return ObservedCertificates(
        observed, memory.objects.get(AUTHORITY), memory.objects.get(SERVING), places
    )


@pytest.mark.parametrize(
    ("before", "after", "answers"),
    [
        (None, STAGED, True),
        (STEADY, STAGED, True),
        (STAGED, replace(STAGED, published_since=START), False),
        (STAGED, Authority(STAGED.staged), False),
    ],
)
def test_only_a_newly_staged_authority_answers_the_request(
    before: Authority | None, after: Authority, answers: bool
) -> None:
    """The one that is staged already may be the one whose key has leaked."""
    memory = Memory()
    kept(memory, AUTHORITY)
    seen = seen_in(memory, Observed(before, None, renew_authority=True))
    asyncio.run(carry_out(KeepAuthority(after, "why"), seen, INSTALLATION, memory.client))
    assert is_renewal_requested(memory.objects[AUTHORITY]) != answers


@pytest.mark.parametrize(
    ("before", "after", "answers"),
    [(None, LEAF, True), (LEAF, OTHER_LEAF, True), (LEAF, LEAF.trusting(b"another"), False)],
)
def test_only_a_new_leaf_answers_the_request(
    before: Serving | None, after: Serving, answers: bool
) -> None:
    memory = Memory()
    kept(memory, SERVING)
    seen = seen_in(memory, Observed(STEADY, before, renew_leaf=True))
    asyncio.run(carry_out(KeepServing(after, "why"), seen, INSTALLATION, memory.client))
    assert is_renewal_requested(memory.objects[SERVING]) != answers


def test_what_is_absent_is_created_and_what_is_there_replaced() -> None:
    """One that somebody has made meanwhile is left to them."""
    memory = Memory()
    step = KeepServing(LEAF, "why")
    absent = seen_in(memory, Observed(STEADY, None))
    asyncio.run(carry_out(step, absent, INSTALLATION, memory.client))
    assert memory.objects[SERVING]["type"] == "kubernetes.io/tls"
    with pytest.raises(ClusterError, match="409"):
        asyncio.run(carry_out(step, absent, INSTALLATION, memory.client))
    there = seen_in(memory, Observed(STEADY, LEAF))
    asyncio.run(carry_out(step, there, INSTALLATION, memory.client))
    with pytest.raises(ClusterError, match="409"):
        asyncio.run(carry_out(step, there, INSTALLATION, memory.client))
    assert [verb for verb, _ in memory.writes] == ["create", "create", "replace", "replace"]


def test_only_configurations_that_need_it_are_written() -> None:
    """Of several, those that have the bundle already are left alone."""
    memory = Memory()
    second = replace(INSTALLATION.places[0], name="second")
    installation = replace(INSTALLATION, places=(INSTALLATION.places[0], second))
    for path in (CONFIGURATION, second.path):
        memory.put(path, webhooks=[entry("one"), entry("two")])
    both = tuple((place, memory.objects[place.path]) for place in installation.places)
    seen = ObservedCertificates(Observed(STEADY, LEAF), None, None, both)
    asyncio.run(carry_out(Publish(STEADY.bundle, "why"), seen, installation, memory.client))
    assert memory.writes == [("patch", CONFIGURATION), ("patch", second.path)]
    # Wiped in one of them.
    memory.put(CONFIGURATION, webhooks=[entry("one")])
    both = tuple((place, memory.objects[place.path]) for place in installation.places)
    seen = ObservedCertificates(Observed(STEADY, LEAF), None, None, both)
    asyncio.run(carry_out(Publish(STEADY.bundle, "why"), seen, installation, memory.client))
    assert memory.writes[2:] == [("patch", CONFIGURATION)]


@pytest.mark.parametrize("status", [None, *CURES])
def test_every_error_has_one_of_the_metrics_names(status: int | None) -> None:
    """So that their number is bounded."""
    assert kind_of(ClusterError("words", status=status)) in ERRORS


@pytest.mark.parametrize("status", CURES)
def test_the_servers_message_comes_before_the_cure(status: int) -> None:
    words = describe_error(ClusterError("its own words", status=status))
    assert words.startswith("its own words")
    assert CURES[status] in words
    assert (words == "its own words") == (not CURES[status])
