"""What happened to replicas: what counts, and with which history their pods are created."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.run.scene import BEGIN, Scene, led, workers
from tests.wording import Wording, mentions
from webhook.placement.fallback import parse_history
from webhook.run.actions import CreatePod, DeletePod
from webhook.run.reconcile import LOOK_AGAIN_SECONDS
from webhook.times import to_second

SCOPES = ("Replica", "Role", "Run")
TARGET = "2026-11-21T20:15:00Z"
MINUTE = 60


def requires(scene: Scene, *, waits: int | None = None) -> Scene:
    """The webhook has marked all pods: they require spot for now."""
    for name in scene.pods:
        scene.set(name, fallback=(("spot", waits),))
    return scene


def on_spot(count: int = 3, **spec: Any) -> Scene:
    """Workers that run on nodes of their own."""
    scene = Scene(**workers(count), **spec)
    requires(scene)
    return scene.runs_on(**{f"worker_{index}": f"spot-{index}" for index in range(count)})


def histories(scene: Scene, role: str = "worker") -> dict[str, list[tuple[str, int | None]]]:
    """The events of a role by the indexes of its replicas, as the class and the wait."""
    return {
        each.indexes: [(event.capacity_class, event.waited_seconds) for event in each.events]
        for each in scene.role(role).history
    }


def created(scene: Scene) -> dict[str, int]:
    """The latest pods, each with the number of events of which it was created."""
    found = {}
    for action in scene.did:
        if isinstance(action, CreatePod):
            events = json.loads(action.history)["events"] if action.history else ()
            found[f"{action.role}-{action.index}"] = len(events)
    return found


def unscheduled(scene: Scene, *names: str) -> Scene:
    """The scheduler finds no node for these pods."""
    for name in names:
        at = to_second(scene.now)
        scene.set(name, unscheduled="0/9 nodes are available", unscheduled_since=at)
    return scene.look()


@pytest.mark.parametrize("reason", ["DeletionByPodGC", "DeletionByTaintManager"])
def test_a_lost_node_counts_for_the_replica(reason: str) -> None:
    """Its next pod is created with it; the others go on as they are."""
    scene = on_spot().fails("worker-1", disruption=(reason, "", TARGET))
    scene.later(30)
    assert histories(scene) == {"1": [("spot", None)]}
    assert created(scene) == {"worker-0": 0, "worker-1": 1, "worker-2": 0}


@pytest.mark.parametrize("scope", ["Role", "Run"])
def test_what_restarts_together_has_one_history(scope: str) -> None:
    """Two nodes that are lost at once are one event, and all pods are created with it."""
    scene = on_spot(restartScope=scope)
    for name in ("worker-0", "worker-2"):
        scene.set(name, phase="Failed", ready=False, disruption=("DeletionByPodGC", "", TARGET))
    scene.look().later(30)
    assert histories(scene) == {"0-2": [("spot", None)]}
    assert created(scene) == dict.fromkeys(("worker-0", "worker-1", "worker-2"), 1)


def test_the_roles_of_a_run_that_restarts_as_a_whole_have_one_history() -> None:
    """The master is created with the loss of a worker's node."""
    scene = Scene(**led("pytorch", 2), restartScope="Run")
    requires(scene)
    scene.runs_on(master_0="steady", worker_0="spot-0", worker_1="spot-1")
    scene.fails("worker-1", disruption=("DeletionByPodGC", "", TARGET)).later(30)
    assert histories(scene, "master") == {"0": [("spot", None)]}
    assert created(scene)["master-0"] == 1


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(
    "way", ["deleted", "vanished", "evicted", "preempted", "failed", "exit code", "refused"]
)
def test_what_no_node_caused_never_counts(scope: str, way: str) -> None:
    """A person may delete a pod as often as they like, and a program may end as it likes."""
    scene = on_spot(restartScope=scope, backoffLimit=9, disruptionExitCodes=[7])
    for _ in range(3):
        requires(scene)
        scene.runs_on(worker_1="spot-1")
        match way:
            case "deleted":
                scene.set("worker-1", deleted_at=to_second(scene.now))
                scene.look().vanishes("worker-1")
            case "vanished":
                scene.vanishes("worker-1")
            case "evicted":
                scene.fails("worker-1", disruption=("EvictionByEvictionAPI", "", TARGET))
            case "preempted":
                scene.fails("worker-1", disruption=("PreemptionByScheduler", "", TARGET))
            case "refused":
                scene.fails("worker-1", reason="UnexpectedAdmissionError")
            case _:
                scene.exits("worker-1", 7 if way == "exit code" else 1)
        scene.later(700)
    assert scene.role("worker").restarts >= 3
    assert histories(scene) == {}
    assert set(created(scene).values()) == {0}


def test_a_drain_counts() -> None:
    """The node is cordoned: somebody with rights on nodes takes it away."""
    scene = on_spot().node("spot-1", ready="True", leaving=True)
    scene.fails("worker-1", disruption=("EvictionByEvictionAPI", "", TARGET)).later(30)
    assert histories(scene) == {"1": [("spot", None)]}


def test_a_pod_without_a_fallback_has_no_history() -> None:
    """Nothing is kept that no policy asks for."""
    scene = Scene(**workers(2)).runs_on(worker_0="a", worker_1="b")
    scene.fails("worker-1", disruption=("DeletionByPodGC", "", TARGET)).later(30)
    assert histories(scene) == {}


@pytest.mark.parametrize("scope", ["Role", "Run"])
def test_a_loss_that_shows_late_counts_at_the_next_start(scope: str) -> None:
    """Its peers failed first, and all were created again: these pods still decide alike."""
    scene = Scene(incident_window=90.0, **workers(2), restartScope=scope)
    requires(scene)
    scene.runs_on(worker_0="spot-0", worker_1="spot-1")
    scene.off.add("spot-1")
    scene.exits("worker-0", 1)
    scene.later(40).node("spot-1", ready="Unknown", since=to_second(scene.now))
    assert histories(scene) == {"0-1": [("spot", None)]}
    scene.vanishes("worker-1").later(60)
    assert created(scene) == {"worker-0": 0, "worker-1": 0}
    requires(scene)
    scene.runs_on(worker_0="a", worker_1="b")
    scene.exits("worker-0", 1).later(60)
    assert created(scene) == {"worker-0": 1, "worker-1": 1}


@pytest.mark.parametrize("scope", SCOPES)
def test_pods_that_wait_for_long_enough_are_created_again(scope: str, wording: Wording) -> None:
    """It is no restart, no failure and no disruption; those that run go on."""
    scene = Scene(**workers(3), restartScope=scope)
    requires(scene, waits=20 * MINUTE).runs_on(worker_0="spot-0")
    unscheduled(scene, "worker-1", "worker-2")
    waits = scene.status.message
    mentions(waits, "0/9 nodes", "20:35:00Z", "spot")
    assert scene.after is not None
    assert scene.after <= 20 * MINUTE
    scene.later(20 * MINUTE - 1)
    assert created(scene) == dict.fromkeys(("worker-0", "worker-1", "worker-2"), 0)
    scene.later(1)
    assert created(scene) == {"worker-0": 0, "worker-1": 1, "worker-2": 1}
    assert scene.pod("worker-0").phase == "Running"
    role = scene.role("worker")
    assert (role.restarts, role.failed, role.disruptions, role.counted_uids) == (0, 0, 0, ())
    assert scene.status.last_failure is None
    (told,) = [each.message for each in scene.told if each.reason == "GaveUpClass"]
    wording(f"{waits}\n{told}")


@pytest.mark.parametrize("waited", [False, True])
def test_new_pods_without_a_class_whose_nodes_were_lost_are_an_event(
    waited: bool, wording: Wording
) -> None:
    """Once; where they waited for the class, the Event of the wait has said it."""
    scene = Scene(**workers(2), restartScope="Replica")
    requires(scene, waits=MINUTE).runs_on(worker_0="spot-0")
    scene.given_up = (("spot", "2026-11-21T21:15:00Z"),)
    if waited:
        unscheduled(scene, "worker-1").later(MINUTE)
    else:
        scene.runs_on(worker_1="spot-1")
        scene.fails("worker-1", disruption=("DeletionByPodGC", "", TARGET))
    scene.later(30).runs_on(worker_1="other").later(30)
    told = [each.message for each in scene.told if each.reason == "GaveUpClass"]
    assert len(told) == 1
    assert ("waited" in told[0]) == waited
    wording(told[0])


def test_a_wait_that_the_author_causes_is_no_reason_to_give_up_a_class(wording: Wording) -> None:
    """It is reported, and looked at again: once the class has no such node, it counts."""
    scene = Scene(**workers(2))
    requires(scene, waits=MINUTE).runs_on(worker_0="spot-0")
    why = "no node of class spot meets the Run's own nodeSelector zone=b, and nodes outside do"
    scene.observed = replace(scene.observed, uncounted={("mnist-worker-1", "spot"): why})
    unscheduled(scene, "worker-1").later(10 * MINUTE)
    assert histories(scene) == {}
    assert created(scene) == {"worker-0": 0, "worker-1": 0}
    for text in (scene.status.message, *(each.message for each in scene.told[-1:])):
        mentions(text, "0/9 nodes", why)
        assert "if that lasts" not in text
    condition = scene.condition("Scheduled")
    assert condition is not None
    assert scene.status.message == f"1 of 2 replicas run; {condition.message}"
    wording(scene.status.message)
    assert scene.after is not None
    assert 0 < scene.after <= LOOK_AGAIN_SECONDS
    scene.observed = replace(scene.observed, uncounted={})
    scene.later(scene.after)
    assert histories(scene) == {"1": [("spot", 11 * MINUTE)]}


def test_the_first_that_waits_decides_for_all_that_restart_with_it() -> None:
    """The others without a node are created again with it; alone, each waits for itself."""
    for scope, again in (("Role", 2), ("Replica", 1)):
        scene = Scene(**workers(2), restartScope=scope)
        requires(scene, waits=10 * MINUTE)
        unscheduled(scene, "worker-0")
        scene.later(5 * MINUTE)
        unscheduled(scene, "worker-1")
        scene.later(5 * MINUTE)
        assert sum(isinstance(each, DeletePod) for each in scene.did) == again


def test_a_pod_that_is_held_back_does_not_wait_for_a_node() -> None:
    """A scheduling gate, a queue: the scheduler has not looked for a node."""
    scene = Scene(**workers(1))
    requires(scene, waits=MINUTE)
    scene.set("worker-0", gates=("a",))
    scene.look().later(3600)
    assert histories(scene) == {}


def test_a_run_that_goes_on_after_a_suspension_decides_anew() -> None:
    """Its pods are created with what is known by then."""
    scene = on_spot().fails("worker-1", disruption=("DeletionByPodGC", "", TARGET)).later(30)
    scene.spec(suspend=True).later(7200)
    scene.spec(suspend=False)
    (entry,) = scene.role("worker").history
    action = [each for each in scene.did if isinstance(each, CreatePod)][-2]
    assert action.index == 1
    assert parse_history(action.history).as_of == BEGIN + timedelta(seconds=7230)
    assert entry.as_of == json.loads(action.history)["asOf"]


def test_what_is_old_is_forgotten() -> None:
    """After a week."""
    scene = on_spot(1).fails("worker-0", disruption=("DeletionByPodGC", "", TARGET)).later(30)
    requires(scene)
    scene.runs("worker-0")
    assert histories(scene) == {"0": [("spot", None)]}
    scene.later(7 * 86400)
    assert histories(scene) == {}


def test_a_node_that_explains_a_peers_failure_counts_once() -> None:
    """When its own pod is given up, and not before: the node may come back."""
    scene = on_spot(2, incident_window=90.0).exits("worker-0", 1)
    scene.node("spot-1", since=to_second(BEGIN), ready="Unknown")
    assert (scene.status.incidents[-1].replica, histories(scene)) == ("mnist-worker-1", {})
    scene.node("spot-1", uid="", since=to_second(BEGIN)).later(60)
    assert histories(scene) == {"1": [("spot", None)]}
