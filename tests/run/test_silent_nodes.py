"""A node that is silent for longer than its class allows is given up, and no other one is."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.run.scene import Scene, workers
from tests.wording import Wording, mentions
from webhook.run.actions import CreatePod, ForceDeletePod
from webhook.run.observed import NodeHealth
from webhook.run.reconcile import LOOK_AGAIN_SECONDS
from webhook.times import to_second

SCOPES = ("Replica", "Role", "Run")
LOST_AFTER = 300.0


def lost(scope: str, **fields: Any) -> Scene:
    """Two workers, the second on a node that is silent from now on."""
    scene = Scene(**workers(2), restartScope=scope)
    scene.runs_on(worker_0="spot-0", worker_1="spot-1")
    if "has_claim" in fields:
        scene.set("worker-1", has_claim=fields.pop("has_claim"))
    scene.off.add("spot-1")
    whole = {"since": to_second(scene.now), "lost_after": LOST_AFTER, **fields}
    return scene.node("spot-1", ready="Unknown", **whole)


def forced(scene: Scene) -> int:
    """How many pods were deleted without their kubelet."""
    return sum(isinstance(each, ForceDeletePod) for each in scene.did)


@pytest.mark.parametrize("scope", SCOPES)
def test_it_is_given_up_after_the_time_of_its_class(scope: str, wording: Wording) -> None:
    """As one disruption; the run is looked at in time, and says until when it waits."""
    scene = lost(scope)
    text = scene.status.message
    mentions(text, "spot-1", "20:20:00Z", "replaced")
    wording(text)
    assert scene.after is not None
    assert scene.after <= LOST_AFTER
    scene.later(LOST_AFTER - 1)
    assert (forced(scene), scene.status.disruptions) == (0, 0)
    scene.later(1).later(30)
    assert (forced(scene), scene.status.disruptions) == (1, 1)
    assert scene.pods == ["worker-0", "worker-1"]
    assert scene.status.incidents[-1].reason == "NodeNotReady"


def test_it_is_read_before_that() -> None:
    """It came back, and that was not heard of yet."""
    scene = lost("Replica")
    back = scene.now + timedelta(seconds=200)
    assert scene.observed.nodes is not None
    known = scene.observed.nodes["spot-1"]
    scene.live["spot-1"] = known._replace(ready="True", since=to_second(back))
    scene.later(LOST_AFTER)
    assert forced(scene) == 0


@pytest.mark.parametrize(
    "fields",
    [{"lost_after": None}, {"lost_after": math.inf}, {"has_claim": True}, {"ready": "False"}],
    ids=str,
)
def test_what_is_never_given_up(fields: dict[str, Any]) -> None:
    """Classes without the setting, too many silent nodes, volumes, and kubelets that speak."""
    if "ready" in fields:
        scene = Scene(**workers(2)).runs_on(worker_0="spot-0", worker_1="spot-1")
        since = to_second(scene.now)
        scene.node("spot-1", ready="False", since=since, lost_after=LOST_AFTER)
    else:
        scene = lost("Replica", **fields)
    scene.later(LOST_AFTER).later(86400)
    assert forced(scene) == 0


def test_a_loss_that_is_announced_is_shown(wording: Wording) -> None:
    """As a condition and an Event, until the node is gone or stays; nothing is deleted."""
    scene = Scene(**workers(3)).runs_on(worker_0="a", worker_1="b", worker_2="b")
    assert scene.condition("Disrupting") is None
    scene.node("b", ready="True", leaving=True)
    found = scene.condition("Disrupting")
    assert found is not None
    assert (found.status, scene.status.phase, scene.pods) == (
        "True",
        "Running",
        ["worker-0", "worker-1", "worker-2"],
    )
    mentions(scene.status.message, "2 of 3 pods", "node b", "worker-1")
    wording(found.message)
    assert [each.reason for each in scene.told].count("NodeLeaving") == 1
    scene.node("b", ready="True")
    found = scene.condition("Disrupting")
    assert found is not None
    assert found.status == "False"
    assert "will be lost" not in scene.status.message


def test_an_ill_node_that_keeps_its_pods_is_named() -> None:
    """Too many of its class are ill or silent; else its pods start again, as one disruption."""
    scene = Scene(**workers(2)).runs_on(worker_0="a", worker_1="b")
    ill = {"ready": "True", "ill": "GpuHealthy=False", "ill_since": "2026-11-21T20:00:00Z"}
    scene.node("b", **ill, ill_after=math.inf, many_of="gpu").look()
    mentions(scene.status.message, "node b", "GpuHealthy=False", "class gpu")
    assert scene.status.disruptions == 0
    scene.node("b", **ill, ill_after=60.0)
    assert scene.observed.nodes is not None
    scene.observed = replace(scene.observed, ill_nodes=(scene.observed.nodes["b"],))
    scene.look()
    assert (scene.status.disruptions, scene.status.incidents[0].reason) == (1, "NodeUnhealthy")


@pytest.mark.parametrize(("ill_after", "avoided"), [(30.0, ("c",)), (60.0, ()), (math.inf, ())])
def test_new_pods_avoid_nodes_that_are_ill_for_long_enough(
    ill_after: float, avoided: tuple[str, ...]
) -> None:
    """Not one that just fell ill, nor one of a class of which too many are ill."""
    scene = Scene(**workers(2)).runs_on(worker_0="a", worker_1="b")
    since = to_second(scene.now)
    node = NodeHealth("c", "uid", ill="GpuHealthy=False", ill_since=since, ill_after=ill_after)
    scene.observed = replace(scene.observed, ill_nodes=(node,))
    scene.exits("worker-1", 143).later(30)
    *_, created = (each for each in scene.did if isinstance(each, CreatePod))
    assert (created.index, created.avoid) == (1, avoided)


def test_a_suspended_run_says_whose_program_may_still_run(wording: Wording) -> None:
    """Until the pod is gone, in its message and its condition."""
    scene = Scene(**workers(2)).runs_on(worker_0="spot-0", worker_1="spot-1")
    scene.off.add("spot-0")
    scene.node("spot-0", ready="Unknown", since=to_second(scene.now))
    scene.spec(suspend=True)
    assert scene.pods == ["worker-0"]
    condition = scene.condition("Suspended")
    assert condition is not None
    assert condition.message == scene.status.message
    mentions(scene.status.message, "mnist-worker-0", "spot-0", "not ready")
    wording(scene.status.message)
    scene.vanishes("worker-0")
    assert "mnist-worker-0" not in scene.status.message


@pytest.mark.parametrize(
    "fields", [{}, {"lost_after": math.inf, "many_of": "spot"}, {"has_claim": True}], ids=str
)
def test_a_suspended_run_gives_a_silent_node_up_in_time(
    fields: dict[str, Any], wording: Wording
) -> None:
    """And says until then that the program may run; what is never given up is looked at again."""
    scene = lost("Replica", **fields).spec(suspend=True)
    mentions(scene.status.message, "mnist-worker-1", "may still run")
    wording(scene.status.message)
    assert scene.after is not None
    assert scene.after <= LOOK_AGAIN_SECONDS
    scene.later(LOST_AFTER - 1)
    assert (forced(scene), scene.pods) == (0, ["worker-1"])
    scene.later(1)
    kept = [] if not fields else ["worker-1"]
    assert scene.pods == kept
    assert ("may still run" in scene.status.message) == bool(kept)
    assert scene.status.phase == "Suspended"
