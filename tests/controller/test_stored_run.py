"""Runs as they are remembered."""

from __future__ import annotations

from tests.controller.runs import raw_run, stored_run
from webhook.controller.stored_run import store


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
