"""Differences of many pods, put together and summed."""

from __future__ import annotations

from tests.comparison.worlds import NODES, arrival, different
from tests.policy_tests.writing import policy
from webhook.comparison.difference_report import JudgedPod, Maker, report

REJECTED = different(
    [],
    [policy("amd64", "requirements: {nodeSelector: {arch: amd64}}")],
    arrival(nodeSelector={"arch": "arm64"}),
)
MOVED = different(
    [],
    [policy("one", "defaults: {schedulerName: s}"), policy("two", "defaults: {labels: {a: b}}")],
    arrival(),
)
STRANDED = different([], [policy("p", "overrides: {nodeSelector: {pool: x}}")], arrival(), NODES)
JOB = Maker("Job/train", "research", "f.yaml:1:1", count=4)
POD = Maker("Pod/a", "research", "f.yaml:9:1", live=True)
OTHER = Maker("Pod/a", "team", "f.yaml:20:1")


def test_pods_that_are_alike_stand_together() -> None:
    """Of one namespace and one difference; of one object by their indexes."""
    found = report(
        [
            JudgedPod(JOB, 2, 0, MOVED),
            JudgedPod(JOB, 0, 0, MOVED),
            JudgedPod(JOB, 3, 7, MOVED),
            JudgedPod(POD, 0, 0, MOVED),
            JudgedPod(OTHER, 0, 0, MOVED),
        ]
    )
    first, second = found.changes
    assert [(some.maker, some.indexes, some.more) for some in first.pods] == [
        (JOB, (0, 2, 3), 7),
        (POD, (0,), 0),
    ]
    assert (first.count, second.namespace, second.count) == (11, "team", 1)


def test_what_hurts_comes_first() -> None:
    """Rejections, then pods without a node, then those placed differently."""
    found = report(JudgedPod(POD, 0, 0, each) for each in (MOVED, STRANDED, REJECTED))
    assert [change.difference.kind for change in found.changes] == [
        "rejected",
        "unplaceable",
        "moved",
    ]
    assert found.stranded == 1


def test_sums_go_by_namespace_and_policy() -> None:
    """A pod that differs by two policies stands in the rows of both, and counts once in all."""
    found = report([JudgedPod(JOB, 0, 2, MOVED), JudgedPod(OTHER, 0, 0, REJECTED)])
    assert [(row.namespace, row.policy, dict(row.counts)) for row in found.rows] == [
        ("research", "one", {"moved": 3}),
        ("research", "two", {"moved": 3}),
        ("team", "amd64", {"rejected": 1}),
    ]
    assert (found.differing, dict(found.counts)) == (4, {"rejected": 1, "moved": 3})


def test_pods_that_stay_are_only_counted() -> None:
    """Those of no run apart."""
    found = report(
        [
            JudgedPod(JOB, 0, 3, "same"),
            JudgedPod(POD, 0, 0, "rejected"),
            JudgedPod(OTHER, 0, 0, "no run"),
        ]
    )
    assert (found.total, found.rejected, found.others, found.live) == (5, 1, 1, 1)
    assert (found.changes, found.rows) == ((), ())
