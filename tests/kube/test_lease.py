"""The Lease's fields, as client-go's electors read and write them."""

from __future__ import annotations

from datetime import UTC, datetime

from webhook.kube.lease import Lease, held, read, released

NOW = datetime(2026, 8, 1, 12, 30, 15, 42, tzinfo=UTC)
TEXT = "2026-08-01T12:30:15.000042Z"
THEIRS = Lease("7", "them", 15.0, 3, "2026-01-01T00:00:00.000000Z")


def test_a_lease_is_read_and_what_it_does_not_say_is_empty() -> None:
    """Every field of its spec may be missing."""
    spec = {
        "holderIdentity": "them",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 3,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": TEXT,
    }
    assert read({"metadata": {"resourceVersion": "7"}, "spec": spec}) == THEIRS
    assert read({"metadata": {"resourceVersion": "7"}}) == Lease("7", "", 0.0, 0, "")


def test_the_first_holder_is_no_transition_and_each_further_one_is() -> None:
    """And each has its own time of acquiring."""
    assert held(None, "me", 14.5, NOW) == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": TEXT,
        "renewTime": TEXT,
        "leaseTransitions": 0,
    }
    taken = held(THEIRS, "me", 15.0, NOW)
    assert (taken["leaseTransitions"], taken["acquireTime"]) == (4, TEXT)


def test_a_renewal_keeps_the_time_of_acquiring_and_the_count() -> None:
    """Only the time of renewing is new."""
    renewed = held(THEIRS, "them", 15.0, NOW)
    assert (renewed["leaseTransitions"], renewed["acquireTime"]) == (3, THEIRS.acquired)
    assert renewed["renewTime"] == TEXT


def test_a_released_lease_has_no_holder_and_keeps_the_count() -> None:
    """So that `kubectl get lease` tells how often it went from one to another."""
    spec = released(THEIRS, NOW)
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("", 3)
    assert spec["leaseDurationSeconds"] == 1
