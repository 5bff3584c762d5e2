"""A stored Run is read by a version that may be another than its writer's."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.controller.runs import raw_run
from tests.run.other_versions import STATUS
from webhook.run.model import RunStatus
from webhook.run.model.status import UNDERSTOOD
from webhook.run.reading import held_status, is_understood, read_run

NOW = datetime(2026, 11, 21, 20, 15, tzinfo=UTC)


def test_a_run_of_this_version_is_understood() -> None:
    """Nothing is said of it."""
    reading = read_run(raw_run(status=STATUS))
    assert reading.valid_run().status == reading.status == RunStatus.read(STATUS)
    assert reading.hold() is None
    assert reading.report(reading.status, 1, NOW) is reading.status


def test_the_spec_is_read_without_its_unknown_fields() -> None:
    """For commands, which show what is known of it."""
    reading = read_run(raw_run(ring=True, backoffLimit=7))
    assert reading.run is not None
    assert reading.run.spec.backoff_limit == 7
    assert reading.unknown == ("spec.ring: this version knows no such field",)


def test_a_spec_that_is_wrong_is_no_spec_of_another_version() -> None:
    """Its author is told; and the status is read all the same."""
    reading = read_run(raw_run(backoffLimit=-1, status=STATUS))
    assert (reading.run, reading.unknown) == (None, ())
    assert [each.partition(":")[0] for each in reading.problems] == ["spec.backoffLimit"]
    assert reading.status.restarts == 2


def test_a_condition_of_a_run_that_is_held_changes_with_its_reason_alone() -> None:
    """Its time is that of the first look; nothing else in the status moves."""
    held = read_run(raw_run(ring=True)).hold()
    assert held is not None
    first = held_status(STATUS, held, 1, NOW)
    assert held_status(first, held, 1, datetime.now(UTC)) == first
    assert not is_understood(first)
    assert {**first, "conditions": STATUS["conditions"], "message": STATUS["message"]} == STATUS


def test_the_condition_says_when_all_is_understood_again() -> None:
    """And stays, as one that waits for it wants to see it."""
    held = read_run(raw_run(ring=True)).hold()
    assert held is not None
    reading = read_run(raw_run(status=held_status(STATUS, held, 1, NOW)))
    after = reading.report(reading.status, 1, NOW)
    assert {each.type: each.status for each in after.conditions}[UNDERSTOOD] == "True"


def test_pods_that_restarted_under_a_version_without_usage_are_unseen() -> None:
    """Once: this version then writes `usage`, though it be empty."""
    older = {**STATUS, "restarts": 3, "unseen": 0}
    del older["usage"]
    status = read_run(raw_run(status=older)).status
    assert (status.unseen, status.usage) == (3, ())
    stored = {**status.model_copy(update={"restarts": 5}).to_json()}
    assert stored["usage"] == []
    assert read_run(raw_run(status=stored)).status.unseen == 3
    assert read_run(raw_run(status=older, backend="jobset")).status.unseen == 0
    assert "usage" not in RunStatus().to_json()
