"""Time that is repeated because replicas run again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.run.scene import Scene, led, workers
from webhook.run.facts import collect_facts
from webhook.run.observed import Exit
from webhook.run.usage import live_usage, sum_usage
from webhook.times import to_second


@pytest.mark.parametrize(("scope", "repeated"), [("Replica", 40), ("Run", 70)])
def test_what_a_finished_replica_did_is_repeated_if_it_runs_again(
    scope: str, repeated: int
) -> None:
    """Its time is there once: what was useful becomes repeated."""
    scene = Scene(**workers(2), restartScope=scope).runs()
    scene.later(30).exits("worker-0", 0)
    (row,) = scene.status.usage
    assert (row.seconds, row.repeated_seconds) == (30, 0)
    scene.later(10).exits("worker-1", 1)
    (row,) = scene.status.usage
    assert (row.seconds, row.repeated_seconds) == (70, repeated)


@pytest.mark.parametrize(
    ("ends", "more"),
    [
        *(("deleted", 20), ("exited", 20), ("silent", 20), ("collected", 20)),
        *(("exited beside others", 20), ("exited before", -5), ("unseen", 0)),
    ],
)
@pytest.mark.parametrize("why", ["suspended", "restarted", "over", "failed"])
def test_the_time_of_a_pod_that_the_controller_ends_lasts_until_its_end(
    why: str, ends: str, more: int
) -> None:
    """Whenever the controller decided that, and however late its requests are."""
    spec = workers(2) if why == "restarted" else led("pytorch")
    scene = Scene(**spec, restartScope="Run", backoffLimit=0 if why == "failed" else 3)
    first, last = scene.pods
    scene.runs_on(**{first.replace("-", "_"): "a", last.replace("-", "_"): "b"})
    scene.held = True
    scene.later(30)
    if why == "suspended":
        scene.set(first, deleted_at=to_second(scene.now))
        scene.spec(suspend=True)
    else:
        scene.exits(first, 0 if why == "over" else 1)
    (row,) = scene.status.usage
    assert row.seconds == 60
    scene.later(20)
    end = to_second(scene.now - timedelta(seconds=25 if ends == "exited before" else 0))
    scene.later(3)
    live = live_usage(
        scene.status, collect_facts(scene.run, scene.observed), scene.observed, scene.now
    )
    assert sum_usage((*scene.status.usage, *live))[0].seconds == 83
    match ends:
        case "deleted":
            scene.set(last, deleted_at=end)
        case "silent":
            scene.node("b", ready="Unknown", since=end)
        case "collected":
            scene.set(last, phase="Failed", disruption=("DeletionByPodGC", "", end))
        case "exited beside others":
            scene.set(last, finished_at=end, deleted_at=to_second(scene.now))
        case "unseen":
            scene.vanishes(last)
        case _:
            scene.set(last, phase="Succeeded", exit=Exit("main", 0, finished_at=end))
    scene.look().later(100)
    (row,) = scene.status.usage
    assert row.seconds == 60 + more
    repeated = why in ("restarted", "failed")
    assert row.repeated_seconds == (row.seconds if repeated else 0)
    assert not any(each.ending for each in scene.status.replicas.values())
