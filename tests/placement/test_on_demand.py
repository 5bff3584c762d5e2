"""Classes whose nodes are made on demand."""

from __future__ import annotations

from typing import Any

import pytest

from webhook import names
from webhook.placement import capacity
from webhook.placement.capacity import CapacityClass
from webhook.placement.on_demand import makers
from webhook.placement.pod import PodPlacement
from webhook.placement.pod import read as read_pod

Json = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TAINT: Any = {"key": "spot", "value": "true", "effect": "NoSchedule"}
TOLERATED = [{"key": "spot", "operator": "Exists"}]
# What nodes have of each label now.
THERE = {"team": ["ml"], names.HOSTNAME_LABEL: ["n1"]}


def spot(*taints: Any, autoscaled: bool = True) -> CapacityClass:
    shape = capacity.shape({"lifecycle": "spot"}, [])
    return capacity.compiled("spot", [shape], taints, autoscaled=autoscaled)


def pod(*terms: Json, **spec: Any) -> PodPlacement:
    if terms:
        spec["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [*terms]}}}
    return read_pod({"metadata": {}, "spec": spec})


def term(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]}


def made(asked: PodPlacement, *classes: CapacityClass) -> list[str]:
    return makers(asked, classes or [spot()], lambda key: THERE.get(key, ()))


@pytest.mark.parametrize(
    "asked",
    [
        pod(),
        pod(nodeSelector={"lifecycle": "spot"}),
        pod(nodeSelector={"team": "ml"}),
        pod(nodeSelector={"topology.kubernetes.io/zone": "never-seen"}),
        pod(nodeSelector={"node.kubernetes.io/instance-type": "huge"}),
        pod(nodeSelector={"kubernetes.io/os": "linux"}),
        pod(term("lifecycle", "In", "spot", "cheap")),
        pod(term("lifecycle", "In", "cheap"), term("team", "Exists")),
        pod(term("nobody-has-it", "DoesNotExist")),
        pod(term(names.HOSTNAME_LABEL, "NotIn", "n1")),
    ],
)
def test_a_class_can_make_what_it_does_not_rule_out(asked: PodPlacement) -> None:
    """Labels that it names as it names them, labels of every node, and labels that are around."""
    assert made(asked) == ["spot"]


@pytest.mark.parametrize(
    "asked",
    [
        pod(nodeSelector={"lifecycle": "steady"}),
        pod(nodeSelector={"team": "nobody"}),
        pod(nodeSelector={"nobody-has-it": "x"}),
        pod(nodeSelector={names.HOSTNAME_LABEL: "n1"}),
        pod(term("lifecycle", "In", "cheap")),
        pod(term("team", "In", "nobody")),
        pod({}),
        pod({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}),
        pod(nodeName="n1"),
    ],
)
def test_a_class_cannot_make_what_nobody_ever_saw(asked: PodPlacement) -> None:
    """A label that no node has and the class does not name; another value; a node by its name."""
    assert made(asked) == []


def test_the_classs_taint_has_to_be_tolerated() -> None:
    """Of several providers' taints, one is enough."""
    other: Any = {"key": "gke-spot", "value": "true", "effect": "NoSchedule"}
    assert made(pod(), spot(TAINT)) == []
    assert made(pod(tolerations=TOLERATED), spot(TAINT)) == ["spot"]
    assert made(pod(tolerations=TOLERATED), spot(TAINT, other)) == ["spot"]
    assert made(pod(), spot({"key": "spot"})) == []


def test_only_classes_that_say_so_make_nodes() -> None:
    """A complement speaks for itself."""
    steady = capacity.complement("steady", spot(), autoscaled=True)
    assert made(pod(), spot(autoscaled=False)) == []
    assert made(pod(), spot(), steady) == ["spot", "steady"]
    assert made(pod(nodeSelector={"lifecycle": "spot"}), spot(), steady) == ["spot"]
    assert made(pod(), capacity.complement("steady", spot())) == []
