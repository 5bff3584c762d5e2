"""What is charged of replicas that go down together, and when."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from tests.run.scene import Scene, led, workers
from tests.wording import Wording, mentions
from webhook.backoff import GONE_AFTER
from webhook.run.actions import DeletePod, ForceDeletePod
from webhook.run.incidents import KEPT_INCIDENTS
from webhook.run.model import Incident
from webhook.run.observed import NodeHealth
from webhook.run.reconcile import MOST_READ
from webhook.times import to_second

WINDOW = 90.0
TARGET = ("DeletionByPodGC", "node is gone", "2026-11-21T20:15:00Z")
SCOPES = ("Replica", "Role", "Run")
SINCE = "2026-11-21T20:15:03Z"


def spot(count: int = 3, **spec: Any) -> Scene:
    """Workers that run on spot nodes of their own."""
    scene = Scene(incident_window=WINDOW, **workers(count), **spec)
    return scene.runs_on(**{f"worker_{index}": f"spot-{index}" for index in range(count)})


def charged(scene: Scene) -> tuple[int, int]:
    """Failures and disruptions of the run."""
    roles = scene.status.replicas.values()
    return sum(each.failed for each in roles), sum(each.disruptions for each in roles)


def phase(scene: Scene) -> str:
    """The run's phase now."""
    return scene.status.phase


def last(scene: Scene) -> Incident:
    return scene.status.incidents[-1]


def silent(scene: Scene, node: str) -> Scene:
    """The node controller has heard nothing of the node for 50 s."""
    return scene.node(node, ready="Unknown", since=SINCE)


def test_a_failure_is_charged_when_no_disruption_came_to_light_in_time(wording: Wording) -> None:
    """Its replica starts again before that."""
    scene = spot(backoffLimit=1).exits("worker-1", 1)
    assert (charged(scene), scene.role("worker").restarts) == ((0, 0), 1)
    assert (last(scene).cause, last(scene).replica) == ("Unknown", "mnist-worker-1")
    mentions(scene.status.message, "not charged yet", "1")
    wording(scene.status.message)
    scene.later(10)
    assert scene.pod("worker-1").phase == "Pending"
    scene.runs_on(worker_1="spot-1")
    assert scene.after is not None
    assert scene.after <= WINDOW - 10
    scene.later(WINDOW - 11)
    assert charged(scene) == (0, 0)
    scene.later(1)
    assert charged(scene) == (1, 0)
    assert last(scene).cause == "Failure"
    assert last(scene).decided is not None


def test_a_failure_is_charged_at_once_where_no_node_may_be_interrupted() -> None:
    """Capacity classes say which may."""
    scene = spot()
    for index in range(3):
        scene.node(f"spot-{index}", ready="True", interruptible=False)
    scene.exits("worker-1", 1)
    assert charged(scene) == (1, 0)
    assert last(scene).cause == "Failure"


def test_one_node_of_the_run_that_may_be_interrupted_is_enough() -> None:
    """A master on demand dies when a worker's spot node does."""
    scene = Scene(incident_window=WINDOW, **led("pytorch"), backoffLimit=0)
    scene.runs_on(master_0="on-demand", worker_0="spot")
    scene.node("on-demand", ready="True", interruptible=False)
    scene.exits("master-0", 1)
    assert charged(scene) == (0, 0)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("shows", [0, 3, 50, 89])
def test_the_loss_of_a_node_is_one_disruption_whenever_it_shows(scope: str, shows: float) -> None:
    """The peers of its replica died of broken connections before that."""
    scene = spot(restartScope=scope, backoffLimit=0)
    scene.off.add("spot-2")
    scene.exits("worker-0", 1)
    scene.later(shows)
    silent(scene, "spot-2")
    assert charged(scene) == (0, 1)
    incident = last(scene)
    assert (incident.cause, incident.replica) == ("Disruption", "mnist-worker-2")
    assert (incident.node, incident.reason) == ("spot-2", "NodeNotReady")
    assert incident.collateral == 1
    scene.later(1000)
    assert charged(scene) == (0, 1)
    assert phase(scene) == "Restarting"


def test_a_disruption_that_shows_after_the_window_changes_nothing_any_more() -> None:
    """What was charged is written once."""
    scene = spot().exits("worker-0", 1).later(WINDOW)
    assert charged(scene) == (1, 0)
    silent(scene, "spot-2")
    assert charged(scene) == (1, 0)
    assert last(scene).cause == "Failure"


@pytest.mark.parametrize("scope", SCOPES)
def test_a_run_of_a_hundred_survives_the_loss_of_one_node(scope: str) -> None:
    """With backoffLimit 0; every peer fails within a few seconds, some looks apart."""
    scene = spot(100, restartScope=scope, backoffLimit=0)
    scene.off.add("spot-99")
    for first in range(0, 99, 9):
        for index in range(first, first + 9):
            name = f"worker-{index}"
            if name in scene.pods and scene.pod(name).phase == "Running":
                scene.set(name, phase="Failed", ready=False)
        scene.later(1)
    scene.later(40)
    scene.node("spot-99")
    assert charged(scene) == (0, 1)
    scene.vanishes("worker-99").later(10).later(10)
    assert charged(scene) == (0, 1)
    assert len(scene.pods) == 100
    assert phase(scene) != "Failed"


@pytest.mark.parametrize("order", [*permutations(["peer", "node", "pod"])])
@pytest.mark.parametrize("scope", SCOPES)
def test_the_order_of_events_about_a_loss_does_not_matter(
    scope: str, order: tuple[str, ...]
) -> None:
    """A peer's failure, the node, and what becomes of the pod there."""
    scene = spot(restartScope=scope, backoffLimit=0, disruptionLimit=1)
    scene.off.add("spot-2")
    for what in order:
        scene.later(20)
        if what == "peer":
            # Under scope Role and Run the controller may have taken it down before.
            if scene.pod("worker-0").phase == "Running":
                scene.exits("worker-0", 1)
        elif what == "node":
            scene.node("spot-2")
        elif "worker-2" in scene.pods:
            scene.fails("worker-2", disruption=TARGET)
    scene.later(200)
    assert charged(scene) == (0, 1)
    assert phase(scene) != "Failed"


def test_failures_after_a_disruption_are_charged_to_it_for_the_window() -> None:
    """Some frameworks notice by a time-out."""
    scene = spot(backoffLimit=0).fails("worker-2", disruption=TARGET)
    scene.later(WINDOW - 1).exits("worker-0", 1)
    assert charged(scene) == (0, 1)
    assert last(scene).collateral == 1
    scene.later(2).exits("worker-1", 1).later(WINDOW)
    assert phase(scene) == "Failed"


def test_failures_are_charged_to_a_disruption_as_long_as_it_lasts() -> None:
    """The run cannot be whole while a node is silent that a replica is bound to."""
    scene = spot(backoffLimit=0)
    silent(scene, "spot-2").exits("worker-0", 1)
    for _ in range(5):
        scene.later(400).runs_on(worker_0="spot-0").exits("worker-0", 1)
    assert charged(scene) == (0, 1)
    assert last(scene).collateral == 6
    scene.node("spot-2", ready="True").later(WINDOW + 1)
    scene.later(400).runs_on(worker_0="spot-0").exits("worker-0", 1).later(WINDOW)
    assert phase(scene) == "Failed"


def test_the_end_of_a_pod_on_a_silent_node_is_not_charged_again() -> None:
    """It is deleted minutes after its node was found silent, and may never be gone."""
    scene = spot()
    silent(scene, "spot-2").exits("worker-0", 1)
    assert charged(scene) == (0, 1)
    scene.later(300)
    scene.set("worker-2", deleted_at="2026-11-21T20:20:00Z")
    scene.look().later(1000)
    assert charged(scene) == (0, 1)
    assert scene.role("worker").restarts == 2


@pytest.mark.parametrize("scope", SCOPES)
def test_a_loss_that_an_older_controller_charged_is_not_charged_again(scope: str) -> None:
    """It wrote no incidents, and its pod hangs on the silent node; peers fail after the upgrade."""
    scene = spot(backoffLimit=0, restartScope=scope)
    scene.off.add("spot-2")
    silent(scene, "spot-2")
    scene.set("worker-2", deleted_at="2026-11-21T20:15:00Z")
    scene.look()
    assert charged(scene) == (0, 1)
    older = scene.status.model_copy(update={"incidents": ()})
    scene.run = scene.run.model_copy(update={"status": older})
    scene.later(30).runs_on(worker_0="spot-0").exits("worker-0", 1).later(WINDOW)
    assert charged(scene) == (0, 1)
    assert phase(scene) != "Failed"


def test_another_nodes_loss_is_another_disruption_though_the_first_one_lasts() -> None:
    """A node that stays silent does not hide the others."""
    scene = spot()
    silent(scene, "spot-2").exits("worker-0", 1).later(300)
    scene.fails("worker-1", disruption=TARGET)
    assert charged(scene) == (0, 2)


@pytest.mark.parametrize("fails_between", [True, False])
def test_an_incident_of_several_nodes_names_them(fails_between: bool) -> None:
    """Whether they show at once or one after the other; each once."""
    scene = spot(4, restartScope="Replica")
    scene.off |= {"spot-1", "spot-2"}
    first = {"spot-1": NodeHealth("spot-1", "uid-spot-1", ready="Unknown", since=SINCE)}
    if fails_between:
        scene.exits("worker-0", 1)
    scene.observed = replace(scene.observed, nodes={**(scene.observed.nodes or {}), **first})
    silent(scene, "spot-2").exits("worker-3", 1)
    assert charged(scene) == (0, 1)
    incident = last(scene)
    assert {incident.node, *incident.other_nodes} == scene.off
    assert len(incident.other_nodes) == 1
    scene.later(1)
    assert last(scene).other_nodes == incident.other_nodes


def test_a_silent_node_alone_is_not_a_disruption() -> None:
    """It may come back, its programs unharmed."""
    scene = spot()
    silent(scene, "spot-2").later(200)
    assert charged(scene) == (0, 0)
    assert scene.status.incidents == ()
    scene.node("spot-2", ready="True")
    assert phase(scene) == "Running"


def test_a_pod_of_the_attempt_before_tells_of_the_disruption() -> None:
    """The first peer's exit has raised the attempt by then."""
    scene = spot(restartScope="Run", backoffLimit=0)
    # Its deletion waits for its kubelet, which is gone.
    scene.off.add("spot-2")
    scene.exits("worker-0", 1).later(30)
    assert charged(scene) == (0, 0)
    scene.set("worker-2", phase="Failed", disruption=TARGET)
    scene.look()
    assert charged(scene) == (0, 1)
    assert last(scene).replica == "mnist-worker-2"


def test_replicas_start_at_once_when_their_failure_turns_out_to_be_a_disruption() -> None:
    """They wait as after a failure until then."""
    scene = spot().exits("worker-0", 1).later(3)
    assert scene.pod("worker-0").phase == "Failed"
    silent(scene, "spot-2").later(2)
    assert scene.pod("worker-0").phase == "Pending"


@pytest.mark.parametrize("scope", SCOPES)
def test_a_failure_that_may_not_start_again_waits_for_its_charge(scope: str) -> None:
    """The policy forbids a restart after a failure, and demands one after a disruption."""
    scene = Scene(
        incident_window=WINDOW, **workers(2, restartPolicy="Never"), restartScope=scope
    ).runs_on(worker_0="spot-0", worker_1="spot-1")
    scene.exits("worker-0", 1).later(80)
    assert "worker-0" not in scene.pods or scene.pod("worker-0").phase == "Failed"
    assert phase(scene) == "Restarting"
    scene.later(10)
    assert phase(scene) == "Failed"
    failed = scene.condition("Failed")
    assert failed is not None
    assert failed.reason == "PermanentFailure"


def test_a_failure_that_may_not_start_again_is_forgiven_after_a_disruption() -> None:
    """It was none of the program's."""
    scene = Scene(incident_window=WINDOW, **workers(2, restartPolicy="Never"))
    scene.runs_on(worker_0="spot-0", worker_1="spot-1").exits("worker-0", 1).later(80)
    silent(scene, "spot-1").later(2)
    assert scene.pod("worker-0").phase == "Pending"
    assert scene.later(200).status.phase != "Failed"


def test_the_budget_is_looked_at_when_failures_are_charged(wording: Wording) -> None:
    """By then the replica may have started again."""
    scene = spot(backoffLimit=0).exits("worker-1", 3).later(20).runs_on(worker_1="spot-1")
    assert phase(scene) == "Running"
    scene.later(WINDOW - 20)
    assert phase(scene) == "Failed"
    mentions(scene.status.message, "worker-1", "exited with 3", "backoffLimit is 0")
    wording(scene.status.message)


def test_a_program_that_always_fails_is_over_soon_after_its_budget() -> None:
    """Each failure is charged when its own window is over."""
    scene = spot(1, backoffLimit=2)
    for _ in range(9):
        if phase(scene) == "Failed":
            break
        scene.exits("worker-0", 1)
        while scene.pod("worker-0").phase == "Failed" and phase(scene) != "Failed":
            assert scene.after is not None
            scene.later(scene.after)
        scene.runs_on(worker_0="spot-0")
    assert phase(scene) == "Failed"
    # Failures at 0, 10 and 30 s; the third is one too many, and is charged after the window.
    assert scene.status.duration is not None
    assert scene.role("worker").failed == 3
    assert scene.role("worker").restarts == 4


@pytest.mark.parametrize("scope", SCOPES)
def test_incidents_tell_what_was_lost(scope: str) -> None:
    """Cause, replica, node, class, collateral and the seconds until all ran again."""
    scene = spot(2, restartScope=scope)
    scene.off.add("spot-1")
    scene.node("spot-1", ready="True", interruptible=True, capacity_class="spot")
    scene.exits("worker-0", 1).later(5)
    scene.node("spot-1", ready="Unknown", since=SINCE, interruptible=True, capacity_class="spot")
    scene.later(5).vanishes("worker-1").later(30)
    for name in scene.pods:
        scene.set(name, phase="Running", ready=True, node="spot-0")
    scene.look()
    incident = last(scene)
    assert (incident.cause, incident.replica) == ("Disruption", "mnist-worker-1")
    assert (incident.node, incident.capacity_class) == ("spot-1", "spot")
    assert incident.collateral == 1
    assert incident.seconds_lost == 40
    written = scene.status.to_json()["incidents"][-1]
    assert written["class"] == "spot"


def test_the_last_incidents_are_kept() -> None:
    """A status does not grow for ever."""
    scene = spot(1, backoffLimit=99)
    for _ in range(KEPT_INCIDENTS + 3):
        scene.exits("worker-0", 1).later(700).runs_on(worker_0="spot-0")
    assert len(scene.status.incidents) == KEPT_INCIDENTS
    assert [each.cause for each in scene.status.incidents] == ["Failure"] * KEPT_INCIDENTS


def test_a_thousand_failures_are_few_entries() -> None:
    """Those of a few seconds are one, whatever the restart policy."""
    for policy in ("OnFailure", "Never"):
        scene = Scene(
            incident_window=WINDOW, **workers(1000, restartPolicy=policy), backoffLimit=10**6
        )
        scene.runs_on(**{f"worker_{index}": "spot-0" for index in range(2)})
        for index in range(2, 1000):
            scene.set(f"worker-{index}", phase="Failed", node="spot-0")
        scene.look()
        assert len(scene.status.incidents) == 1
        assert sum(last(scene).failures.values()) == 998


def test_a_pod_whose_machine_is_off_is_deleted_without_its_kubelet() -> None:
    """Once its end is written, and by a live read of the node each time."""
    scene = spot(2)
    uid = scene.pod("worker-1").uid
    scene.node("spot-1", ready="Unknown", since=SINCE, shut_down=True)
    assert charged(scene) == (0, 1)
    scene.later(2)
    assert ForceDeletePod("mnist-worker-1", uid) in scene.did
    assert scene.pod("worker-1").uid != uid
    assert last(scene).reason == "NodeShutdown"


def test_a_machine_that_is_on_by_a_live_read_costs_no_pod() -> None:
    """What was heard is older."""
    scene = spot(2)
    scene.live["spot-1"] = (scene.observed.nodes or {})["spot-1"]
    scene.node("spot-1", ready="Unknown", since=SINCE, shut_down=True).later(60)
    assert charged(scene) == (0, 0)
    assert not any(isinstance(each, ForceDeletePod | DeletePod) for each in scene.did)


def test_more_machines_than_one_look_reads_are_each_read_before_they_cost_a_pod() -> None:
    """What was only heard deletes nothing; the last of them is on again."""
    scene = spot(MOST_READ + 1)
    nodes = dict(scene.observed.nodes or {})
    last_read = max(nodes)
    index = last_read.removeprefix("spot-")
    scene.live[last_read] = nodes[last_read]
    off = {
        name: each._replace(ready="Unknown", since=SINCE, shut_down=True)
        for name, each in nodes.items()
    }
    scene.observed = replace(scene.observed, nodes=off)
    uid = scene.pod(f"worker-{index}").uid
    scene.look().later(60).later(60)
    deleted = {each.name for each in scene.did if isinstance(each, ForceDeletePod)}
    assert len(deleted) == MOST_READ
    assert scene.pod(f"worker-{index}").uid == uid


def test_a_pod_that_hangs_on_a_machine_that_is_off_is_taken_out_of_the_way() -> None:
    """It was deleted while its node was silent; then the cloud says that the machine is off."""
    for scope in SCOPES:
        scene = spot(2, restartScope=scope)
        scene.off.add("spot-1")
        uid = scene.pod("worker-1").uid
        silent(scene, "spot-1")
        scene.set("worker-1", deleted_at=SINCE)
        scene.look().later(100)
        assert scene.pod("worker-1").uid == uid
        scene.node("spot-1", ready="Unknown", since=SINCE, shut_down=True).later(2)
        assert ForceDeletePod("mnist-worker-1", uid) in scene.did
        assert scene.pod("worker-1").uid != uid


def test_pods_of_a_node_that_stays_gone_are_replaced() -> None:
    """As one disruption, once a live read finds no node after some seconds."""
    for scope in SCOPES:
        scene = spot(3, restartScope=scope)
        scene.runs_on(worker_2="spot-1")
        uids = {scene.pod(name).uid for name in ("worker-1", "worker-2")}
        scene.node("spot-1", uid="", since=to_second(scene.now))
        assert scene.after == GONE_AFTER
        assert not any(isinstance(each, ForceDeletePod) for each in scene.did)
        scene.later(GONE_AFTER).later(2)
        assert uids == {each.uid for each in scene.did if isinstance(each, ForceDeletePod)}
        assert charged(scene) == (0, 1)
        assert last(scene).reason == "NodeGone"


@pytest.mark.parametrize("heard", [True, False])
def test_a_node_that_comes_back_in_time_costs_no_pod(heard: bool) -> None:
    """Also if only a live read finds it."""
    scene = spot(2)
    now = to_second(scene.now)
    back: dict[str, Any] = {"ready": "True", "created": now, "since": now}
    scene.node("spot-1", uid="", since=to_second(scene.now))
    if heard:
        scene.node("spot-1", **back)
    else:
        scene.live["spot-1"] = NodeHealth("spot-1", uid="another", **back)
    scene.later(60)
    assert charged(scene) == (0, 0)
    assert not any(isinstance(each, ForceDeletePod | DeletePod) for each in scene.did)


def test_silence_alone_never_deletes_a_pod() -> None:
    """The program may go on behind a broken network: two would write one checkpoint."""
    for state in ("Unknown", "False"):
        scene = spot(2)
        scene.node("spot-1", ready=state, since=SINCE).later(10_000)
        assert not any(isinstance(each, ForceDeletePod | DeletePod) for each in scene.did)


def test_a_node_that_is_registered_again_under_its_pod_is_not_gone() -> None:
    """Its pod goes on there: PodGC takes none whose Node exists."""
    scene = spot(1).later(300)
    scene.node("spot-0").later(3)
    told = scene.condition("Ready")
    assert told is not None
    assert (told.status, told.reason) == ("False", "NodeGone")
    scene.node("spot-0", ready="True", created=to_second(scene.now), since=to_second(scene.now))
    assert phase(scene) == "Running"
    told = scene.condition("Ready")
    assert told is not None
    assert told.status == "True"
    assert charged(scene) == (0, 0)


def returned(scene: Scene, node: str) -> Scene:
    """The node's kubelet speaks again."""
    return scene.node(node, ready="True", since=to_second(scene.now))


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(
    ("code", "reason"), [(255, "Unknown"), (137, "ContainerStatusUnknown"), (255, "Error")]
)
@pytest.mark.parametrize("order", [*permutations(["silent", "ready", "pod"])])
def test_a_node_that_is_restarted_is_one_disruption(
    scope: str, code: int, reason: str, order: tuple[str, ...]
) -> None:
    """In whatever order that is heard: also if it is never heard that the node was silent."""
    scene = spot(2, restartScope=scope, backoffLimit=0, disruptionLimit=1).later(60)
    for what in order:
        scene.later(10)
        if what == "silent" and order.index("ready") > order.index("silent"):
            scene.node("spot-1", ready="Unknown", since=to_second(scene.now))
        elif what == "ready":
            returned(scene, "spot-1")
        elif what == "pod":
            scene.exits("worker-1", code, reason)
    scene.later(200)
    assert charged(scene) == (0, 1)
    assert phase(scene) != "Failed"


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("fails", [-80, 0, 80])
def test_a_node_that_was_away_explains_failures_of_the_window(scope: str, fails: float) -> None:
    """Though nothing was heard of it but that it is ready since; its own pod lost nothing."""
    scene = spot(2, restartScope=scope, backoffLimit=0).later(60)
    # Until then its pod is there, whoever deletes it.
    scene.off.add("spot-1")
    if fails > 0:
        returned(scene, "spot-1").later(fails).exits("worker-0", 1)
    else:
        scene.exits("worker-0", 1).later(-fails)
        returned(scene, "spot-1")
    assert charged(scene) == (0, 1)
    assert (last(scene).reason, last(scene).collateral) == ("NodeNotReady", 1)
    mentions(last(scene).message, "spot-1", "until")


def test_a_long_silence_that_ends_in_a_restart_is_one_disruption() -> None:
    """Its peers' failures are charged to it first, and its own pod's end when it is back."""
    scene = spot(2, backoffLimit=0).later(60)
    silent(scene, "spot-1").exits("worker-0", 1).later(600)
    assert charged(scene) == (0, 1)
    returned(scene, "spot-1").exits("worker-1", 255, "Unknown").later(200)
    assert charged(scene) == (0, 1)


def solid(count: int = 2, **spec: Any) -> Scene:
    """Workers on nodes of a class that is not interruptible."""
    scene = spot(count, **spec)
    for index in range(count):
        scene.node(f"spot-{index}", ready="True", interruptible=False)
    return scene


def lost_for_certain(scene: Scene, node: str) -> Scene:
    """The node controller has heard nothing of a node that is not interruptible."""
    return scene.node(node, ready="Unknown", since=SINCE, interruptible=False)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("shows", [0, 50, 89])
def test_a_charge_is_corrected_if_a_loss_comes_to_light_in_time(scope: str, shows: float) -> None:
    """Where no node may be interrupted a failure does not wait: but such nodes are lost too."""
    scene = solid(2, restartScope=scope, backoffLimit=1)
    scene.off.add("spot-1")
    scene.exits("worker-0", 1)
    assert charged(scene) == (1, 0)
    scene.later(shows)
    lost_for_certain(scene, "spot-1")
    assert charged(scene) == (0, 1)
    assert [(each.cause, each.collateral) for each in scene.status.incidents] == [("Disruption", 1)]
    scene.later(1000)
    assert charged(scene) == (0, 1)


def test_a_charge_is_not_corrected_after_the_window() -> None:
    """The failure stays, and the loss is no cause of it."""
    scene = solid(2, backoffLimit=1).exits("worker-0", 1).later(WINDOW)
    lost_for_certain(scene, "spot-1").later(100)
    assert charged(scene) == (1, 0)


def test_a_run_that_has_ended_is_not_corrected() -> None:
    """That is what a class that says `interruptible: false` stands for."""
    scene = solid(2, backoffLimit=0).exits("worker-0", 1)
    assert phase(scene) == "Failed"
    lost_for_certain(scene, "spot-1").later(10)
    assert (phase(scene), charged(scene)) == ("Failed", (1, 0))
