"""Runs as they are remembered."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.bench.stored_runs import measure
from tests.controller.runs import TEMPLATE, Json, raw_run, stored_run
from webhook.controller.stored_run import CACHED_PLANS, MOST_TEXT, RunCache, store
from webhook.errors import InvalidRun
from webhook.run.model import Run
from webhook.run.plan import Plan, plan
from webhook.run.reading import MOST_BYTES
from webhook.run.run_documents import run_of


def test_a_run_is_remembered_whole_but_for_metadata_of_others() -> None:
    """They may be longer than all the rest, and nobody reads them."""
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


MANY = {f"example.dev/{number}": "x" * 60 for number in range(5_000)}
LARGE: Json = {"metadata": {"annotations": MANY}, **TEMPLATE}


def test_of_a_run_that_is_too_large_no_text_is_kept() -> None:
    """Its status can still be written."""
    stored = stored_run(status={"phase": "Pending"}, template=LARGE)
    assert len(stored.text) < 500
    assert (stored.key, stored.version, stored.reason) == ("lab/mnist", "5", "TooLarge")
    assert stored.raw()["status"] == {"phase": "Pending"}
    with pytest.raises(InvalidRun, match="want at most 262144"):
        RunCache(plan).plan(stored)


@pytest.mark.parametrize("where", ["labels", "finalizers", "annotations"])
def test_metadata_make_no_run_too_large_and_are_not_kept(where: str) -> None:
    """Anybody who may write the Run may write them at any time, and would hold it."""
    raw = raw_run(status={"phase": "Running", "startTime": "2026-11-21T20:00:00Z"})
    before = store(raw).text
    raw["metadata"][where] = [*MANY] * 4 if where == "finalizers" else MANY
    assert store(raw).text == before


@pytest.mark.parametrize("template", [LARGE, {"spec": {"x": nested(300)}}])
def test_of_a_run_that_has_begun_is_kept_what_suspends_and_ends_it(template: Json) -> None:
    """An earlier version began it."""
    status = {"phase": "Running", "startTime": "2026-11-21T20:00:00Z"}
    stored = stored_run(status=status, template=template, activeDeadlineSeconds=40)
    assert len(stored.text) < 1000
    assert stored.problem
    run = RunCache(plan).read(stored).valid_run()
    assert (run.spec.active_deadline_seconds, run.spec.roles["worker"].count) == (40, 3)


def test_a_file_with_a_run_that_is_too_large_is_refused_before_it_is_written() -> None:
    """Whatever plans it says so: previews, `run create` and the webhook's warning."""
    raw = raw_run(
        template={
            "spec": {
                "containers": [{**TEMPLATE["spec"]["containers"][0], "args": ["x" * MOST_BYTES]}]
            }
        }
    )
    with pytest.raises(InvalidRun, match="want at most 262144"):
        plan(run_of(raw, "lab"))


def test_runs_that_are_too_large_take_no_memory() -> None:
    """One tenant may have hundreds of them."""
    found = measure(1_200_000, 60, "Running")
    assert found.held - found.before < 30


def test_the_memory_of_runs_is_returned_when_they_are_deleted() -> None:
    """Else a tenant who made many once would take it for ever."""
    found = measure(250_000, 150, "Running")
    assert found.held - found.before > 30
    assert found.after - found.before < (found.held - found.before) / 2


def test_a_large_status_makes_no_run_too_large() -> None:
    """The controller writes it."""
    raw = raw_run(status={"phase": "Running", "message": "x" * 300_000})
    assert store(raw).problem == ""


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
    for number in range(CACHED_PLANS):
        readings.read(stored_run(name=f"n{number}"))
    assert readings.read(stored_run()) is not first


def test_large_runs_are_not_kept_together() -> None:
    """The caches are bounded by text, too: 64 Runs of a megabyte would take a gigabyte."""
    template = {"spec": {"x": "y" * (MOST_BYTES - 1000)}}
    readings = RunCache(plan)
    first = readings.read(stored_run(name="small"))
    for number in range(1 + MOST_TEXT // MOST_BYTES):
        large = stored_run(name=f"large-{number}", template=template)
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
