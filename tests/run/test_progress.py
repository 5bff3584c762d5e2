"""What a run that goes on says of itself, and which Events that makes."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.run.runs import UID
from tests.run.scene import Scene, led, workers
from tests.wording import Wording, mentions
from webhook.crd.conditions import ConditionUpdate
from webhook.placement.room import Limit, Room
from webhook.run.model.status import READY
from webhook.run.observed import OwnedDeployment, OwnedPod, Refusal
from webhook.run.progress import (
    CREATED,
    update_conditions,
    without_pod_conditions,
)

SINCE = "2026-11-21T20:15:03Z"
MANY = {"ready": "Unknown", "since": SINCE, "lost_after": math.inf, "many_of": "spot"}
WORDS = "0/12 nodes are available: 12 node(s) didn't match Pod's node affinity/selector."
THEN = datetime(2026, 11, 21, 20, 0, 0, tzinfo=UTC)
NOW = datetime(2026, 11, 21, 21, 0, 0, tzinfo=UTC)


def refused(scene: Scene, *refusals: Refusal) -> Scene:
    """The API server refuses to create pods: none of those that are made stays."""
    scene.observed = replace(scene.observed, refusals=refusals)
    return scene.look()


def said(scene: Scene, kind: str) -> tuple[str, str]:
    """Status and reason of a condition."""
    condition = scene.condition(kind)
    assert condition is not None
    return condition.status, condition.reason


def test_what_holds_pods_back_is_named() -> None:
    """Kueue holds a pod of a run like one without a job, where its webhook takes it."""
    scene = Scene(**workers(2))
    for name in ("worker-0", "worker-1"):
        scene.set(name, gates=("kueue.x-k8s.io/admission",), queue="default")
    scene.look()
    assert said(scene, "Scheduled") == ("False", "SchedulingGated")
    mentions(scene.status.message, "2 of 2 pods", "Kueue", "queue default", "fairlead doctor")
    scene.set("worker-0", gates=("kueue.x-k8s.io/topology",))
    scene.set("worker-1", gates=("mine",))
    mentions(scene.look().status.message, "chosen a host", "scheduling gate mine")
    assert "doctor" not in scene.status.message


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


ELASTIC: dict[str, Any] = {"framework": "pytorch", "pytorch": {"elastic": {"minReplicas": 2}}}


def elastic(workers: int) -> Scene:
    """An elastic run from two replicas on."""
    return Scene(replicas={"worker": {"count": workers}}, **ELASTIC)


def test_an_elastic_run_runs_from_its_minimum_on(wording: Wording) -> None:
    """If its leader is among them, which has the store of the rendezvous."""
    scene = elastic(4)
    assert scene.runs("worker-1", "worker-2").status.phase == "Starting"
    scene.runs("worker-0").vanishes("worker-2")
    assert (scene.status.phase, scene.role("worker").restarts) == ("Running", 1)
    assert scene.status.message == "2 of 4 replicas run, elastic from 2"
    scene.set("worker-3", unscheduled=WORDS)
    mentions(scene.look().status.message, "2 of 4 replicas run, elastic from 2; 1 of 4 pods: 0/12")
    lost = [scene.status.incidents[0].seconds_lost]
    scene.set("worker-3", unscheduled="")
    assert scene.runs().later(400).runs().status.message == "4 of 4 replicas run"
    lost.append(scene.status.incidents[0].seconds_lost)
    assert lost == [None, 400]
    wording(scene.vanishes("worker-1").status.message)


def test_counts_are_shown_by_role() -> None:
    """Desired, active, ready, succeeded; and ready of desired for all."""
    scene = Scene(**led("pytorch", 3)).runs("master-0", "worker-1").exits("worker-1", 0)
    worker = scene.role("worker")
    assert (worker.desired, worker.active, worker.ready, worker.succeeded) == (3, 2, 0, 1)
    assert (scene.role("master").active, scene.role("master").ready) == (1, 1)
    assert scene.status.replicas_ready == "1/4"


def test_the_schedulers_reasons_are_reported_once_for_all_pods() -> None:
    """How many of how many, and its words."""
    scene = Scene(**workers(3))
    for index in range(2):
        scene.set(f"worker-{index}", unscheduled=WORDS)
    scene.look()
    assert scene.status.message.startswith(f"2 of 3 pods: {WORDS[:10]}")
    assert said(scene, "Scheduled") == ("False", "Unschedulable")
    assert [each.reason for each in scene.told].count("Unschedulable") == 1


def test_a_run_that_waits_reports_how_many_can_have_a_node(wording: Wording) -> None:
    """If not all that are needed can: how many have one, how many can, and the limit."""
    scene = Scene(**workers(3)).runs_on(worker_0="node-a")
    limit = Limit("nvidia.com/gpu", 2, 8, 8, {"worker": 8})
    for most, is_told in ((2, True), (3, False)):
        room = Room(3, most, most, limit if most < 3 else None)
        scene.observed = replace(scene.observed, room=room)
        scene.set("worker-1", unscheduled=WORDS)
        scene.look()
        facts = ("1 of 3 replicas have a node", "at most 2", "2 nodes", "8 nvidia.com/gpu")
        assert all(fact in scene.status.message for fact in facts) == is_told
        if is_told:
            wording(scene.status.message)


def test_a_run_whose_rest_has_room_does_not_report_a_limit() -> None:
    """A replica that has finished needs no node."""
    scene = Scene(**workers(3)).runs().exits("worker-0", 0)
    limit = Limit("nvidia.com/gpu", 2, 8, 8, {"worker": 8})
    scene.observed = replace(scene.observed, room=Room(3, 2, 2, limit))
    scene.set("worker-1", unscheduled=WORDS)
    scene.look()
    assert "at most" not in scene.status.message


def test_a_container_that_waits_is_reported_with_its_reason() -> None:
    """Where the node has the pod and cannot start it."""
    scene = Scene(**workers(2))
    scene.set("worker-0", node="node-a", waiting=("ImagePullBackOff", "no image"))
    scene.look()
    assert scene.status.message == "1 of 2 pods: ImagePullBackOff: no image"
    assert said(scene, "Ready") == ("False", "ImagePullBackOff")


def test_a_refused_creation_is_reported_and_not_counted() -> None:
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


@pytest.mark.parametrize(
    ("reason", "fields", "cure"),
    [
        ("NodeNotReady", {"ready": "Unknown", "since": SINCE}, "out-of-service"),
        ("NodeNotReady", {"ready": "False", "since": SINCE}, "kubectl delete node spot-1"),
        ("NodeNotReady", {"ready": "Unknown", "since": SINCE, "lost_after": 9e3}, "replaced"),
        ("TooManySilent", MANY, "kubectl delete node spot-1"),
        ("NodeShutdown", {"ready": "Unknown", "since": SINCE, "shut_down": True}, "replaces"),
        ("NodeGone", {"uid": "", "since": SINCE}, "in some seconds"),
    ],
)
def test_a_run_is_not_ready_whose_replica_is_on_a_lost_node(
    reason: str, fields: dict[str, Any], cure: str, wording: Wording
) -> None:
    """Whatever the pod's own phase is; which node, since when, and what to do is said at once."""
    scene = Scene(**workers(2)).runs_on(worker_0="spot-0", worker_1="spot-1")
    hold = scene.pod("worker-1")
    scene.node("spot-1", **fields)
    if reason != "NodeShutdown":
        # Else it is replaced by now.
        assert scene.pod("worker-1") == hold
        assert said(scene, "Ready") == ("False", reason)
        mentions(scene.status.message, "1 of 2 pods", "spot-1", "mnist-worker-1", SINCE, cure)
        wording(scene.status.message)
        assert scene.status.phase == ("Restarting" if reason == "NodeGone" else "Running")
        assert scene.status.replicas_ready == "1/2"
    assert [each.reason for each in scene.told].count(reason) == 1
    assert next(each for each in scene.told if each.reason == reason).type == "Warning"


def test_a_replacement_that_was_promised_and_does_not_come_is_an_event() -> None:
    """When more nodes of the class are silent; and when it is promised again."""
    scene = Scene(**workers(1)).runs_on(worker_0="spot-0")
    promised = {**MANY, "lost_after": 9e3}
    for fields in (promised, MANY, MANY, promised):
        scene.node("spot-0", **fields)
    told = [each.reason for each in scene.told if each.type == "Warning"]
    assert told == ["NodeNotReady", "TooManySilent", "NodeNotReady"]


def test_a_node_that_is_back_leaves_the_run_as_it_was() -> None:
    """Its programs went on."""
    scene = Scene(**workers(1)).runs_on(worker_0="spot-0")
    scene.node("spot-0", ready="Unknown", since=SINCE).node("spot-0", ready="True")
    assert (scene.status.phase, said(scene, "Ready")) == ("Running", ("True", "AllReady"))
    assert scene.role("worker").restarts == 0


def test_a_notebook_on_a_silent_node_is_not_ready() -> None:
    """Its Deployment says that it is available for up to a minute."""
    scene = Scene(kind="notebook")
    served = OwnedPod("nb", "uid-nb", UID, "", 0, 0, "Running", ready=True, node="spot-0")
    there = OwnedDeployment("uid", 1, 1, 1, 1, 1)
    scene.observed = replace(scene.observed, pods={"nb": served}, deployment=there)
    scene.node("spot-0", ready="True")
    assert scene.status.phase == "Running"
    scene.node("spot-0", ready="Unknown", since=SINCE)
    assert said(scene, "Ready") == ("False", "NodeNotReady")


def test_a_status_that_stays_keeps_its_time() -> None:
    """Though reason, message and generation change."""
    before = update_conditions((), [ConditionUpdate(READY, "False", "NotReady", "0 of 3")], 1, THEN)
    (after,) = update_conditions(
        before, [ConditionUpdate(READY, "False", "ImagePullBackOff", "no such image")], 2, NOW
    )
    assert after.last_transition_time == "2026-11-21T20:00:00Z"
    assert (after.reason, after.message, after.observed_generation) == (
        "ImagePullBackOff",
        "no such image",
        2,
    )


def test_a_status_that_changes_gets_the_time_of_the_change() -> None:
    """True, False and Unknown alike."""
    before = update_conditions((), [ConditionUpdate(READY, "False", "NotReady")], 1, THEN)
    (after,) = update_conditions(before, [ConditionUpdate(READY, "True", "AllReady")], 1, NOW)
    assert after.last_transition_time == "2026-11-21T21:00:00Z"


def test_what_is_not_spoken_of_stays_as_it_was() -> None:
    """In its place, and a new type comes last."""
    before = update_conditions(
        (),
        [ConditionUpdate(CREATED, "True", "AllCreated"), ConditionUpdate(READY, "True", "R")],
        1,
        THEN,
    )
    after = update_conditions(before, [ConditionUpdate("Succeeded", "True", "Finished")], 2, NOW)
    assert [one.type for one in after] == [CREATED, READY, "Succeeded"]
    assert after[0] == before[0]


def test_a_run_at_rest_or_over_says_nothing_of_pods_to_come() -> None:
    """Created and Scheduled are dropped, the others stay."""
    before = update_conditions(
        (),
        [ConditionUpdate(CREATED, "False", "Creating"), ConditionUpdate(READY, "False", "R")],
        1,
        THEN,
    )
    assert [one.type for one in without_pod_conditions(before)] == [READY]
