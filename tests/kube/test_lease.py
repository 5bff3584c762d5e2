"""The Lease's fields, as client-go's electors read and write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from webhook.kube.lease import Lease, LeaseState, Terms, lease_spec, parse_lease, released

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
