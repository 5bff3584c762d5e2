"""Runs for a queue in a cluster without Kueue; with it: tests/operators/test_queued_runs.py."""

from __future__ import annotations

from tests.cluster.live_runs import LiveRun, run_manifest
from tests.cluster.spaces import Space
from tests.wording import mentions
from webhook import names

pytest_plugins = ["tests.cluster.run_fixtures"]


def test_it_says_that_there_is_no_kueue_and_runs_without_the_label(run_space: Space) -> None:
    """Nobody asked for pods without quota; the message has both cures."""
    manifest = run_manifest("queued")
    manifest["metadata"]["labels"] = {names.KUEUE_QUEUE: "ml"}
    run_space.create(manifest)
    run = LiveRun(run_space, "queued")
    run.until_phase("Suspended")
    message = str(run.status["message"])
    mentions(message, "queue ml", "the cluster has no Kueue", "install it, or remove the label")
    assert run.condition("Admitted")["reason"] == "QueueUnknown"
    assert run.pods() == {}
    run_space.patch(names.RUNS, run.name, {"metadata": {"labels": {names.KUEUE_QUEUE: None}}})
    run.until_running("master-0")
    assert run.condition("Admitted")["reason"] == "NotQueued"


def test_a_label_that_a_running_run_gets_waits_for_its_resumption(run_space: Space) -> None:
    """Its pods have begun without quota, and nobody asked to stop them."""
    run_space.create(run_manifest("late"))
    run = LiveRun(run_space, "late")
    before = run.until_running("master-0")["master-0"]["metadata"]["uid"]
    run_space.patch(names.RUNS, run.name, {"metadata": {"labels": {names.KUEUE_QUEUE: "ml"}}})
    run.ends("master-0", 1)
    run.until("it has restarted", lambda: run.status.get("restarts") == 1)
    after = run.until_running("master-0")["master-0"]["metadata"]["uid"]
    assert after != before
    run.set(suspend=True)
    run.until("its pods are gone", lambda: run.pods() == {})
    run.set(suspend=False)
    run.until("it asks its queue", lambda: "queue ml" in str(run.status.get("message")))
    assert run.pods() == {}
