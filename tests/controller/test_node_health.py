"""What is remembered of nodes, and whether they may be interrupted."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.controller.runs import Json, raw_node
from webhook.controller.node_health import Nodes
from webhook.run.observed import NodeHealth

NOW = datetime(2026, 11, 21, 20, 15, tzinfo=UTC)
SPOT = {"lifecycle": "spot"}


def raw_class(name: str, **spec: Any) -> Json:
    """A CapacityClass, as a list gives it."""
    return {"metadata": {"name": name, "uid": name, "generation": 1}, "spec": spec, "status": {}}


class Stage:
    """A view that has been listed."""

    def __init__(self, *nodes: Json, classes: tuple[Json, ...] = ()) -> None:
        self.view = Nodes(now=lambda: NOW)
        cache = self.view.cache
        kept = {each["metadata"]["name"]: cache.keep(each) for each in nodes}
        cache.replace({name: node for name, node in kept.items() if node}, "1")
        for each in classes:
            self.put(each)

    def put(self, raw: Json) -> None:
        """A class is heard of."""
        self.view.classes.put(raw["metadata"]["name"], self.view.classes.keep(raw))

    def of(self, name: str) -> NodeHealth:
        """What is known of a node."""
        found = self.view.get(name)
        assert found is not None
        return found


def test_nothing_is_reported_before_the_first_list() -> None:
    """That no node is known would say that all are gone."""
    assert Nodes().health(["a"]) is None
    assert Stage().view.health(["a"]) == {}


@pytest.mark.parametrize(
    ("changes", "trouble"),
    [
        ({}, ""),
        ({"ready": "False"}, "NodeNotReady"),
        ({"ready": "Unknown"}, "NodeNotReady"),
        ({"ready": "False", "shut_down": True}, "NodeNotReady"),
        ({"ready": "Unknown", "shut_down": True}, "NodeShutdown"),
        ({"ready": "True", "shut_down": True}, ""),
    ],
)
def test_a_nodes_problem_is_read_from_its_condition_and_taint(changes: Any, trouble: str) -> None:
    """The taint of a shutdown stays for a moment after the machine is back."""
    health = Stage(raw_node("a", **changes)).of("a")
    assert health.trouble == trouble
    assert health.since == ("2026-11-21T20:00:00Z" if changes.get("ready") else "") or not trouble


def test_a_node_without_a_status_from_its_kubelet_is_not_ready() -> None:
    """One that was made just now, say. That is no silence, whatever a taint says."""
    raw = raw_node("a", shut_down=True)
    raw["status"] = {}
    assert Stage(raw).of("a").trouble == "NodeNotReady"


def test_a_deleted_node_is_gone_since_its_delete_event() -> None:
    """Until one of that name is there again."""
    stage = Stage(raw_node("a"))
    stage.view.cache.put("a", None)
    assert stage.of("a") == NodeHealth("a", since="2026-11-21T20:15:00Z")
    stage.view.cache.put("a", stage.view.cache.keep(raw_node("a", uid="new")))
    assert stage.of("a").trouble == ""


def test_a_deleted_node_keeps_its_class() -> None:
    """An incident names it."""
    spot = raw_class("spot", interruptible=True, nodes=[{"labels": SPOT}])
    stage = Stage(raw_node("a", labels=SPOT), classes=(spot,))
    assert stage.of("a").capacity_class == "spot"
    stage.view.cache.put("a", None)
    assert (stage.of("a").trouble, stage.of("a").capacity_class) == ("NodeGone", "spot")


@pytest.mark.parametrize(
    "spec",
    [
        {"nodes": [{"labels": SPOT}], "later": True},
        {"nodes": [{"labels": SPOT, "later": "a"}]},
        {"nodes": [{"labels": SPOT, "taints": [{"key": "a", "effect": "Later"}]}]},
    ],
)
def test_a_class_that_a_later_version_wrote_stays_known_and_takes_no_pod_away(spec: Json) -> None:
    """What it does not know may say when not to: so nothing is lost by its silence."""
    illness = {"condition": "GpuHealthy", "status": "False", "lasts": "1m"}
    spot = raw_class("spot", interruptible=True, lostAfter="3m", unhealthy=[illness], **spec)
    node = raw_node("a", labels=SPOT)
    since = "2026-11-21T20:00:00Z"
    ill = {"type": "GpuHealthy", "status": "False", "lastTransitionTime": since}
    node["status"]["conditions"].append(ill)
    health = Stage(node, classes=(spot,)).of("a")
    assert (health.capacity_class, health.interruptible) == ("spot", True)
    assert (health.lost_after, health.ill) == (None, "")


def test_nodes_of_which_nothing_is_known_are_of_no_class_and_of_no_complement() -> None:
    """They could be of either, and what the complement does to its nodes is not for them."""
    later = {"key": "tier", "operator": "Later", "values": ["a"]}
    spot = raw_class("spot", nodes=[{"labels": SPOT}, {"matchExpressions": [later]}])
    rest = raw_class("rest", complementOf="spot", lostAfter="3m")
    health = Stage(raw_node("a"), classes=(spot, rest)).of("a")
    assert (health.capacity_class, health.lost_after) == ("", None)


def test_a_class_that_was_edited_just_before_a_node_went_is_still_the_nodes() -> None:
    """Nobody may have looked at the node between the two, or ever."""
    spot = raw_class("spot", interruptible=True, nodes=[{"labels": SPOT}])
    stage = Stage(raw_node("a", labels=SPOT), raw_node("b", labels=SPOT), classes=(spot,))
    assert stage.of("a").capacity_class == "spot"
    stage.put(raw_class("spot", interruptible=True, nodes=[{"labels": SPOT}], lostAfter="5m"))
    stage.view.cache.put("a", None)
    stage.view.lost("b")
    found = [stage.view.health_of_deleted(name).capacity_class for name in "ab"]
    assert found == ["spot", "spot"]


def test_a_node_that_went_before_the_classes_were_listed_is_of_its_class() -> None:
    """A controller that begins lists both at once."""
    stage = Stage(raw_node("a", labels=SPOT))
    stage.view.cache.put("a", None)
    assert stage.view.health_of_deleted("a").capacity_class == ""
    spot = stage.view.classes.keep(raw_class("spot", nodes=[{"labels": SPOT}]))
    assert spot is not None
    stage.view.classes.replace({"spot": spot})
    assert stage.of("a") == NodeHealth("a", since="2026-11-21T20:15:00Z", capacity_class="spot")


def test_a_node_that_went_after_its_class_is_of_none() -> None:
    """As it was while both of it could be seen."""
    spot = raw_class("spot", nodes=[{"labels": SPOT}])
    stage = Stage(raw_node("a", labels=SPOT), classes=(spot,))
    stage.view.classes.put("spot", None)
    assert stage.of("a").capacity_class == ""
    stage.view.cache.put("a", None)
    assert stage.of("a").capacity_class == ""


def test_a_heartbeat_changes_nothing() -> None:
    """Each node has one every few minutes, and many more changes that do not matter."""
    heard: list[object] = []
    stage = Stage(raw_node("a"))
    stage.view.cache.subscribe(heard.append)
    raw = raw_node("a", version=10)
    for condition in raw["status"]["conditions"]:
        condition["lastHeartbeatTime"] = "2026-11-21T20:19:00Z"
    raw["status"]["images"] = [{"names": ["example.invalid/none"]}]
    stage.view.cache.put("a", stage.view.cache.keep(raw))
    assert heard == []


def test_a_node_that_cannot_be_read_whole_is_known_to_be_there() -> None:
    """Whether it is ready can be told all the same."""
    raw = raw_node("a", ready="Unknown")
    raw["spec"]["taints"] = "none"
    assert Stage(raw).of("a").trouble == "NodeNotReady"


def test_any_node_may_be_interrupted_where_no_class_says_which() -> None:
    """A class that only tells its nodes says nothing of that."""
    health = Stage(raw_node("a"), classes=(raw_class("spot", nodes=[{"labels": SPOT}]),)).of("a")
    assert (health.interruptible, health.capacity_class) == (True, "")


@pytest.mark.parametrize(
    ("labels", "interruptible", "of"),
    [
        (SPOT, True, "spot"),
        ({"pool": "solid"}, False, "solid"),
        *(({}, True, ""), ({"gpu": "yes"}, True, "gpu")),
    ],
)
def test_a_node_may_be_interrupted_unless_a_class_of_its_own_says_no(
    labels: dict[str, str], interruptible: bool, of: str
) -> None:
    """Told by the class's labels. A class of spot nodes says nothing of the others."""
    spot = raw_class("spot", nodes=[{"labels": SPOT}], interruptible=True)
    solid = raw_class("solid", nodes=[{"labels": {"pool": "solid"}}], interruptible=False)
    gpu = raw_class("gpu", nodes=[{"labels": {"gpu": "yes"}}])
    health = Stage(raw_node("a", labels=labels), classes=(spot, solid, gpu)).of("a")
    assert (health.interruptible, health.capacity_class) == (interruptible, of)


def test_a_complement_and_a_class_that_says_no_count_too() -> None:
    """Of two that disagree the one that says yes does."""
    solid = raw_class("solid", nodes=[{"labels": {"pool": "solid"}}], interruptible=False)
    rest = raw_class("rest", complementOf="solid", interruptible=True)
    nodes = (raw_node("a", labels={"pool": "solid"}), raw_node("b"))
    stage = Stage(*nodes, classes=(solid, rest))
    assert (stage.of("a").interruptible, stage.of("b").capacity_class) == (False, "rest")
    stage.put(raw_class("also", nodes=[{"labels": {"pool": "solid"}}], interruptible=True))
    assert stage.of("a").interruptible


def test_a_class_that_cannot_be_read_says_nothing() -> None:
    """Its own status says what is wrong with it."""
    wrong = raw_class("spot", nodes=[{"labels": SPOT, "colour": "red"}], interruptible=True)
    lonely = raw_class("rest", complementOf="nobody", interruptible=True)
    assert Stage(raw_node("a"), classes=(wrong, lonely)).of("a").interruptible


@pytest.mark.parametrize(
    ("silent", "alive", "after"),
    [(1, 0, 300.0), (2, 0, 300.0), (3, 12, 300.0), (3, 11, math.inf), (3, 0, math.inf)],
)
def test_a_silent_node_is_given_up_unless_a_fifth_of_its_class_is_silent(
    silent: int, alive: int, after: float
) -> None:
    """Then the network may be broken, and the programs go on. Two nodes are no outage."""
    spot = raw_class("spot", nodes=[{"labels": SPOT}], lostAfter="5m")
    dead = [raw_node(f"dead-{n}", labels=SPOT, ready="Unknown") for n in range(silent)]
    well = [raw_node(f"well-{n}", labels=SPOT) for n in range(alive)]
    stage = Stage(*dead, *well, raw_node("other", ready="Unknown"), classes=(spot,))
    assert stage.of("dead-0").lost_after == after
    assert stage.of("other").lost_after is None


OUTAGE = "2026-11-21T20:01:00Z"


def spoke_again(name: str, at: str, *, created: str = "", kind: str = "Ready") -> Json:
    """A node of the class that is well since then, and was not before."""
    raw = raw_node(name, labels=SPOT)
    raw["metadata"]["creationTimestamp"] = created or raw["metadata"]["creationTimestamp"]
    others = [each for each in raw["status"]["conditions"] if each["type"] != kind]
    told = {"type": kind, "status": "True", "lastTransitionTime": at}
    raw["status"]["conditions"] = [*others, told]
    return raw


@pytest.mark.parametrize("kind", ["Ready", "GpuHealthy"])
@pytest.mark.parametrize(
    ("back", "created", "waits"),
    [
        # Two nodes may be bad: the second last that came back ended it.
        (["20:03:00", "20:04:00", "20:06:00"], "", 180.0),
        # Before that node was silent.
        (["20:00:30", "20:00:40", "20:00:50"], "", 0.0),
        # New machines in place of that node.
        (["20:03:00", "20:04:00", "20:06:00"], "2026-11-21T20:02:00Z", 0.0),
    ],
)
def test_the_time_of_a_node_counts_from_the_end_of_an_outage_of_many(
    back: list[str], created: str, waits: float, kind: str
) -> None:
    """As a controller finds it that has just started. It could not have been the node's fault."""
    rule = {"condition": "GpuHealthy", "status": "False", "lasts": "2m"}
    spot = raw_class("spot", nodes=[{"labels": SPOT}], lostAfter="5m", unhealthy=[rule])
    left = spoke_again("left", OUTAGE, kind=kind)
    left["status"]["conditions"][-1]["status"] = "Unknown" if kind == "Ready" else "False"
    others = [
        spoke_again(f"n{number}", f"2026-11-21T{at}Z", created=created, kind=kind)
        for number, at in enumerate(back)
    ]
    health = Stage(*others, left, raw_node("well", labels=SPOT), classes=(spot,)).of("left")
    if kind == "Ready":
        assert health.lost_after == 300 + waits
    else:
        assert health.ill_after == 120 + waits


def ill_nodes(ill: int, well: int, **condition: str) -> Stage:
    """Nodes of a class for which GpuHealthy=False is an illness, some of which have it."""
    rule = {"condition": "GpuHealthy", "status": "False", "lasts": "2m"}
    spot = raw_class("spot", nodes=[{"labels": SPOT}], unhealthy=[rule])
    nodes = [raw_node(f"node-{n}", labels=SPOT) for n in range(ill + well)]
    told = {"type": "GpuHealthy", "status": "False", "lastTransitionTime": "2026-11-21T20:14:00Z"}
    for each in nodes[:ill]:
        each["status"]["conditions"].append({**told, **condition})
    return Stage(*nodes, raw_node("other"), classes=(spot,))


@pytest.mark.parametrize(("ill", "well", "left"), [(2, 0, 60.0), (3, 12, 60.0), (3, 11, math.inf)])
def test_a_node_is_ill_unless_a_fifth_of_its_class_is(ill: int, well: int, left: float) -> None:
    """Then it may be the agent that is wrong."""
    stage = ill_nodes(ill, well)
    health = stage.of("node-0")
    assert health.ill == "GpuHealthy=False"
    assert health.seconds_until_sick(NOW) == left
    some = () if math.isinf(left) else range(ill)
    assert [each.name for each in stage.view.ill()] == [f"node-{n}" for n in some]
    assert stage.of("other").seconds_until_sick(NOW) is None


def test_every_class_of_a_node_judges_it() -> None:
    """The shortest silence counts, and each class is asked for its own nodes."""
    spot = raw_class("spot", nodes=[{"labels": SPOT}], interruptible=True, lostAfter="5m")
    rule = {"condition": "GpuHealthy", "status": "False", "lasts": "2m"}
    gpu = raw_class("gpu", nodes=[{"labels": {"gpu": "yes"}}], unhealthy=[rule], lostAfter="3m")
    told = {"type": "GpuHealthy", "status": "False", "lastTransitionTime": "2026-11-21T20:14:00Z"}
    ill = raw_node("ill", labels={**SPOT, "gpu": "yes"})
    ill["status"]["conditions"].append(told)
    others = [raw_node(name, labels={"gpu": "yes"}) for name in ("other", "third")]
    for other in others:
        other["status"]["conditions"].append(told)
    silent = raw_node("silent", labels={**SPOT, "gpu": "yes"}, ready="Unknown")
    stage = Stage(ill, classes=(spot, gpu))
    assert (stage.of("ill").ill, stage.of("ill").seconds_until_sick(NOW)) == (
        "GpuHealthy=False",
        60.0,
    )
    assert Stage(silent, classes=(spot, gpu)).of("silent").lost_after == 180.0
    assert Stage(ill, *others, classes=(spot, gpu)).of("ill").seconds_until_sick(NOW) == math.inf


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("after", ["5m", "1m"])
def test_of_two_illnesses_the_one_that_is_due_first_decides(order: int, after: str) -> None:
    """Whatever its name, its beginning, and the order of the node's conditions."""
    rules = [
        {"condition": "ALate", "status": "True", "lasts": "10m"},
        {"condition": "ZSoon", "status": "True", "lasts": after},
    ]
    spot = raw_class("spot", nodes=[{"labels": SPOT}], unhealthy=rules)
    node = raw_node("a", labels=SPOT)
    since = {"ALate": "2026-11-21T20:11:00Z", "ZSoon": "2026-11-21T20:14:00Z"}
    told = [
        {"type": kind, "status": "True", "lastTransitionTime": at} for kind, at in since.items()
    ]
    node["status"]["conditions"] += told[::order]
    health = Stage(node, classes=(spot,)).of("a")
    assert health.ill == "ZSoon=True"
    assert health.seconds_until_sick(NOW) == {"5m": 240.0, "1m": 0.0}[after]


@pytest.mark.parametrize(
    "since",
    [None, "", "yesterday", "2026-11-21", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", 7],
)
def test_a_condition_since_a_time_that_is_none_is_neither_illness_nor_silence(since: Any) -> None:
    """Kubelets write these times, and nothing that they write may stop a look at a Run."""
    rule = {"condition": "GpuHealthy", "status": "False", "lasts": "2m"}
    spot = raw_class("spot", nodes=[{"labels": SPOT}], unhealthy=[rule], lostAfter="5m")
    node = raw_node("a", labels=SPOT, ready="Unknown")
    told = {"type": "GpuHealthy", "status": "False"}
    node["status"]["conditions"].append(told)
    for condition in node["status"]["conditions"]:
        condition["lastTransitionTime"] = since
    health = Stage(node, classes=(spot,)).of("a")
    assert (health.ill, health.since) == ("", "")
    assert health.seconds_left(NOW, 10.0) is None
    assert not health.ready_again_after("2026-11-21T20:00:00Z")


def test_an_ill_node_does_not_keep_a_silent_one() -> None:
    """That the network is broken follows from silence alone."""
    rule = {"condition": "GpuHealthy", "status": "False", "lasts": "2m"}
    spot = raw_class("spot", nodes=[{"labels": SPOT}], unhealthy=[rule], lostAfter="5m")
    nodes = [raw_node(f"node-{n}", labels=SPOT) for n in range(5)]
    told = {"type": "GpuHealthy", "status": "False", "lastTransitionTime": "2026-11-21T20:14:00Z"}
    nodes[0]["status"]["conditions"].append(told)
    silent = [raw_node(name, labels=SPOT, ready="Unknown") for name in ("silent", "other")]
    stage = Stage(*nodes, *silent, classes=(spot,))
    assert stage.of("silent").lost_after == 300.0
    assert stage.of("node-0").seconds_until_sick(NOW) == math.inf


def test_a_silent_node_more_may_be_one_too_many_for_the_ill() -> None:
    """Whether the ill may be cured changes by the others of the class, and back."""
    stage = ill_nodes(2, 3)
    both = ["node-0", "node-1"]
    for ready, ill in (("True", both), ("Unknown", []), ("True", both)):
        raw = raw_node("node-2", labels=SPOT, ready=ready)
        stage.view.cache.put("node-2", stage.view.cache.keep(raw))
        assert [each.name for each in stage.view.ill()] == ill


def test_illness_is_that_of_the_class_and_ends() -> None:
    """Another status is none; a node that is well again is not ill, and a class may change."""
    assert not ill_nodes(1, 1, status="Unknown").view.ill()
    stage = ill_nodes(1, 1)
    stage.view.health_of_raw(raw_node("node-0", labels=SPOT, version=10))
    assert not stage.view.ill()
    stage = ill_nodes(1, 1)
    stage.put(raw_class("spot", nodes=[{"labels": SPOT}]))
    assert not stage.view.ill()


def test_an_announcement_by_a_taint_of_ones_own_is_known() -> None:
    """Beside those of clouds, once its key is named."""
    node = raw_node("a")
    node["spec"]["taints"] = [{"key": "example.com/other", "effect": "NoSchedule"}]
    stage = Stage()
    assert not stage.view.health_of_raw(node).leaving
    stage.view.leaving = {"example.com/other"}
    assert stage.view.health_of_raw(node).leaving


@pytest.mark.parametrize("taint", [None, "karpenter.sh/disrupted", "example.com/other"])
def test_an_announced_loss_is_known(taint: str | None) -> None:
    """By the taints of clouds and autoscalers; a cordon counts, too."""
    raw = raw_node("a")
    if taint:
        raw["spec"]["taints"] = [{"key": taint, "effect": "NoSchedule"}]
    assert Stage(raw).of("a").leaving == (taint == "karpenter.sh/disrupted")
    raw["spec"]["unschedulable"] = True
    assert Stage(raw).of("a").leaving
