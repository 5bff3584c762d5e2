"""What the nodes that there are mean to classes and policies."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.laws import scheduler, strategies
from tests.laws.world import policy_set
from webhook.placement import nodes
from webhook.placement.nodes import Node
from webhook.policy.feasibility import Feasibility, MatchedNodes, feasibility, unreached
from webhook.policy.load import load

Json = dict[str, Any]
HEAD = "apiVersion: fairlead.dev/v1alpha1\n"
CLASSES = f"""\
{HEAD}kind: CapacityClass
metadata: {{name: spot}}
spec: {{nodes: [{{labels: {{pool: spot}}, taints: [{{key: spot, effect: NoSchedule}}]}}]}}
---
{HEAD}kind: CapacityClass
metadata: {{name: steady}}
spec: {{complementOf: spot}}
---
"""
SPOT = {"key": "spot", "effect": "NoSchedule"}
GPU = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}


def node(name: str, *taints: Any, **labels: str) -> Node:
    return Node(name, labels, list(taints))


WORLD = [
    node("steady-1", pool="steady"),
    node("spot-1", SPOT, pool="spot", zone="a"),
    node("spot-2", SPOT, GPU, pool="spot", gpu="a100"),
]


def judged(
    spec: str, world: list[Node] = WORLD, runtime_classes: Mapping[str, Json] = MappingProxyType({})
) -> Feasibility:
    """The nodes and the two classes, and one policy p with this spec in flow style."""
    policy = f"{HEAD}kind: PlacementPolicy\nmetadata: {{name: p}}\nspec: {{{spec}}}\n"
    policies = load({"f.yaml": (CLASSES + policy).encode()}).policies
    return feasibility(policies, world, runtime_classes)


def test_a_policy_whose_nodes_it_tolerates_is_not_reported() -> None:
    """Constrain brings the class's tolerations: one node of the two has no other taint."""
    found = judged("overrides: {capacity: [{class: spot, mode: Constrain}]}")
    assert found.concerns == ()
    assert MatchedNodes("PlacementPolicy", "p", "", 2, 1) in found.reaches
    assert MatchedNodes("PlacementPolicy", "p", "overrides", 2, 1) in found.reaches


def test_a_runtime_class_may_tolerate_what_the_policy_does_not() -> None:
    """Its tolerations are unknown; a class cannot help if no node has the labels."""
    found = judged("overrides: {nodeSelector: {pool: spot}, runtimeClassName: gvisor}")
    assert found.concerns == ()
    assert MatchedNodes("PlacementPolicy", "p", "", 2, None, (), "gvisor") in found.reaches
    none = judged("overrides: {nodeSelector: {pool: none}, runtimeClassName: gvisor}")
    assert len(none.concerns) == 1
    assert MatchedNodes("PlacementPolicy", "p", "", 0, 0) in none.reaches


@pytest.mark.parametrize(("pool", "left"), [("spot", 2), ("none", 0)])
def test_a_runtime_class_that_is_known_adds_its_selector_and_tolerations(
    pool: str, left: int
) -> None:
    """As the API server merges them into each pod."""
    scheduling = {"nodeSelector": {"pool": pool}, "tolerations": [{"operator": "Exists"}]}
    known = {"gvisor": {"scheduling": scheduling}}
    found = judged("overrides: {runtimeClassName: gvisor}", runtime_classes=known)
    assert MatchedNodes("PlacementPolicy", "p", "", left, left) in found.reaches
    assert [each.path for each in found.concerns] == [("spec",)] * (left == 0)


def test_a_setting_that_folding_drops_does_not_count_twice() -> None:
    """Of two parts that want other values of one key the first stands, and leaves nodes."""
    spec = "overrides: {nodeSelector: {pool: spot}}, defaults: {nodeSelector: {pool: steady}, "
    found = judged(spec + "tolerations: [{key: spot, operator: Exists}]}")
    assert found.concerns == ()
    assert MatchedNodes("PlacementPolicy", "p", "", 2, 1) in found.reaches


@settings(max_examples=examples(100), deadline=None)
@given(
    strategies.policy_lists(most=2),
    st.lists(strategies.nodes().map(copy.deepcopy), min_size=1, max_size=6),
)
def test_every_node_that_a_part_leaves_is_one_that_the_scheduler_would_take(
    policies: list[Json], world: list[Json]
) -> None:
    """The count of each part without capacity is that of an independent model."""
    for at, each in enumerate(world, start=1):
        each["metadata"]["name"] = f"n{at}"
    found = feasibility(policy_set(policies), [nodes.parse_node(each) for each in world], {})
    for policy in policies:
        for part in ("requirements", "overrides", "defaults"):
            placement = policy["spec"].get(part)
            if placement is None or "capacity" in placement or "split" in placement:
                continue
            fields = ("nodeSelector", "affinity", "topologySpreadConstraints")
            pod = {"spec": {key: placement.get(key) for key in fields}}
            expected = sum(
                scheduler.labels_admit(pod, each) and scheduler.topologies_admit(pod, each)
                for each in world
            )
            chosen = [
                reach.chosen
                for reach in found.reaches
                if (reach.name, reach.part.split(" ")[0]) == (policy["metadata"]["name"], part)
            ]
            assert chosen
            assert {*chosen} <= {None, expected}


@given(
    strategies.policy_lists(most=3),
    st.lists(strategies.nodes().map(copy.deepcopy), min_size=1, max_size=6),
)
def test_a_node_is_unreached_if_no_policy_as_a_whole_leaves_it(
    policies: list[Json], world: list[Json]
) -> None:
    """As the same check says of a cluster with that node alone."""
    for at, each in enumerate(world, start=1):
        each["metadata"]["name"] = f"n{at}"
    known = policy_set(policies)
    alone = 0
    for raw in world:
        wholes = [
            reach
            for reach in feasibility(known, [nodes.parse_node(raw)], {}).reaches
            if reach.kind == "PlacementPolicy" and reach.is_whole
        ]
        alone += all(
            reach.chosen == 0 if reach.tolerated is None else not reach.tolerated
            for reach in wholes
        )
    found = unreached(known, [nodes.parse_node(each) for each in world], {})
    assert sum(each.count for each in found) == alone


AUTOSCALED = CLASSES.replace("spec: {nodes:", "spec: {autoscaled: true, nodes:")
CONSTRAIN = "overrides: {capacity: [{class: spot, mode: Constrain}]}"


def of_autoscaled(spec: str, world: list[Node], classes: str = AUTOSCALED) -> Feasibility:
    policy = f"{HEAD}kind: PlacementPolicy\nmetadata: {{name: p}}\nspec: {{{spec}}}\n"
    return feasibility(load({"f.yaml": (classes + policy).encode()}).policies, world, {})


def test_missing_nodes_on_demand_produce_no_warning() -> None:
    """Neither of the class, nor of the policies that ask for it; who makes them is told."""
    found = of_autoscaled(CONSTRAIN, WORLD[:1])
    assert found.concerns == ()
    assert MatchedNodes("CapacityClass", "spot", "", 0, 0, ("spot",)) in found.reaches
    assert MatchedNodes("PlacementPolicy", "p", "", 0, 0, ("spot",)) in found.reaches
    assert MatchedNodes("CapacityClass", "steady", "", 1, 1) in found.reaches
