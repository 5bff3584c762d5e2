"""Differences of many pods, put together and summed."""

from __future__ import annotations

from tests.comparison.worlds import arrival, different
from tests.policy_tests.writing import policy
from webhook.comparison.difference_report import JudgedPod, Maker, report

MOVED = different(
    [],
    [policy("one", "defaults: {schedulerName: s}"), policy("two", "defaults: {labels: {a: b}}")],
    arrival(),
)
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
