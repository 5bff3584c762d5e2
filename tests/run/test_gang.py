"""How a run whose replicas start all at once begins; the laws: tests/run/machine."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.run.machine.things import EPOCH, moment, stamp
from tests.run.runs import UID
from tests.run.scene import Scene, workers
from tests.wording import Wording, mentions
from webhook.placement.capacity import Mode
from webhook.placement.fallback import Fallback
from webhook.run.gang import stored_gang
from webhook.run.model.status import GangStatus
from webhook.run.observed import Refusal
from webhook.run.start_order import Start, Starter, contended, find_start

GRANTED = Start(granted=True)
NO_NODE = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: no."
TARGET = ("DeletionByTaintManager", "node is gone", "2026-11-21T20:15:00Z")


def gang(count: int = 2, within: str = "10m", **spec: Any) -> Scene:
    """A run of so many workers that waits for its start."""
    return Scene(**{**workers(count), "gang": {"startWithin": within}, **spec})


def state(scene: Scene) -> str:
    """That of its start."""
    assert scene.status.gang is not None
    return scene.status.gang.state


def let(scene: Scene, start: Start = GRANTED) -> Scene:
    """The order of starts says this from now on."""
    scene.observed = replace(scene.observed, start=start)
    return scene.look()


def binds(scene: Scene, *names: str) -> Scene:
    """Pods get a node."""
    for name in names:
        scene.set(name, node="node-a", bound_since=stamp((scene.now - EPOCH).total_seconds()))
    return scene.look()


def lacks(scene: Scene, name: str) -> Scene:
    """The scheduler finds no node for a pod."""
    since = stamp((scene.now - EPOCH).total_seconds())
    scene.set(name, unscheduled=NO_NODE, unscheduled_since=since)
    return scene.look()


def test_no_pod_is_created_before_a_start_is_granted(wording: Wording) -> None:
    """The run is Pending, and its deadline runs."""
    scene = let(gang(activeDeadlineSeconds=600), Start(why="Run lab/first is next"))
    assert (scene.status.phase, state(scene), scene.pods) == ("Pending", "Waiting", [])
    wording(scene.status.message)
    let(scene)
    assert (state(scene), scene.pods) == ("Starting", ["worker-0", "worker-1"])
    late = let(gang(activeDeadlineSeconds=600), Start()).later(600)
    assert late.status.phase == "Failed"


def test_a_run_is_whole_once_all_have_a_node_and_is_left_alone() -> None:
    """Though one loses its node later, and no other is found."""
    scene = binds(let(gang()), "worker-0", "worker-1")
    assert state(scene) == "Whole"
    scene.runs().fails("worker-1", disruption=TARGET).later(20)
    lacks(scene, "worker-1").later(7200)
    assert (state(scene), scene.pods) == ("Whole", ["worker-0", "worker-1"])
    assert scene.role("worker").attempt == 0


def test_a_start_that_cannot_be_whole_gives_its_nodes_back(wording: Wording) -> None:
    """No count rises but that of tries, the held time is waiting, and it is tried again."""
    scene = lacks(binds(let(gang()), "worker-0"), "worker-1")
    scene.later(599)
    assert state(scene) == "Starting"
    scene.later(1)
    assert (state(scene), scene.pods, scene.status.phase) == ("Waiting", [], "Pending")
    role = scene.role("worker")
    assert (role.failed, role.restarts, role.disruptions, role.attempt) == (0, 0, 0, 1)
    usage = scene.status.usage[0]
    assert (usage.seconds, usage.waiting_seconds, usage.repeated_seconds) == (0, 600, 0)
    assert scene.status.gang is not None
    assert (scene.status.gang.tries, scene.status.gang.held_seconds) == (1, 600)
    assert [each.reason for each in scene.told].count("GaveNodesBack") == 1
    wording(scene.status.message)
    scene.later(59)
    assert state(scene) == "Waiting"
    scene.later(4)
    assert (state(scene), scene.status.gang.tries, len(scene.pods)) == ("Starting", 2, 2)


def test_only_what_has_no_node_gives_way() -> None:
    """Not a pod whose image does not come, nor one that is gated or that nobody has looked at."""
    scene = binds(let(gang()), "worker-0")
    scene.set("worker-1", gates=("mine",))
    assert state(scene.later(3600)) == "Starting"
    refused = let(gang())
    refused.observed = replace(
        refused.observed, refusals=(Refusal("mnist-worker-1", "QuotaExceeded", "exceeded quota"),)
    )
    assert state(refused.later(600)) == "Waiting"


def test_pauses_double_and_a_start_by_hand_ends_one() -> None:
    """From a minute to ten."""
    scene = let(gang(within="1m"))
    pauses = []
    for _ in range(6):
        lacks(scene, "worker-1").later(60)
        assert scene.status.gang is not None
        assert scene.status.gang.not_before is not None
        scene.observed = replace(scene.observed, start=Start())
        pauses.append(round((scene.after or 0) / 60))
        scene.later(scene.after or 0)
        let(scene)
        assert state(scene) == "Starting"
    assert pauses == [1, 2, 4, 8, 10, 10]
    lacks(scene, "worker-1").later(60)
    assert state(scene) == "Waiting"
    when = (scene.now + timedelta(seconds=1)).isoformat().replace("+00:00", "Z")
    scene.annotate({"fairlead.dev/start-now": when})
    assert state(scene.look()) == "Starting"


def test_programs_that_wait_for_their_peers_are_charged_with_nothing() -> None:
    """With backoffLimit 0: they are backed off, and end nobody."""
    scene = let(gang(backoffLimit=0)).runs("worker-0").exits("worker-0", 1)
    assert (scene.status.phase, scene.role("worker").failed) == ("Restarting", 0)
    scene.later(400)
    binds(scene, "worker-0", "worker-1")
    assert state(scene) == "Whole"
    assert scene.runs().exits("worker-0", 1).status.phase == "Failed"


def test_an_elastic_start_is_whole_with_its_leader_and_minimum() -> None:
    """The others may come later, or never."""
    spec: dict[str, Any] = {"framework": "pytorch", "pytorch": {"elastic": {"minReplicas": 2}}}
    spec |= {"replicas": {"worker": {"count": 3}}, "gang": {"startWithin": "1m"}}
    scene = let(Scene(**spec))
    assert state(binds(scene, "worker-1", "worker-2")) == "Starting"
    scene = let(Scene(**spec))
    assert state(binds(scene, "worker-0", "worker-2")) == "Whole"


def test_a_run_that_restarts_as_a_whole_starts_all_at_once_again() -> None:
    """Of restartScope Run alone."""
    for scope, after in (("Run", "Waiting"), ("Role", "Whole"), ("Replica", "Whole")):
        scene = binds(let(gang(restartScope=scope)), "worker-0", "worker-1").runs()
        scene.observed = replace(scene.observed, start=Start(why="another starts"))
        assert state(scene.exits("worker-1", 1)) == after


def test_a_suspension_ends_a_start() -> None:
    """Resumed, it begins anew."""
    scene = binds(let(gang()), "worker-0", "worker-1").spec(suspend=True)
    assert scene.status.gang is None
    scene.observed = replace(scene.observed, start=Start(why="another starts"))
    assert state(scene.spec(suspend=False)) == "Waiting"


def test_a_run_that_another_version_began_counts_as_whole() -> None:
    """That version, or its definitions, had no such field."""
    scene = binds(let(gang()), "worker-0")
    scene.run = scene.run.model_copy(
        update={"status": scene.status.model_copy(update={"gang": None})}
    )
    assert state(lacks(scene, "worker-1").later(7200)) == "Whole"
    metadata = {"name": "mnist", "creationTimestamp": "2026-11-21T20:15:00Z"}
    raw = {"metadata": metadata, "spec": {"gang": {"startWithin": "1m"}}}
    begun = {**raw, "status": {"startTime": "2026-11-21T20:15:00Z"}}
    assert stored_gang(begun) is None
    waiting = stored_gang(raw)
    assert waiting is not None
    assert waiting.state == "Waiting"


def test_a_class_is_given_up_as_early_as_without_a_gang() -> None:
    """Replicas wait for it over all tries: the next one is due when the policy gives it up."""
    rule = Fallback(Mode.ALLOW, 1, timedelta(days=1), timedelta(seconds=90), timedelta(minutes=5))
    assert rule.pending is not None
    scene = let(gang(within="1m"))
    for name in ("worker-0", "worker-1"):
        scene.set(name, fallback=(("spot", 90),))
        lacks(scene, name)
    scene.later(60)
    assert (state(scene), round(scene.after or 0)) == ("Waiting", 30)
    scene.later(30)
    for name in ("worker-0", "worker-1"):
        scene.set(name, fallback=(("spot", 90),))
        lacks(scene, name)
    events = [event for entry in scene.role("worker").history for event in entry.events]
    assert [event.waited_seconds for event in events] == [90]


def waits_for_spot(scene: Scene, *names: str) -> Scene:
    """Pods that may wait 90 seconds for spot find no node."""
    for name in names:
        scene.set(name, fallback=(("spot", 90),))
        lacks(scene, name)
    return scene


def test_a_class_that_is_required_again_is_waited_for_again() -> None:
    """The tries before it was given up do not count."""
    scene = waits_for_spot(let(gang(within="1m")), "worker-0", "worker-1").later(60)
    waits_for_spot(scene.later(30), "worker-0", "worker-1")
    assert len(scene.role("worker").history) == 1
    # Pods of the same try that the webhook has wait again.
    waits_for_spot(scene.later(5), "worker-0", "worker-1").later(20)
    events = [event for entry in scene.role("worker").history for event in entry.events]
    assert [event.waited_seconds for event in events] == [90]


def test_a_late_replica_of_an_elastic_run_goes_on_waiting_for_its_class() -> None:
    """After the others have started; until it has a node."""
    elastic = {"framework": "pytorch", "pytorch": {"elastic": {"minReplicas": 2}}}
    scene = waits_for_spot(let(gang(3, "1m", **elastic)), "worker-0", "worker-1", "worker-2")
    scene.later(60).later(30)
    binds(scene, "worker-0", "worker-1")
    assert state(scene) == "Whole"
    assert scene.status.gang is not None
    assert [wait.indexes for wait in scene.status.gang.waited] == ["2"]
    waits_for_spot(scene, "worker-2")
    assert [event.waited_seconds for event in scene.role("worker").history[0].events] == [90]


def starter(
    name: str, gang_state: str = "Waiting", *, since: float = 0, priority: int = 0, **fields: Any
) -> Starter:
    """A gang that competes for GPUs; older ones have names that sort before."""
    status = GangStatus(state=gang_state, since=stamp(since), priority=priority)
    fields = {"resources": frozenset({"nvidia.com/gpu"}), **fields}
    return Starter(f"lab/{name}", f"{UID}-{name}", f"2026-11-21T20:15:0{name}Z", status, **fields)


@pytest.mark.parametrize(
    ("others", "granted"),
    [
        pytest.param([], True, id="alone"),
        pytest.param([starter("1")], False, id="an older one waits"),
        pytest.param([starter("1", fits=False)], True, id="an older one never fits"),
        pytest.param([starter("3")], True, id="a younger one waits"),
        pytest.param([starter("3", priority=9)], False, id="one of higher priority waits"),
        pytest.param([starter("3", "Starting")], False, id="one starts"),
        pytest.param([starter("3", "Starting", since=-121)], True, id="one has no node for long"),
        pytest.param([starter("3", "Starting", since=-121, holds=True)], False, id="it holds some"),
        pytest.param(
            [starter("3", "Starting", resources=frozenset({"cpu"}))], True, id="of other resources"
        ),
        pytest.param(
            [starter("3", "Starting", resources=frozenset({"cpu"}), over_quota=True)],
            False,
            id="of one quota",
        ),
        pytest.param([starter("3", "Starting", resources=None)], False, id="not looked at yet"),
    ],
)
def test_gangs_start_one_after_the_other(others: list[Starter], granted: bool) -> None:
    """For each resource for which they compete."""
    start = find_start(starter("2"), others, moment(0))
    assert start.granted == granted
    if not granted:
        mentions(start.why, others[0].name)


def test_the_younger_of_two_that_hold_some_nodes_gives_way() -> None:
    """If the older one lacks some."""
    older = starter("1", "Starting", holds=True, lacks=True)
    younger = starter("2", "Starting", holds=True, lacks=True)
    assert find_start(younger, [older], moment(0)).yields_to == "lab/1"
    assert not find_start(older, [younger], moment(0)).yields_to
    assert not find_start(younger, [older._replace(lacks=False)], moment(0)).yields_to
    scene = lacks(binds(let(gang()), "worker-0"), "worker-1")
    assert state(let(scene, Start(yields_to="lab/1"))) == "Waiting"


def test_pods_without_an_extended_resource_compete_for_cpu() -> None:
    """Those with one compete for that alone."""
    assert contended(["pods", "cpu", "memory"]) == {"cpu"}
    assert contended(["pods", "cpu", "nvidia.com/gpu"]) == {"nvidia.com/gpu"}
