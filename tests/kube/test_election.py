"""Leases, and electors that run over a network that fails, on clocks that differ."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.kube.leases import Fate, Leases, Line
from tests.kube.virtual_time import now, run
from webhook.errors import ClusterError, NotLeading
from webhook.kube.election import Election, clock_since_boot
from webhook.kube.lease import Lease, LeaseState, Terms, lease_spec, parse_lease, released

pytestmark = pytest.mark.virtual_time


@dataclass
class Candidate:
    """One process: its election, its line, and whether its work is being done."""

    name: str
    leases: Leases
    offset: float = 0.0
    speed: float = 1.0
    line: Line = field(init=False)
    election: Election = field(init=False)
    begun: int = 0
    working: bool = False

    def __post_init__(self) -> None:
        self.line = Line(self.leases)
        self.election = Election(
            self.line.client(),
            "here",
            "the-lease",
            self.name,
            Terms(),
            clock=lambda: self.offset + self.speed * now(),
            sleep=lambda seconds: asyncio.sleep(seconds / self.speed),
            random=Random(1),
        )

    async def work(self) -> None:
        self.begun += 1
        self.working = True
        try:
            await asyncio.sleep(1e9)
        finally:
            self.working = False


@asynccontextmanager
async def standing(*candidates: Candidate) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Have each stand for election, a little after the one before."""
    tasks = []
    for candidate in candidates:
        tasks.append(asyncio.create_task(candidate.election.run(candidate.work)))
        await asyncio.sleep(0.1)
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for candidate in candidates:
            await candidate.line.settle()


def lost() -> Fate:
    return Fate(lost=True)


async def test_the_first_leads_and_renews_and_the_second_waits() -> None:
    """With one call for each renewal, every two seconds."""
    leases = Leases()
    one, two = Candidate("one", leases), Candidate("two", leases)
    async with standing(one, two):
        await asyncio.sleep(100)
        assert (one.working, two.working) == (True, False)
        assert (one.election.leading, two.election.leading) == (True, False)
        assert (one.election.holder, two.election.holder) == ("one", "one")
        assert one.line.requests == pytest.approx(52, abs=2)
        assert leases.stored is not None
        assert leases.stored["spec"]["leaseTransitions"] == 0


async def test_a_leader_that_leaves_gives_the_lease_back_and_the_next_has_it_at_once() -> None:
    """Within one look, without waiting for it to expire; and not before the work has ended."""
    leases = Leases()
    one, two = Candidate("one", leases), Candidate("two", leases)
    async with standing(one, two) as (first, _):
        await asyncio.sleep(10)
        first.cancel()
        await asyncio.wait([first])
        assert first.cancelled()
        assert (one.working, one.election.may_write(), leases.holder) == (False, False, "")
        await asyncio.sleep(2.5)
        assert two.working
        assert leases.stored is not None
        assert leases.stored["spec"]["leaseTransitions"] == 1
    assert leases.holder == ""


async def test_a_leader_that_is_cut_off_stops_before_the_other_begins() -> None:
    """After ten seconds it does nothing; after fifteen the other does; it comes back as second."""
    leases = Leases()
    one, two = Candidate("one", leases), Candidate("two", leases, offset=-500.0)
    async with standing(one, two):
        await asyncio.sleep(10)
        one.line.fate = lost
        await asyncio.sleep(7.5)
        assert (one.election.may_write(), one.working) == (True, True)
        await asyncio.sleep(2.6)
        assert (one.election.may_write(), one.working, two.working) == (False, False, False)
        assert one.election.last_error is not None
        await asyncio.sleep(7.5)
        assert two.working
        one.line.fate = Fate
        await asyncio.sleep(100)
        assert (one.begun, two.begun, one.working, two.working) == (1, 1, False, True)
        assert one.election.holder == "two"
        assert str(one.election.last_error) == "None"


async def test_an_api_server_that_is_away_for_long_stops_the_work_until_it_is_back() -> None:
    """The work begins again then, whoever it is that leads."""
    leases = Leases()
    one, two = Candidate("one", leases), Candidate("two", leases)
    async with standing(one, two):
        await asyncio.sleep(10)
        one.line.fate = two.line.fate = lost
        await asyncio.sleep(60)
        assert (one.working, two.working) == (False, False)
        one.line.fate = two.line.fate = Fate
        await asyncio.sleep(20)
        assert one.working != two.working
        assert one.begun + two.begun == 2


async def test_a_short_outage_of_the_api_server_stops_nothing() -> None:
    leases = Leases()
    one = Candidate("one", leases)
    async with standing(one):
        for _ in range(5):
            await asyncio.sleep(10)
            one.line.fate = lost
            await asyncio.sleep(5)
            one.line.fate = Fate
        assert (one.begun, one.working) == (1, True)


async def test_a_server_that_never_answers_blocks_no_caller() -> None:
    """The work stops in time though the renewal still waits for its answer."""
    leases = Leases()
    one = Candidate("one", leases)
    async with standing(one):
        await asyncio.sleep(10)
        one.line.fate = lambda: Fate(there=1e6)
        await asyncio.sleep(10.1)
        assert not one.working
        one.line.late.clear()


async def test_a_leader_that_sees_another_holder_stops_at_once() -> None:
    """An admin has edited the Lease, or deleted it and another was quicker."""
    leases = Leases()
    one = Candidate("one", leases)
    async with standing(one):
        await asyncio.sleep(10)
        assert leases.stored is not None
        leases.patch(
            {
                "metadata": leases.stored["metadata"],
                "spec": {**leases.stored["spec"], "holderIdentity": "someone"},
            }
        )
        await asyncio.sleep(2.1)
        assert (one.working, one.election.holder) == (False, "someone")
        await asyncio.sleep(20)
        assert (one.working, one.begun) == (True, 2)


async def test_a_lease_that_was_deleted_is_recreated_by_its_holder() -> None:
    """Whose work goes on; the others wait as long as if it had been renewed."""
    leases = Leases()
    one, two = Candidate("one", leases), Candidate("two", leases)
    async with standing(one, two):
        await asyncio.sleep(10)
        leases.stored = None
        await asyncio.sleep(100)
        assert (one.begun, one.working, two.begun) == (1, True, 0)


async def test_what_others_wrote_on_the_lease_stays() -> None:
    leases = Leases()
    one = Candidate("one", leases)
    async with standing(one):
        await asyncio.sleep(5)
        assert leases.stored is not None
        leases.stored["metadata"]["labels"] = {"a": "b"}
        await asyncio.sleep(5)
        assert leases.stored["metadata"]["labels"] == {"a": "b"}


async def test_work_that_returns_ends_the_election_and_gives_the_lease_back() -> None:
    leases = Leases()

    async def work() -> None:
        await asyncio.sleep(30)

    await Candidate("one", leases).election.run(work)
    assert (leases.holder, leases.writes[-2:]) == ("", ["one", ""])


async def test_failed_work_is_reported_after_the_lease_was_released() -> None:
    leases = Leases()

    async def work() -> None:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        await Candidate("one", leases).election.run(work)
    assert leases.holder == ""


@pytest.mark.parametrize("grouped", [False, True])
async def test_work_that_loses_the_right_to_write_is_restarted(grouped: bool) -> None:
    """A held back write, alone or out of a task group, is no failure of the work."""
    begun = []

    async def work() -> None:
        begun.append(now())
        if len(begun) < 3:
            error = NotLeading("held back")
            raise ExceptionGroup("tasks", [error]) if grouped else error

    await Candidate("one", Leases()).election.run(work)
    assert len(begun) == 3


async def test_a_renewal_that_was_under_way_when_the_leader_left_does_not_keep_the_lease() -> None:
    """Its version is looked up before the Lease is given back."""
    leases = Leases()
    one = Candidate("one", leases)
    async with standing(one) as (first,):
        await asyncio.sleep(9)
        one.line.fate = lambda: Fate(back=1.0)
        requests = one.line.requests
        await asyncio.sleep(1.5)
        assert one.line.requests == requests + 1
        first.cancel()
        await asyncio.wait([first])
        assert leases.holder == ""


async def test_a_leader_that_cannot_give_the_lease_back_leaves_it_to_expire() -> None:
    """Leaving does not take for ever, and fails for nobody."""
    leases = Leases()
    one = Candidate("one", leases)
    async with standing(one) as (first,):
        await asyncio.sleep(10)
        one.line.fate = lambda: Fate(there=1e6)
        left = now()
        first.cancel()
        await asyncio.wait([first])
        assert now() - left == pytest.approx(5.0)
        assert leases.holder == "one"
        one.line.late.clear()


async def test_a_refused_election_is_reported_and_tried_again() -> None:
    """Without permissions there is no leader, and `last_error` says why."""
    one = Candidate("one", Leases())

    def refuse() -> Fate:
        raise ClusterError("forbidden", status=403, reason="Forbidden")

    one.line.fate = refuse
    async with standing(one):
        await asyncio.sleep(10)
        assert not one.election.leading
        assert str(one.election.last_error) == "forbidden"
        one.line.fate = Fate
        await asyncio.sleep(3)
        assert one.election.leading


def test_the_clock_goes_on_by_itself() -> None:
    first = clock_since_boot()
    assert clock_since_boot() >= first > 0


FATES = st.one_of(
    st.just(Fate()),
    st.just(Fate()),
    st.builds(Fate, there=st.sampled_from([0.0, 1.0, 4.0, 12.0, 20.0])),
    st.builds(Fate, back=st.sampled_from([0.5, 3.0, 6.0])),
    st.just(Fate(lost=True)),
    st.just(Fate(unheard=True)),
)


@settings(deadline=None, max_examples=examples(150))
@given(
    st.lists(
        st.tuples(st.floats(-1e6, 1e6), st.sampled_from([0.82, 1.0, 1.2])), min_size=2, max_size=3
    ),
    st.lists(st.tuples(FATES, st.integers(1, 6)), min_size=5, max_size=25),
    st.randoms(use_true_random=False),
)
def test_over_a_bad_network_never_two_work_and_over_a_good_one_one_does(
    clocks: list[tuple[float, float]], weather: list[tuple[Fate, int]], random: Random
) -> None:
    """Whatever becomes of requests and answers, and however fast the clocks go."""
    fates = [fate for fate, times in weather for _ in range(times)]

    async def main() -> None:
        leases = Leases()
        candidates = [
            Candidate(f"elector-{number}", leases, offset, speed)
            for number, (offset, speed) in enumerate(clocks)
        ]
        for candidate in candidates:
            candidate.line.fate = lambda: random.choice(fates)
        async with standing(*candidates):
            for _ in range(600):
                await asyncio.sleep(0.25)
                assert sum(one.election.may_write() for one in candidates) <= 1
                assert sum(one.working for one in candidates) <= 1
            for candidate in candidates:
                candidate.line.fate = Fate
            await asyncio.sleep(60)
            assert sum(one.working for one in candidates) == 1

    run(main())


NOW = datetime(2026, 8, 1, 12, 30, 15, 42, tzinfo=UTC)
TEXT = "2026-08-01T12:30:15.000042Z"
THEIRS = Lease("7", "them", 15.0, 3, "2026-01-01T00:00:00.000000Z")


def test_a_lease_is_read_and_what_it_does_not_say_is_empty() -> None:
    spec = {
        "holderIdentity": "them",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 3,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": TEXT,
    }
    assert parse_lease({"metadata": {"resourceVersion": "7"}, "spec": spec}) == THEIRS
    assert parse_lease({"metadata": {"resourceVersion": "7"}}) == Lease("7", "", 0.0, 0, "")


def test_only_later_holders_count_as_transitions() -> None:
    assert lease_spec(None, "me", 14.5, NOW) == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": TEXT,
        "renewTime": TEXT,
        "leaseTransitions": 0,
    }
    taken = lease_spec(THEIRS, "me", 15.0, NOW)
    assert (taken["leaseTransitions"], taken["acquireTime"]) == (4, TEXT)


def test_a_renewal_keeps_the_time_of_acquiring_and_the_count() -> None:
    renewed = lease_spec(THEIRS, "them", 15.0, NOW)
    assert (renewed["leaseTransitions"], renewed["acquireTime"]) == (3, THEIRS.acquired)
    assert renewed["renewTime"] == TEXT


def test_a_released_lease_has_no_holder_and_keeps_the_count() -> None:
    """So that `kubectl get lease` tells how often it went from one to another."""
    spec = released(THEIRS, NOW)
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("", 3)
    assert spec["leaseDurationSeconds"] == 1


def test_a_lease_that_was_deleted_is_not_created_while_its_holder_may_write() -> None:
    """Whoever saw it waits as long as if it had just been renewed."""
    tenure = LeaseState("me", Terms()).saw(Lease("1", "other", 15.0, 0, ""), 100.0).saw(None, 105.0)
    assert [tenure.step(at) for at in (119.9, 120.0)] == ["wait", "create"]


def test_a_lease_that_was_deleted_is_not_waited_for_as_long_as_a_stranger_wrote() -> None:
    """A holder with such terms would have created it again."""
    stranger = Lease("1", "stranger", 3600.0, 0, "")
    tenure = LeaseState("me", Terms()).saw(stranger, 100.0).saw(None, 105.0)
    assert [tenure.step(at) for at in (119.9, 120.0)] == ["wait", "create"]


def test_a_renewal_counts_from_when_it_was_sent() -> None:
    """The others may have seen it long before its answer came."""
    tenure = LeaseState("me", Terms()).wrote(Lease("1", "me", 15.0, 0, ""), 100.0, 107.0)
    assert tenure.writes_until == 110.0


def test_a_renewal_whose_answer_was_lost_counts_for_nothing() -> None:
    """That the Lease is seen to be ours does not tell when the server heard of it."""
    tenure = LeaseState("me", Terms()).wrote(Lease("1", "me", 15.0, 0, ""), 100.0, 100.1)
    tenure = tenure.saw(Lease("2", "me", 15.0, 0, ""), 109.0)
    assert tenure.writes_until == 110.0
    assert tenure.step(109.0) == "write"
    never = LeaseState("me", Terms()).saw(Lease("2", "me", 15.0, 0, ""), 109.0)
    assert not never.may_write(109.0)


def test_a_holder_that_sees_another_stops_at_once() -> None:
    """An admin may have edited the Lease."""
    tenure = LeaseState("me", Terms())
    tenure = tenure.wrote(Lease("1", "me", 15.0, 0, ""), 0.0, 0.1)
    assert tenure.may_write(1.0)
    assert not tenure.saw(Lease("2", "other", 15.0, 1, ""), 1.0).may_write(1.0)


def test_the_holder_s_own_duration_counts() -> None:
    """Electors of another version may have other terms."""
    tenure = LeaseState("me", Terms()).saw(Lease("1", "other", 60.0, 0, ""), 100.0)
    assert tenure.step(159.9) == "wait"
    assert tenure.step(160.0) == "write"
    silent = LeaseState("me", Terms()).saw(Lease("1", "other", 0.0, 0, ""), 100.0)
    assert silent.step(114.9) == "wait"
    assert silent.step(115.0) == "write"


@pytest.mark.parametrize("terms", [(15, 15, 2), (15, 2, 2), (10, 15, 2), (15, 10, 0)])
def test_terms_that_would_let_two_lead_are_refused(terms: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match=r"each must be longer"):
        Terms(*terms)
