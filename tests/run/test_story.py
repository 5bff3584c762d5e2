"""What a run that goes on says of itself, and which Events that makes."""

from __future__ import annotations

from dataclasses import replace

from tests.run.scene import Scene, led, workers
from tests.wording import Wording, mentions
from webhook.run.observed import Refusal

WORDS = "0/12 nodes are available: 12 node(s) didn't match Pod's node affinity/selector."


def refused(scene: Scene, *refusals: Refusal) -> Scene:
    """The API server refuses to create pods: none of those that are made stays."""
    scene.observed = replace(scene.observed, refusals=refusals)
    return scene.look()


def said(scene: Scene, kind: str) -> tuple[str, str]:
    """Status and reason of a condition."""
    condition = scene.condition(kind)
    assert condition is not None
    return condition.status, condition.reason


def test_the_phases_of_a_run_that_restarts_once() -> None:
    """Pending until a pod has a node, Starting until all run, Restarting while one is down."""
    scene = Scene(**workers(2))
    phases = [scene.status.phase]
    phases.append(scene.runs("worker-0").status.phase)
    phases.append(scene.runs().status.phase)
    phases.append(scene.exits("worker-1", 1).status.phase)
    phases.append(scene.later(10).status.phase)
    phases.append(scene.runs("worker-1").status.phase)
    for index in range(2):
        scene.exits(f"worker-{index}", 0)
    phases.append(scene.status.phase)
    assert phases == [
        *("Pending", "Starting", "Running", "Restarting", "Restarting", "Running", "Succeeded")
    ]


def test_counts_are_told_by_role() -> None:
    """Desired, active, ready, succeeded; and ready of desired for all."""
    scene = Scene(**led("pytorch", 3)).runs("master-0", "worker-1").exits("worker-1", 0)
    worker = scene.role("worker")
    assert (worker.desired, worker.active, worker.ready, worker.succeeded) == (3, 2, 0, 1)
    assert (scene.role("master").active, scene.role("master").ready) == (1, 1)
    assert scene.status.replicas_ready == "1/4"


def test_the_schedulers_reasons_are_told_once_for_all_pods() -> None:
    """How many of how many, and its words."""
    scene = Scene(**workers(3))
    for index in range(2):
        scene.set(f"worker-{index}", unscheduled=WORDS)
    scene.look()
    assert scene.status.message.startswith(f"2 of 3 pods: {WORDS[:10]}")
    assert said(scene, "Scheduled") == ("False", "Unschedulable")
    assert [each.reason for each in scene.told].count("Unschedulable") == 1


def test_a_container_that_waits_is_told_with_its_reason() -> None:
    """Where the node has the pod and cannot start it."""
    scene = Scene(**workers(2))
    scene.set("worker-0", node="node-a", waiting=("ImagePullBackOff", "no image"))
    scene.look()
    assert scene.status.message == "1 of 2 pods: ImagePullBackOff: no image"
    assert said(scene, "Ready") == ("False", "ImagePullBackOff")


def test_a_refused_creation_is_told_in_the_api_servers_words_and_counts_for_nothing() -> None:
    """Against no budget: no program has failed."""
    scene = Scene(**workers(1), backoffLimit=0, disruptionLimit=0).runs()
    words = "exceeded quota: pods=1"
    refused(scene, Refusal("mnist-worker-0", "QuotaExceeded", words))
    assert scene.status.message == f"mnist-worker-0: {words}"
    assert said(scene, "Created") == ("False", "QuotaExceeded")
    assert (scene.role("worker").failed, scene.role("worker").disruptions) == (0, 0)
    assert scene.status.phase == "Running"
    refused(scene)
    assert said(scene, "Created") == ("True", "AllCreated")


def test_a_launcher_waits_until_every_worker_runs(wording: Wording) -> None:
    """And the run says so."""
    replicas = {"launcher": {"count": 1}, "worker": {"count": 2}}
    scene = Scene(framework="mpi", replicas=replicas).runs("worker-0")
    assert scene.pods == ["worker-0", "worker-1"]
    condition = scene.condition("Created")
    assert condition is not None
    assert condition.reason == "WaitingForRoles"
    mentions(condition.message, "2 of 3 pods", "launcher waits", "every worker")
    wording(condition.message)
    assert scene.runs("worker-1").pods == ["launcher-0", "worker-0", "worker-1"]


def test_a_restart_says_what_went_down(wording: Wording) -> None:
    """The last failure's replica and reason."""
    scene = Scene(**workers(2)).runs().exits("worker-1", 137)
    mentions(scene.status.message, "1 of 2 replicas", "mnist-worker-1", "(SIGKILL)")
    wording(scene.status.message)
    assert said(scene, "Created") == ("False", "BackingOff")


def test_a_transition_is_one_event_however_many_pods_take_part() -> None:
    """Never one per pod."""
    scene = Scene(**workers(30), backoffLimit=99).runs()
    for index in range(30):
        scene.set(f"worker-{index}", phase="Failed")
    scene.look()
    assert [(each.type, each.reason) for each in scene.told] == [
        ("Normal", "Begun"),
        ("Normal", "Running"),
        ("Warning", "ReplicaDown"),
    ]
    assert scene.told[-1].message.endswith("; and 29 more")


def test_conditions_tell_the_generation_and_keep_the_time_of_their_last_change() -> None:
    """A status that stays keeps its time, whatever its message becomes."""
    scene = Scene(**workers(2))
    before = scene.condition("Ready")
    after = scene.later(5).runs("worker-0").condition("Ready")
    assert before is not None
    assert after is not None
    assert before.message != after.message
    assert before.last_transition_time == after.last_transition_time
    ready = scene.later(5).runs().condition("Ready")
    assert ready is not None
    assert (ready.status, ready.last_transition_time) == ("True", "2026-11-21T20:15:10Z")
    assert ready.observed_generation == scene.status.observed_generation == 1
