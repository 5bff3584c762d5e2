"""Large Runs that are suspended, wait for a queue, or are over, at a real API server.

The controller keeps little of them; all that it does about them goes on.
"""

from __future__ import annotations

from tests.cluster.live_runs import (
    ALONE,
    CONTAINER,
    LiveRun,
    StartInSpace,
    create_run,
    run_manifest,
)
from tests.cluster.spaces import Space, metric
from tests.eventually import eventually
from webhook import metric_names, names
from webhook.controller.stored_run import store

pytest_plugins = ["tests.cluster.run_fixtures"]

NOTE = "example.dev/note"
LONG = "x" * 200_000
LARGE = {"metadata": {"annotations": {NOTE: LONG}}, "spec": {"containers": [CONTAINER]}}


def large(space: Space, name: str, **spec: object) -> LiveRun:
    return create_run(space, name, template=LARGE, **spec)


def kept(live: LiveRun) -> int:
    """The bytes that a controller keeps of the Run as it is stored."""
    return len(store(live.run()).text)


def test_a_suspended_run_is_resumed_with_all_that_was_written(run_space: Space) -> None:
    """It was edited meanwhile, and is suspended again and resumed as often as its owner wants."""
    live = large(run_space, "paused", suspend=True)
    for _ in range(2):
        live.until_phase("Suspended")
        live.until("little is kept of it", lambda: kept(live) < 3_000)
        run_space.patch(names.RUNS, live.name, {"metadata": {"labels": {"team": "vision"}}})
        live.set(suspend=False)
        [pod] = live.until_running("master-0").values()
        assert pod["metadata"]["annotations"][NOTE] == LONG
        live.set(suspend=True)
    live.until("its pods are gone", lambda: live.pods() == {})
    run_space.delete(names.RUNS, live.name)
    live.until_gone()


def test_a_run_that_is_over_keeps_its_pod_and_is_deleted_in_time(run_space: Space) -> None:
    """The time is given when it is over for long."""
    live = large(run_space, "done")
    live.until_running("master-0")
    live.ends("master-0", 0)
    live.until_phase("Succeeded")
    assert kept(live) < 3_000
    assert [*live.pods()] == ["master-0"]
    live.set(ttlSecondsAfterFinished=1)
    live.until_gone()


def test_a_finalizer_keeps_a_run_whose_status_says_what_is_left(run_space: Space) -> None:
    """Whatever its phase was."""
    live = large(run_space, "kept")
    live.until_running("master-0")
    hold = {"metadata": {"finalizers": ["example.dev/hold"]}}
    run_space.patch(names.RUNS, live.name, hold)
    run_space.kubectl("delete", "run", live.name, "--wait=false")
    live.until("it says so", lambda: "is being deleted" in str(live.status.get("message")))
    assert kept(live) < 3_000
    run_space.patch(names.RUNS, live.name, {"metadata": {"finalizers": []}})
    live.until_gone()


def test_a_run_that_waits_for_a_queue_runs_when_it_leaves_it(run_space: Space) -> None:
    """With the rights of an installation, the whole Run is read then."""
    manifest = run_manifest("waits", template=LARGE)
    manifest["metadata"]["labels"] = {names.KUEUE_QUEUE: "ml"}
    run_space.create(manifest)
    live = LiveRun(run_space, "waits")
    live.until_phase("Suspended")
    live.until("little is kept of it", lambda: kept(live) < 3_000)
    label = {"metadata": {"labels": {names.KUEUE_QUEUE: None}}}
    run_space.patch(names.RUNS, live.name, label)
    [pod] = live.until_running("master-0").values()
    assert pod["metadata"]["annotations"][NOTE] == LONG


def test_a_controller_that_starts_beside_many_reads_none_of_them(
    bare_space: Space, start_in_space: StartInSpace
) -> None:
    """But for the lists. Then it goes on with each."""
    first = start_in_space("first-of-idle", *ALONE)
    runs = [large(bare_space, f"r{number}", suspend=True) for number in range(60)]
    for live in runs:
        live.until_phase("Suspended")
    bare_space.plane.stop_component(first.name)
    port = start_in_space("second-of-idle", *ALONE).health_port
    done = metric_names.RECONCILES
    eventually("it has looked at all", lambda: metric(port, done) >= len(runs))
    assert metric(port, metric_names.API_REQUESTS, verb="GET") < len(runs)
    runs[7].set(suspend=False)
    runs[7].until_running("master-0")
    bare_space.kubectl("delete", "runs", "--all")
    runs[7].until_gone()
