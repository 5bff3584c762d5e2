"""What is said of a workload's pods: how many, which of them, and each thing once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.wording import Wording, mentions
from webhook.admission.workload_warnings import (
    MOST_REPLICAS,
    Group,
    PodOutcome,
    check_replicas,
    nothing_of,
    write_warnings,
)
from webhook.decision.advice import MAX_CHARACTERS
from webhook.workloads.object import Object
from webhook.workloads.template import PodTemplate, ReplicaAdditions

REFUSED = PodOutcome("fairlead: policy p: no")
TOLD = PodOutcome(warnings=("policy p: mind it",))
FINE = PodOutcome()


def some(count: int | None = 1, part: str = "", *, alike: bool = False) -> PodTemplate:
    """Pods that are nothing but their index; all are equal, or none are."""

    def made(index: int) -> ReplicaAdditions:
        return ReplicaAdditions(pod={"index": 0 if alike else index})

    return PodTemplate(Object("f", {"kind": "Job"}), ("spec",), part, count, made)


def told(*templates: PodTemplate, outcome: Callable[[int], PodOutcome]) -> list[str]:
    """What is said of Job train in ml, whose pods meet this outcome by their index."""
    found: list[Group] = []
    for pods in templates:
        for _ in check_replicas(pods, lambda pod: outcome(pod["index"]), found):
            pass
    return write_warnings("Job", "train", "ml", found)


@pytest.mark.parametrize(
    ("count", "subject"), [(3, "3 pods"), (1, "the pod"), (0, "pods"), (None, "pods")]
)
def test_a_rejection_says_of_how_many_pods(
    count: int | None, subject: str, wording: Wording
) -> None:
    """With who speaks, and the policy's reason without saying that again."""
    (said,) = told(some(count), outcome=lambda _: REFUSED)
    assert said.startswith(f"fairlead: {subject} ")
    assert said.endswith("rejected: policy p: no")
    mentions(said, "Job train", "ml")
    wording(said)


def test_nothing_is_reported_when_nothing_is_wrong() -> None:
    """Else nobody would read it."""
    assert told(some(8), outcome=lambda _: FINE) == []


def test_a_warning_names_the_workload(wording: Wording) -> None:
    """Many come of one apply."""
    (said,) = told(some(8), outcome=lambda _: TOLD)
    mentions(said, "fairlead: Job train", ": policy p: mind it")
    wording(said)


def test_a_warning_about_some_pods_names_them(wording: Wording) -> None:
    """By their index; those after the last that was looked at are like it."""
    (said,) = told(some(4), outcome=lambda index: FINE if index == 1 else REFUSED)
    mentions(said, "Job train", "pods 0, 2-3 of 4", "rejected: policy p: no")
    wording(said)
    (said,) = told(some(4), outcome=lambda index: TOLD if index < 2 else FINE)
    mentions(said, "Job train", "pods 0-1 of 4", ": policy p: mind it")
    wording(said)


def test_a_warning_for_all_parts_appears_once() -> None:
    """A master and its workers come of one object."""
    parts = some(1, "master"), some(4, "worker")
    (said,) = told(*parts, outcome=lambda _: REFUSED)
    mentions(said, "5 pods", "Job train", "rejected: policy p: no")
    assert told(*parts, outcome=lambda _: TOLD) == told(some(1), outcome=lambda _: TOLD)


def test_what_one_part_meets_names_it(wording: Wording) -> None:
    """Whoever reads it has to know which template to change."""
    parts = some(1, "master"), some(4, "worker")
    (said,) = told(*parts, outcome=lambda index: TOLD if index > 0 else FINE)
    mentions(said, "Job train", "worker 1-3 of 4", ": policy p: mind it")
    wording(said)
    found = [Group(parts[0], FINE, [0]), Group(parts[1], REFUSED, [0, 1, 2, 3])]
    (said,) = write_warnings("Job", "train", "ml", found)
    mentions(said, "Job train", "ml", "worker × 4", "rejected: policy p: no")
    wording(said)


def test_pods_that_are_made_alike_are_judged_once() -> None:
    """A Deployment of a thousand is one decision."""
    judged: list[int] = []

    def outcome(index: int) -> PodOutcome:
        judged.append(index)
        return REFUSED

    (said,) = told(some(1000, alike=True), outcome=outcome)
    mentions(said, "1000 pods", "Job train", "rejected: policy p: no")
    assert judged == [0]


def test_no_workload_is_looked_at_without_end() -> None:
    """After some hundred replicas the others are taken to be like the last."""
    judged: list[int] = []

    def outcome(index: int) -> PodOutcome:
        judged.append(index)
        return FINE if index == 0 else REFUSED

    (said,) = told(some(10**9), outcome=outcome)
    mentions(said, f"pods 1-{10**9 - 1} of {10**9}", "rejected: policy p: no")
    assert len(judged) == MOST_REPLICAS


def test_who_stops_looking_has_what_was_found() -> None:
    """The rest counts as like the last: better a word too many than none."""
    found: list[Group] = []
    steps = check_replicas(some(10), lambda _: REFUSED, found)
    next(steps)
    (said,) = write_warnings("Job", "train", "ml", found)
    mentions(said, "10 pods", "Job train", "rejected: policy p: no")


def test_rejections_come_first() -> None:
    """A pod that is refused may be warned of, too."""
    both = PodOutcome("fairlead: no", ("mind it",))
    first, second = told(some(), outcome=lambda _: both)
    assert "rejected" in first
    assert "mind it" in second


@pytest.mark.parametrize(
    "said",
    [
        told(some(300), outcome=lambda index: PodOutcome(warnings=(f"{index:0100}",))),
        told(some(300), outcome=lambda index: PodOutcome(f"fairlead: {index:02000}")),
        nothing_of("Run", "train", [f"{number:0200}" for number in range(100)]),
    ],
    ids=["warnings", "rejections", "problems"],
)
def test_all_of_it_fits_into_an_answer(said: Sequence[str]) -> None:
    """The API server would cut it anywhere else."""
    assert sum(map(len, said)) <= MAX_CHARACTERS
    assert "more warnings" in said[-1]


def test_a_workload_without_pods_gets_the_reason() -> None:
    """A Run of which no pod can be made looks fine to the API server."""
    (said,) = nothing_of("Run", "train", ["spec.ports: want one"])
    assert said.startswith("fairlead: Run train ")
    assert said.endswith(": spec.ports: want one")
