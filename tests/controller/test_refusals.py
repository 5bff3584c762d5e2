"""Creations that were refused: why, and when they are tried again."""

from __future__ import annotations

from random import Random

import pytest

from tests.controller.runs import raw_pod, refused
from tests.wording import Wording, mentions
from webhook.backoff import CREATION_DELAYS
from webhook.controller.refusals import Refusals, name_taken, refusal
from webhook.run.observed import Refusal

QUOTA = 'pods "a" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2'


@pytest.mark.parametrize(
    ("status", "words", "reason"),
    [
        (403, QUOTA, "QuotaExceeded"),
        (403, "failed quota: small: must specify limits.cpu for: main", "QuotaExceeded"),
        (403, 'violates PodSecurity "baseline:latest": host namespaces', "PodSecurity"),
        (400, 'admission webhook "w" denied the request: no such class', "Rejected"),
        (422, "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no", "Rejected"),
        (422, 'Pod "a" is invalid: spec.containers[0].name: Required value', "Invalid"),
        (403, 'User "x" cannot create resource "pods"', "Forbidden"),
        (500, 'failed calling webhook "w": connection refused', "FailedCreate"),
        (404, 'namespaces "lab" not found', "FailedCreate"),
    ],
)
def test_a_refusal_has_a_reason_and_the_servers_message(
    status: int, words: str, reason: str
) -> None:
    """As the admission plugins word it."""
    assert refusal("a", refused(status, words=words)) == Refusal("a", reason, words)


@pytest.mark.parametrize("status", [None, 409, 429, 502, 503, 504])
def test_a_server_error_is_not_a_refusal(status: int | None) -> None:
    """It passes; so does a quota that two creations wanted to change at once."""
    assert refusal("a", refused(status, words="try again")) is None


def test_a_taken_name_is_reported_with_its_owner(wording: Wording) -> None:
    """So that a person knows whom to ask."""
    other = raw_pod(1, run_uid="other")
    message = name_taken("Pod", other).message
    mentions(message, "mnist-worker-1", "Run mnist")
    wording(message)
    del other["metadata"]["ownerReferences"]
    taken = name_taken("Pod", other)
    assert (taken.name, taken.reason) == ("mnist-worker-1", "NameTaken")
    assert "Run mnist" not in taken.message
    wording(taken.message)


class Clocked:
    """Refusals with a clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 100.0
        self.refusals = Refusals(clock=lambda: self.now, random=Random(1))


def test_a_refusal_holds_back_all_creations_of_its_run_and_of_no_other() -> None:
    """What meets one pod would meet the next."""
    clocked = Clocked()
    assert clocked.refusals.note("u", [], [Refusal("a", "QuotaExceeded", QUOTA)])
    assert 0 < clocked.refusals.pause("u", "b") <= CREATION_DELAYS.first * 1.5
    assert clocked.refusals.pause("other", "a") == 0.0
    assert [one.name for one in clocked.refusals.refusals_of("u")] == ["a"]


def test_a_name_that_is_taken_holds_back_that_name_alone() -> None:
    """The others are none the worse for it."""
    clocked = Clocked()
    clocked.refusals.note("u", ["b"], [Refusal("a", "NameTaken", "")])
    assert clocked.refusals.pause("u", "a") > 0
    assert clocked.refusals.pause("u", "b") == 0.0
    clocked.refusals.note("u", ["c"], [])
    assert [one.name for one in clocked.refusals.refusals_of("u")] == ["a"]


def test_pauses_grow_up_to_a_minute_and_reset_after_a_success() -> None:
    """Nobody tells when a quota is raised."""
    clocked, pauses = Clocked(), []
    for _ in range(12):
        clocked.refusals.note("u", [], [Refusal("a", "QuotaExceeded", QUOTA)])
        pauses.append(clocked.refusals.pause("u", "a"))
        clocked.now += pauses[-1]
        assert clocked.refusals.pause("u", "a") == 0.0
    assert pauses[0] <= CREATION_DELAYS.first * 1.5
    assert all(
        CREATION_DELAYS.longest * 0.5 <= pause <= CREATION_DELAYS.longest * 1.5
        for pause in pauses[-3:]
    )
    assert clocked.refusals.note("u", ["a"], [])
    clocked.refusals.note("u", [], [Refusal("a", "QuotaExceeded", QUOTA)])
    assert clocked.refusals.pause("u", "a") <= CREATION_DELAYS.first * 1.5


def test_refusals_of_one_moment_are_one_pause() -> None:
    """Thirty that were under way together do not double it thirty times."""
    clocked = Clocked()
    many = [Refusal(f"p{index}", "QuotaExceeded", QUOTA) for index in range(30)]
    clocked.refusals.note("u", [], many)
    assert clocked.refusals.pause("u", "p0") <= CREATION_DELAYS.first * 1.5
    assert len(clocked.refusals.refusals_of("u")) == 30


def test_a_repeated_refusal_is_not_reported_again() -> None:
    """The status says it already."""
    clocked = Clocked()
    one = Refusal("a", "QuotaExceeded", QUOTA)
    assert clocked.refusals.note("u", [], [one])
    clocked.now += CREATION_DELAYS.longest
    assert not clocked.refusals.note("u", [], [one])
    assert not clocked.refusals.note("other", ["b"], [])


def test_when_nothing_is_to_be_created_nothing_is_remembered() -> None:
    """Of a run that is over, or gone."""
    clocked = Clocked()
    clocked.refusals.note("u", [], [Refusal("a", "Invalid", "")])
    assert clocked.refusals.next("u") is not None
    assert clocked.refusals.forget("u")
    assert not clocked.refusals.forget("u")
    assert clocked.refusals.next("u") is None
