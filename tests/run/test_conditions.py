"""Conditions keep the time at which they last changed."""

from __future__ import annotations

from datetime import UTC, datetime

from webhook.crd.conditions import Said
from webhook.run.conditions import CREATED, READY, SUCCEEDED, updated, without_pods

THEN = datetime(2026, 11, 21, 20, 0, 0, tzinfo=UTC)
NOW = datetime(2026, 11, 21, 21, 0, 0, tzinfo=UTC)


def test_a_status_that_stays_keeps_its_time() -> None:
    """Though reason, message and generation change."""
    before = updated((), [Said(READY, "False", "NotReady", "0 of 3")], 1, THEN)
    (after,) = updated(before, [Said(READY, "False", "ImagePullBackOff", "no such image")], 2, NOW)
    assert after.last_transition_time == "2026-11-21T20:00:00Z"
    assert (after.reason, after.message, after.observed_generation) == (
        "ImagePullBackOff",
        "no such image",
        2,
    )


def test_a_status_that_changes_gets_the_time_of_the_change() -> None:
    """True, False and Unknown alike."""
    before = updated((), [Said(READY, "False", "NotReady")], 1, THEN)
    (after,) = updated(before, [Said(READY, "True", "AllReady")], 1, NOW)
    assert after.last_transition_time == "2026-11-21T21:00:00Z"


def test_what_is_not_spoken_of_stays_as_it_was() -> None:
    """In its place, and a new type comes last."""
    before = updated((), [Said(CREATED, "True", "AllCreated"), Said(READY, "True", "R")], 1, THEN)
    after = updated(before, [Said(SUCCEEDED, "True", "Finished")], 2, NOW)
    assert [one.type for one in after] == [CREATED, READY, SUCCEEDED]
    assert after[0] == before[0]


def test_a_run_at_rest_or_over_says_nothing_of_pods_to_come() -> None:
    """Created and Scheduled are dropped, the others stay."""
    before = updated((), [Said(CREATED, "False", "Creating"), Said(READY, "False", "R")], 1, THEN)
    assert [one.type for one in without_pods(before)] == [READY]
