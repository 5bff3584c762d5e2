"""Classes whose nodes are made on demand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.objects import required_affinity
from webhook import names
from webhook.placement import capacity, on_demand
from webhook.placement.capacity import CapacityClass
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import Node
from webhook.placement.on_demand import makers
from webhook.placement.pod import PodPlacement
from webhook.placement.pod import parse_pod as read_pod

Json = dict[str, Any]
TAINT: Any = {"key": "spot", "value": "true", "effect": "NoSchedule"}
GPU: Any = {"key": "gpu", "effect": "NoSchedule"}
PRESSURE: Any = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}
TOLERATED = [{"key": "spot", "operator": "Exists"}]


def node(name: str, *taints: Any, **labels: str) -> Node:
    return Node(name, {names.HOSTNAME_LABEL: name, **labels}, taints)


# Of the class there is one team's node, under pressure; another team has a node of another kind.
THERE = (
    node("n1", PRESSURE, lifecycle="spot", team="ml"),
    node("n2", lifecycle="spot", team="web", unschedulable="x"),
    node("n3", lifecycle="steady", team="ops"),
    node("n4", GPU, lifecycle="spot", team="gpu"),
)


def spot(*taints: Any, autoscaled: bool = True) -> CapacityClass:
    shape = capacity.shape({"lifecycle": "spot"}, [])
    return capacity.compiled("spot", [shape], taints, autoscaled=autoscaled)


def pod(*terms: Json, **spec: Any) -> PodPlacement:
    if terms:
        spec["affinity"] = required_affinity(*terms)
    return read_pod({"metadata": {}, "spec": spec})


def term(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]}


def made(asked: PodPlacement, *classes: CapacityClass, there: Any = THERE) -> list[str]:
    return makers(asked, classes or [spot()], NodeGroups(there))


@pytest.mark.parametrize(
    "asked",
    [
        pod(),
        pod(nodeSelector={"lifecycle": "spot"}),
        pod(nodeSelector={"team": "ml"}),
        pod(nodeSelector={"team": "ml", "topology.kubernetes.io/zone": "never-seen"}),
        pod(nodeSelector={"node.kubernetes.io/instance-type": "huge"}),
        pod(nodeSelector={"kubernetes.io/os": "linux"}),
        pod(term("lifecycle", "In", "spot", "cheap")),
        pod(term("lifecycle", "In", "cheap"), term("team", "Exists")),
        pod(term("nobody-has-it", "DoesNotExist")),
        pod(term(names.HOSTNAME_LABEL, "NotIn", "n1")),
        pod(tolerations=[{"operator": "Exists"}], nodeSelector={"team": "gpu"}),
    ],
)
def test_a_class_can_make_what_it_says_and_what_it_has_made(asked: PodPlacement) -> None:
    """Labels as it names them, labels of every node, and nodes like those that there are."""
    assert made(asked) == ["spot"]


@pytest.mark.parametrize(
    "asked",
    [
        pod(nodeSelector={"lifecycle": "steady"}),
        pod(nodeSelector={"team": "nobody"}),
        pod(nodeSelector={"team": "ops"}),
        pod(nodeSelector={"team": "gpu"}),
        pod(nodeSelector={"nobody-has-it": "x"}),
        pod(nodeSelector={names.HOSTNAME_LABEL: "n1"}),
        pod(term("lifecycle", "In", "cheap")),
        pod(term("team", "In", "nobody")),
        pod({}),
        pod({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}),
        pod(nodeName="n1"),
    ],
)
def test_a_class_cannot_create_an_unknown_node(asked: PodPlacement) -> None:
    """A label that none of its nodes has, another value, another's taint, a node by its name."""
    assert made(asked) == []


def test_a_class_without_nodes_makes_what_its_shapes_say() -> None:
    """And no label beside that."""
    assert made(pod(nodeSelector={"lifecycle": "spot"}), there=()) == ["spot"]
    assert made(pod(nodeSelector={"team": "ml"}), there=()) == []


def test_the_classs_taint_has_to_be_tolerated() -> None:
    """Of several providers' taints, one is enough."""
    other: Any = {"key": "gke-spot", "value": "true", "effect": "NoSchedule"}
    assert made(pod(), spot(TAINT), there=()) == []
    assert made(pod(tolerations=TOLERATED), spot(TAINT), there=()) == ["spot"]
    assert made(pod(tolerations=TOLERATED), spot(TAINT, other), there=()) == ["spot"]
    assert made(pod(), spot({"key": "spot"}), there=()) == []


def test_only_classes_that_say_so_make_nodes() -> None:
    """A complement speaks for itself."""
    steady = capacity.complement("steady", spot(), autoscaled=True)
    assert made(pod(), spot(autoscaled=False)) == []
    assert made(pod(), spot(), steady) == ["spot", "steady"]
    assert made(pod(nodeSelector={"lifecycle": "spot"}), spot(), steady) == ["spot"]
    assert made(pod(), capacity.complement("steady", spot())) == []


def test_what_takes_too_long_to_look_at_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no alarm, then."""
    monkeypatch.setattr(on_demand, "_MOST_LOOKS", 2)
    assert made(pod(*(term("team", "In", f"{at}") for at in range(5)))) == ["spot"]
