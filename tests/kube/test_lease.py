"""The Lease's fields, as client-go's electors read and write them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from webhook.kube.lease import Lease, LeaseState, Terms, lease_spec, parse_lease, released

NOW = datetime(2026, 8, 1, 12, 30, 15, 42, tzinfo=UTC)
TEXT = "2026-08-01T12:30:15.000042Z"
THEIRS = Lease("7", "them", 15.0, 3, "2026-01-01T00:00:00.000000Z")
WALL = datetime(2026, 8, 1, tzinfo=UTC)


def test_a_lease_is_read_and_what_it_does_not_say_is_empty() -> None:
    """Every field of its spec may be missing."""
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
    """And each has its own time of acquiring."""
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
    """Only the time of renewing is new."""
    renewed = lease_spec(THEIRS, "them", 15.0, NOW)
    assert (renewed["leaseTransitions"], renewed["acquireTime"]) == (3, THEIRS.acquired)
    assert renewed["renewTime"] == TEXT


def test_a_released_lease_has_no_holder_and_keeps_the_count() -> None:
    """So that `kubectl get lease` tells how often it went from one to another."""
    spec = released(THEIRS, NOW)
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("", 3)
    assert spec["leaseDurationSeconds"] == 1


@dataclass
class Server:
    """One Lease, replaced only by whoever knows its version."""

    raw: dict[str, Any] | None = None
    versions: int = 0

    def lease(self) -> Lease | None:
        return parse_lease(self.raw) if self.raw else None

    def write(self, version: str | None, spec: dict[str, Any]) -> Lease | None:
        """The Lease as stored; None is 409. `version` None creates it."""
        current = self.lease()
        if (current and current.version) != version:
            return None
        self.versions += 1
        self.raw = {"metadata": {"resourceVersion": str(self.versions)}, "spec": spec}
        return self.lease()


@dataclass
class Call:
    """One request on its way; `spec` None is a question."""

    sent: float
    version: str | None = None
    spec: dict[str, Any] | None = None
    applied: bool = False
    answer: Lease | None = None


@dataclass
class Elector:
    """What Election does, one call at a time, but with the network in the adversary's hands."""

    tenure: LeaseState
    offset: float
    speed: float
    waiting: Call | None = None

    def clock(self, now: float) -> float:
        return self.offset + self.speed * now

    def may_write(self, now: float) -> bool:
        return self.tenure.may_write(self.clock(now))

    def ask(self, now: float) -> Call:
        self.waiting = Call(self.clock(now))
        return self.waiting

    def act(self, now: float) -> Call | None:
        """Send what the last look at the Lease makes right."""
        at, known = self.clock(now), self.tenure
        if known.step(at) == "wait":
            return None
        lease = None if known.gone else known.lease
        spec = lease_spec(lease, known.identity, known.terms.lease_duration, WALL)
        self.waiting = Call(at, lease.version if lease else None, spec)
        return self.waiting

    def resign(self) -> Call | None:
        """Stop writing, then give the Lease back."""
        lease, self.tenure = self.tenure.lease, self.tenure.resigned()
        self.waiting = None
        if lease is None or self.tenure.gone or lease.holder != self.tenure.identity:
            return None
        return Call(0.0, lease.version, released(lease, WALL))

    def hear(self, call: Call, now: float) -> None:
        if call is not self.waiting:
            return  # it has given up on that one
        self.waiting = None
        if call.spec is None:
            self.tenure = self.tenure.saw(call.answer, self.clock(now))
        elif call.answer is not None:
            self.tenure = self.tenure.wrote(call.answer, call.sent, self.clock(now))


@dataclass
class World:
    electors: list[Elector]
    server: Server = field(default_factory=Server)
    calls: list[tuple[Elector, Call]] = field(default_factory=list)
    now: float = 0.0
    led: set[str] = field(default_factory=set)

    def send(self, elector: Elector, call: Call | None) -> None:
        if call is not None:
            self.calls.append((elector, call))

    def play(self, move: str, who: int, which: int, seconds: float) -> None:
        """One move of the adversary; "look" is a question that goes well, "turn" also acts."""
        if move in {"look", "turn"}:
            for part in ("ask", "act")[: 1 + (move == "turn")]:
                before = len(self.calls)
                self.play(part, who, 0, 0)
                if len(self.calls) > before:
                    self.play("round", 0, -1, 0)
            return
        elector = self.electors[who % len(self.electors)]
        if move == "tick":
            self.now += seconds
        elif move == "ask" and elector.waiting is None:
            self.send(elector, elector.ask(self.now))
        elif move == "act" and elector.waiting is None:
            self.send(elector, elector.act(self.now))
        elif move == "give up":
            elector.waiting = None
        elif move == "resign":
            self.send(elector, elector.resign())
        elif move in {"apply", "answer", "round"} and self.calls:
            asker, call = self.calls[which % len(self.calls)]
            if not call.applied and move != "answer":
                self.apply(call)
            if call.applied and move != "apply":
                asker.hear(call, self.now)
        writers = [one.tenure.identity for one in self.electors if one.may_write(self.now)]
        assert len(writers) <= 1
        self.led.update(writers)

    def apply(self, call: Call) -> None:
        call.applied = True
        if call.spec is None:
            call.answer = self.server.lease()
        else:
            call.answer = self.server.write(call.version, call.spec)


def world(count: int, clocks: list[tuple[float, float]]) -> World:
    return World(
        [
            Elector(LeaseState(f"elector-{number}", Terms()), offset, speed)
            for number, (offset, speed) in zip(range(count), clocks, strict=False)
        ]
    )


# Monotonic clocks begin anywhere. 15 seconds against 10 bear clocks of which one runs up to half
# as fast again as the other.
CLOCKS = st.lists(
    st.tuples(st.floats(-1e6, 1e6), st.sampled_from([1.0, 1.0, 0.82, 1.2])), min_size=3, max_size=3
)
SECONDS = st.sampled_from([0.1, 1.0, 2.0, 4.0, 4.5, 7.0, 9.5])
WHO = st.sampled_from([0, 0, 0, 1, 1, 1, 2])
MOVES = st.one_of(
    st.tuples(st.just("tick"), st.just(0), st.just(0), SECONDS),
    st.tuples(st.just("turn"), WHO, st.just(0), st.just(0.0)),
    st.tuples(st.just("look"), WHO, st.just(0), st.just(0.0)),
    st.tuples(
        st.sampled_from(["ask", "act", "act", "give up", "resign"]), WHO, st.just(0), st.just(0.0)
    ),
    st.tuples(
        # The last calls are the likelier ones, and old ones may come at any time.
        st.sampled_from(["apply", "answer", "round"]),
        st.just(0),
        st.sampled_from([-1, -1, -1, -2, 0, 5]),
        st.just(0.0),
    ),
)


@settings(deadline=None, max_examples=examples(200))
@given(CLOCKS, st.lists(MOVES, min_size=20, max_size=60))
def test_never_may_two_write_at_once(
    clocks: list[tuple[float, float]], moves: list[tuple[str, int, int, float]]
) -> None:
    """Calls come late, in any order, or never; answers are lost; clocks differ."""
    played = world(3, clocks)
    for move in moves:
        played.play(*move)


def elect(*moves: tuple[str, int, float]) -> World:
    """Two electors with right clocks."""
    played = world(2, [(0.0, 1.0), (500.0, 1.0)])
    for move, who, seconds in moves:
        played.play(move, who, -1, seconds)
    return played


def test_the_first_to_come_creates_the_lease_and_leads() -> None:
    """The other sees it, and waits."""
    played = elect(("turn", 0, 0), ("turn", 1, 0))
    assert [one.may_write(played.now) for one in played.electors] == [True, False]


def test_a_holder_that_does_not_renew_writes_no_more_before_another_may() -> None:
    """From 10 seconds on nobody writes, from 15 on the other does."""
    played = elect(("turn", 0, 0), ("turn", 1, 0), ("tick", 0, 9.9))
    assert played.electors[0].may_write(played.now)
    played.play("tick", 0, 0, 0.1)
    assert not played.electors[0].may_write(played.now)
    played.play("tick", 0, 0, 4.9)
    assert played.electors[1].act(played.now) is None
    played.play("tick", 0, 0, 0.1)
    assert played.electors[1].act(played.now) is not None


def test_a_lease_that_was_released_is_taken_at_once() -> None:
    """Its holder has stopped writing before."""
    played = elect(
        ("turn", 0, 0), ("turn", 1, 0), ("resign", 0, 0), ("apply", 0, 0), ("turn", 1, 0)
    )
    assert [one.may_write(played.now) for one in played.electors] == [False, True]


def test_each_renewal_restarts_the_wait_of_the_others() -> None:
    """They count from when they saw it, by their own clock."""
    played = elect(*[("turn", 0, 0), ("turn", 1, 0), ("tick", 0, 8.0)] * 5)
    assert played.led == {"elector-0"}


def test_a_lease_that_was_deleted_is_not_created_while_its_holder_may_write() -> None:
    """Whoever saw it waits as long as if it had just been renewed."""
    played = elect(("turn", 0, 0), ("turn", 1, 0), ("tick", 0, 5.0))
    played.server.raw = None
    other = played.electors[1]
    played.play("look", 1, 0, 0)
    assert other.act(played.now) is None
    played.play("tick", 0, 0, 15.0)
    other.waiting = None
    call = other.act(played.now)
    assert call is not None
    assert call.version is None


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
    """With all three in the message."""
    with pytest.raises(ValueError, match=r"each must be longer"):
        Terms(*terms)
