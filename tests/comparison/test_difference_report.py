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
    assert [(some.object, some.pods, some.indexes, some.count) for some in first.objects] == [
        ("Job/train", "4 pods", (0, 2, 3), 10),
        ("Pod/a", "", (0,), 1),
    ]
    assert (first.count, second.namespace, second.count) == (11, "team", 1)


def test_what_hurts_comes_first() -> None:
    """Rejections, then pods without a node, then those placed differently."""
    found = report(JudgedPod(POD, 0, 0, each) for each in (MOVED, STRANDED, REJECTED))
    assert [each.change for each in found.changes] == [
        "rejected",
        "unplaceable",
        "moved",
    ]
    assert found.pods.without_node == 1


def test_sums_go_by_namespace_and_policy() -> None:
    """A pod that differs by two policies stands in the rows of both, and counts once in all."""
    found = report([JudgedPod(JOB, 0, 2, MOVED), JudgedPod(OTHER, 0, 0, REJECTED)])
    assert [(row.namespace, row.policy, row.rejected, row.moved) for row in found.summary] == [
        ("research", "one", 0, 3),
        ("research", "two", 0, 3),
        ("team", "amd64", 1, 0),
    ]
    assert (found.pods.differing, found.pods.rejected, found.pods.moved) == (4, 1, 3)


def test_pods_that_stay_are_only_counted() -> None:
    """Those of no run apart."""
    found = report(
        [
            JudgedPod(JOB, 0, 3, "same"),
            JudgedPod(POD, 0, 0, "rejected"),
            JudgedPod(OTHER, 0, 0, "no run"),
        ]
    )
    assert found.pods[:6] == (5, 1, 1, 1, 0, 0)
    assert (found.changes, found.summary) == ([], [])
