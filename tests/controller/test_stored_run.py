"""Runs as they are remembered."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.controller.runs import raw_run, stored_run
from webhook.controller.stored_run import MOST, MOST_TEXT, RunCache, store
from webhook.errors import InvalidRun
from webhook.run.model import Run
from webhook.run.plan import Plan, plan


def test_a_run_is_remembered_whole_but_for_managed_fields() -> None:
    """They are longer than all the rest, and nobody reads them."""
    raw = raw_run(status={"phase": "Running"})
    stored = store(raw)
    assert (stored.key, stored.uid, stored.version) == ("lab/mnist", "uid-mnist", "5")
    assert (stored.generation, stored.phase, stored.deleted) == (1, "Running", False)
    del raw["metadata"]["managedFields"]
    assert stored.raw() == raw


def test_what_a_list_leaves_out_is_put_back() -> None:
    """Objects in a list may lack kind and apiVersion; one that is written must have them."""
    raw = raw_run()
    whole = store(raw).raw()
    del raw["kind"], raw["apiVersion"]
    assert store(raw).raw() == whole


def test_another_version_is_another_value() -> None:
    """So that a cache tells of it."""
    assert stored_run(version=5) == stored_run(version=5)
    assert stored_run(version=5) != stored_run(version=6)


def test_a_run_that_is_being_deleted_says_so() -> None:
    """It may stay for a while where somebody waits for its pods to go first."""
    raw = raw_run()
    raw["metadata"]["deletionTimestamp"] = "2026-11-21T20:00:00Z"
    assert store(raw).deleted


def nested(depth: int) -> Any:
    """Objects within objects."""
    found: Any = {}
    for _ in range(depth):
        found = {"a": found}
    return found


def test_a_run_that_is_nested_too_deep_is_invalid_and_says_so() -> None:
    """The API server takes it; it must not end the controller. Its status can still be written."""
    stored = stored_run(template={"spec": {"x": nested(300)}}, status={"phase": "Pending"})
    with pytest.raises(InvalidRun, match="nested"):
        RunCache(plan).read(stored).valid_run()
    assert "spec" not in stored.raw()
    assert stored.raw()["status"] == {"phase": "Pending"}


def test_a_run_as_deep_as_can_be_written_is_planned() -> None:
    """Nothing on the way to its pods gives up before the writer does."""
    template = {"spec": {"containers": [{"name": "main", "image": "i"}], "x": nested(240)}}
    made = RunCache(plan).plan(stored_run(template=template))
    assert orjson.dumps(made.pod("worker", 0, 0))


def test_a_run_is_read_once_for_each_version() -> None:
    """A look at a large run must not begin with parsing what has not changed."""
    readings = RunCache(plan)
    first = readings.read(stored_run())
    assert readings.read(stored_run()) is first
    changed = readings.read(stored_run(version=6, status={"phase": "Running"}))
    assert (first.status.phase, changed.status.phase) == ("Pending", "Running")


def test_a_plan_is_made_once_for_each_generation() -> None:
    """A status that was written makes another version, and no other plan."""
    made: list[Run] = []

    def counted(run: Run) -> Plan:
        made.append(run)
        return plan(run)

    readings = RunCache(counted)
    for version in (5, 6):
        readings.plan(stored_run(version=version))
    assert len(made) == 1


def test_the_oldest_is_forgotten() -> None:
    """A thousand runs that are over must not stay in memory."""
    readings = RunCache(plan)
    first = readings.read(stored_run())
    for number in range(MOST):
        readings.read(stored_run(name=f"n{number}"))
    assert readings.read(stored_run()) is not first


def test_large_runs_are_not_kept_together() -> None:
    """The caches are bounded by text, too: 64 Runs of a megabyte would take a gigabyte."""
    large = stored_run(template={"spec": {"x": "y" * MOST_TEXT}})
    readings = RunCache(plan)
    first = readings.read(stored_run(name="small"))
    kept = readings.read(large)
    assert readings.read(large) is kept
    assert readings.read(stored_run(name="small")) is not first


def test_all_errors_are_reported_at_once() -> None:
    """With the path of each, as in a file; and the status is read all the same."""
    stored = stored_run(backoffLimit=-1, disruptionLimit=-1, status={"phase": "Starting"})
    reading = RunCache(plan).read(stored)
    with pytest.raises(InvalidRun) as caught:
        reading.valid_run()
    assert len(caught.value.problems) == 2
    assert any(problem.startswith("spec.backoffLimit: ") for problem in caught.value.problems)
    assert any(problem.startswith("spec.disruptionLimit: ") for problem in caught.value.problems)
    assert reading.status.phase == "Starting"
