"""Runs that are being deleted, and that a finalizer keeps."""

from __future__ import annotations

from dataclasses import replace

from tests.run.scene import Scene, workers
from tests.wording import Wording
from webhook.run.observed import Needs
from webhook.times import to_second


def deleted(scene: Scene) -> Scene:
    """Somebody deletes the Run."""
    metadata = scene.run.metadata.model_copy(update={"deletion_timestamp": to_second(scene.now)})
    scene.run = scene.run.model_copy(update={"metadata": metadata})
    return scene.look()


def test_the_status_of_a_run_that_is_being_deleted_stays_true(wording: Wording) -> None:
    """Its counts and message; the phase is what it was, and nothing is done, charged or told."""
    scene = Scene(**workers(2)).runs()
    did, told = list(scene.did), list(scene.told)
    scene = deleted(scene)
    assert (scene.status.phase, scene.status.replicas_ready) == ("Running", "2/2")
    wording(scene.status.message)
    scene.vanishes("worker-0")
    assert (scene.status.phase, scene.status.replicas_ready) == ("Running", "1/2")
    wording(scene.status.message)
    ready = scene.condition("Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "Deleting")
    scene.exits("worker-1", 1).vanishes("worker-1").later(1000)
    assert (scene.status.phase, scene.status.replicas_ready) == ("Running", "0/2")
    wording(scene.status.message)
    assert (scene.did, scene.told) == (did, told)
    assert not scene.status.incidents
    assert (scene.role("worker").failed, scene.role("worker").disruptions) == (0, 0)


def test_the_end_of_a_run_stays_when_it_is_deleted() -> None:
    """What was is not changed by what becomes of its pods."""
    scene = Scene(**workers(1)).runs().exits("worker-0", 0)
    scene = deleted(scene).vanishes("worker-0")
    assert scene.status.phase == "Succeeded"
    assert scene.status.message == "is being deleted; 0 of 1 pods are there"
    condition = scene.condition("Succeeded")
    assert condition is not None
    assert condition.status == "True"


def test_a_notebook_that_is_being_deleted_counts_the_pod_of_its_deployment() -> None:
    """Such a pod has no role."""
    scene = deleted(Scene(Needs(address="http://mnist"), kind="notebook"))
    assert scene.status.message == "is being deleted; 0 of 1 pods are there"


def test_what_the_pods_of_a_run_that_is_being_deleted_used_is_in_its_status() -> None:
    """Once each is gone, and nobody repeats it. Somebody reads its end before he lets it go."""
    scene = deleted(Scene(**workers(2)).runs().later(30)).goes("worker-0")
    (row,) = scene.status.usage
    assert (row.seconds, row.repeated_seconds) == (30, 0)
    scene.observed = replace(scene.observed, gone=())
    (row,) = scene.later(10).goes("worker-1").status.usage
    assert (row.seconds, row.repeated_seconds) == (70, 0)
