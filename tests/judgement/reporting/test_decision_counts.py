"""Pods are counted once, over replicas that restart and leaders that change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.judgement.reporting.objects import policy
from webhook.judgement.reporting.decision_counts import Count, Ledger, Report, counted, met, total
from webhook.policy.status_model import PolicyStatus

NOW, LATER = "2026-03-01T12:00:00Z", "2026-03-01T13:00:00Z"


def report(process: str = "1", **counts: tuple[int, int] | tuple[int, int, str]) -> Report:
    """What a replica says of policies: decided, rejected, and when it last matched."""
    return Report(process, "h", {name: Count(*of) for name, of in counts.items()})


def looked(ledger: Ledger, **reports: Report) -> Ledger:
    """The ledger after all replicas that there are have answered."""
    return counted(ledger, set(reports), reports)


def count(ledger: Ledger, name: str) -> tuple[int, int]:
    """What there is of a policy by now."""
    _, found = total(ledger, f"uid-{name}", name)
    return found.decided, found.rejected


def test_what_was_counted_before_this_leader_is_in_the_status() -> None:
    """A replica that is there already begins at what it says; the status goes on."""
    status = PolicyStatus(pods_decided=7, pods_rejected=2, since=NOW, last_match=NOW)
    ledger = met(Ledger(), [policy("p", status=status)], LATER)
    ledger = looked(ledger, a=report(p=(100, 9)))
    assert count(ledger, "p") == (7, 2)
    ledger = looked(ledger, a=report(p=(103, 10)))
    assert count(ledger, "p") == (10, 3)
    assert total(ledger, "uid-p", "p")[0] == NOW


def test_another_process_in_the_pod_counts_whole() -> None:
    """Even if it has counted more than the one before."""
    ledger = looked(met(Ledger(), [policy("p")], NOW), a=report("1", p=(5, 0)))
    ledger = looked(ledger, a=report("2", p=(8, 0)))
    assert count(ledger, "p") == (8, 0)


def test_a_replica_that_forgot_the_policy_counts_whole() -> None:
    """Webhooks forget the counts of a policy that goes, even for a moment."""
    ledger = looked(met(Ledger(), [policy("p")], NOW), a=report(p=(5, 3)))
    ledger = looked(ledger, a=report(p=(2, 1)))
    assert count(ledger, "p") == (2, 1)


def test_a_replica_that_goes_and_comes_back_is_not_counted_twice() -> None:
    """A list may lack it for a moment."""
    ledger = looked(met(Ledger(), [policy("p")], NOW))
    ledger = looked(ledger, a=report(p=(5, 0)))
    ledger = looked(looked(ledger), a=report(p=(6, 0)))
    assert count(ledger, "p") == (5, 0)
    assert count(looked(ledger, a=report(p=(8, 0))), "p") == (7, 0)


def test_a_recreated_policy_starts_with_zero_counts() -> None:
    """Also with the time of its last match, though replicas may still tell the old one's."""
    ledger = looked(met(Ledger(), [policy("p")], NOW), a=report())
    ledger = looked(ledger, a=report(p=(5, 0, NOW)))
    again = policy("p", uid="another")
    ledger = looked(met(ledger, [again], LATER), a=report(p=(6, 0, NOW)))
    assert total(ledger, "another", "p") == (LATER, Count(1, 0, ""))
    assert set(ledger.bases) == {"another"}


def test_what_is_kept_is_of_policies_that_there_are() -> None:
    """Years of edits do not pile up."""
    ledger = looked(met(Ledger(), [policy("p")], NOW), a=report())
    ledger = looked(ledger, a=report(p=(5, 0), other=(3, 0)))
    assert set(met(ledger, [policy("p")], NOW).sums) == {"p"}
    assert met(ledger, [], NOW).bases == {}


def test_the_last_match_is_the_latest_of_all() -> None:
    """Of replicas, and of the status."""
    status = PolicyStatus(since=NOW, last_match=NOW)
    ledger = met(Ledger(), [policy("p", status=status)], LATER)
    ledger = looked(ledger, a=report(p=(1, 0, LATER)), b=report(p=(1, 0, NOW)))
    assert total(ledger, "uid-p", "p")[1].last_match == LATER


@dataclass
class Process:
    """One process of a replica: what it has counted, and what of that was seen by a look."""

    count: int = 0
    seen: int = 0


@dataclass
class World:
    """Replicas that count and restart, seen by leaders that look and hand over."""

    replicas: dict[str, list[Process]] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    status: PolicyStatus = field(default_factory=PolicyStatus)
    due: int = 0

    def start(self, key: str) -> None:
        self.replicas.setdefault(key, []).append(Process())

    def count(self, key: str, pods: int) -> None:
        self.replicas[key][-1].count += pods

    def look(self, answering: set[str]) -> None:
        first = self.ledger.initial_keys is None
        self.ledger = met(self.ledger, [policy("p", status=self.status)], NOW)
        reports: Mapping[str, Report] = {
            key: report(str(len(processes)), p=(processes[-1].count, 0))
            for key, processes in self.replicas.items()
            if key in answering
        }
        known = self.ledger.last.keys() | (set() if first else self.new)
        self.new -= reports.keys()
        for key in reports:
            process = self.replicas[key][-1]
            if key in known:
                self.due += process.count - process.seen
            process.seen = process.count
        self.ledger = counted(self.ledger, set(self.replicas), reports)
        if first:
            self.new = set()

    new: set[str] = field(default_factory=set)

    def total(self) -> int:
        return total(self.ledger, "uid-p", "p")[1].decided


_KEYS = st.sampled_from(["a", "b", "c"])
_STEPS = st.one_of(
    st.tuples(st.just("start"), _KEYS),
    st.tuples(st.just("count"), _KEYS, st.integers(0, 5)),
    st.tuples(st.just("look"), st.frozensets(_KEYS)),
    st.tuples(st.just("hand over")),
)


@given(st.lists(_STEPS, max_size=40))
@settings(deadline=None)
def test_every_pod_that_a_look_could_see_is_counted_once(steps: list[tuple[object, ...]]) -> None:
    """Whatever restarts, answers, and leads; and no count ever goes down."""
    world, told = World(), 0
    world.look(set())
    for step in steps:
        match step:
            case ("start", str(key)):
                if key not in world.replicas:
                    world.new.add(key)
                world.start(key)
            case ("count", str(key), int(pods)) if key in world.replicas:
                world.count(key, pods)
            case ("look", frozenset() as keys):
                world.look({str(key) for key in keys} & world.replicas.keys())
            case ("hand over",):
                world.status = PolicyStatus(pods_decided=world.total(), since=NOW)
                world.ledger = Ledger()
                world.look(set())
                world.new = set()
        assert world.total() == world.due
        assert world.total() >= told
        told = world.total()
