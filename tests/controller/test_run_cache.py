"""From remembered Runs to typed ones and their plans."""

from __future__ import annotations

import pytest

from tests.controller.runs import stored_run
from webhook.controller.run_cache import MOST, RunCache, status_of
from webhook.errors import InvalidRun
from webhook.run.model import Run
from webhook.run.plan import Plan, plan


def test_a_run_is_read_once_for_each_version() -> None:
    """A look at a large run must not begin with parsing what has not changed."""
    readings = RunCache(plan)
    first = readings.run(stored_run())
    assert readings.run(stored_run()) is first
    changed = readings.run(stored_run(version=6, status={"phase": "Running"}))
    assert (first.status.phase, changed.status.phase) == ("Pending", "Running")


def test_a_plan_is_made_once_for_each_generation() -> None:
    """A status that was written makes another version, and no other plan."""
    made: list[Run] = []

    def counted(run: Run) -> Plan:
        made.append(run)
        return plan(run)

    readings = RunCache(counted)
    for version in (5, 6):
        readings.plan(readings.run(stored_run(version=version)))
    assert len(made) == 1


def test_the_oldest_is_forgotten() -> None:
    """A thousand runs that are over must not stay in memory."""
    readings = RunCache(plan)
    first = readings.run(stored_run())
    for number in range(MOST):
        readings.run(stored_run(name=f"n{number}"))
    assert readings.run(stored_run()) is not first


def test_everything_that_is_wrong_is_told_at_once() -> None:
    """With the path of each, as in a file."""
    stored = stored_run(backoffLimit=-1, frame="jax", status={"phase": "Starting"})
    with pytest.raises(InvalidRun) as caught:
        RunCache(plan).run(stored)
    assert len(caught.value.problems) == 2
    assert any(problem.startswith("spec.backoffLimit: ") for problem in caught.value.problems)
    assert any(problem.startswith("spec.frame: ") for problem in caught.value.problems)
    assert status_of(stored).phase == "Starting"


def test_a_status_that_cannot_be_read_is_an_empty_one() -> None:
    """Somebody else wrote it."""
    assert status_of(stored_run(status={"phase": "Sleeping"})).phase == "Pending"
