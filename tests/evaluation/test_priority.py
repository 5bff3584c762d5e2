"""A pod's priority and preemptionPolicy are held against its PriorityClass, as the plugin does."""

from __future__ import annotations

import pytest

from tests.objects import Json
from webhook.evaluation.plugins import PriorityFault, priority_fault

HIGH: Json = {"high": {"value": 1000}, "quiet": {"value": 5, "preemptionPolicy": "Never"}}
NODE = "system-node-critical"


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"},
        {"priorityClassName": "high", "priority": 1000},
        {"priorityClassName": "quiet", "priority": 5, "preemptionPolicy": "Never"},
        {"priorityClassName": NODE, "priority": 2_000_001_000},
        {"priorityClassName": "missing"},
    ],
)
def test_what_the_class_gives_may_be_written(spec: Json) -> None:
    """And so may nothing."""
    assert priority_fault(spec, HIGH, "") == PriorityFault()


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"priority": 3}, "priority: 3 is not 0"),
        ({"preemptionPolicy": "Never"}, "preemptionPolicy: Never is not PreemptLowerPriority"),
        ({"priorityClassName": "high", "priority": 0}, "priority: 0 is not 1000"),
        ({"priorityClassName": NODE, "preemptionPolicy": "Never"}, "preemptionPolicy: Never is"),
        ({"priorityClassName": "quiet", "preemptionPolicy": "PreemptLowerPriority"}, "Never"),
    ],
)
def test_what_the_class_contradicts_is_refused(spec: Json, wanted: str) -> None:
    """The text has the field, both values, and the class."""
    fault = priority_fault(spec, HIGH, "")
    assert wanted in fault.reason
    assert spec.get("priorityClassName", "without a PriorityClass") in fault.reason
    assert not fault.unread


def test_the_default_class_counts_where_none_is_named() -> None:
    assert priority_fault({"priority": 1000}, HIGH, "high") == PriorityFault()
    assert "PriorityClass high" in priority_fault({"priority": 0}, HIGH, "high").reason


@pytest.mark.parametrize("known", [None, {"high": {}}])
def test_a_class_that_is_not_read_leaves_it_unknown(known: Json | None) -> None:
    """Without values, too; nothing is unknown of a pod that writes neither field."""
    named = {"priorityClassName": "high"}
    assert priority_fault({**named, "priority": 1000}, known, "").unread == "PriorityClass high"
    assert priority_fault(named, known, "") == PriorityFault()
    assert priority_fault({"priority": 3}, None, "").unread == "the default PriorityClass"
