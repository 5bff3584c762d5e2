"""Nodes that are alike to a pod are looked at once, and counted as often as they are there."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.comparison.worlds import NODES, TAINT
from tests.examples import examples
from tests.laws.strategies import nodes as drawn_nodes
from tests.laws.strategies import pods as drawn_pods
from tests.wording import mentions
from webhook.comparison.compare import Roster
from webhook.placement.nodes import Node, parse_node, survey
from webhook.placement.pod import PodPlacement
from webhook.placement.pod import parse_pod as placement_of


def placement(**spec: object) -> PodPlacement:
    """What of a pod chooses its nodes."""
    return placement_of({"metadata": {}, "spec": spec})


def test_the_conditions_that_shut_most_nodes_out_come_first() -> None:
    """At most three of them, each with how many nodes."""
    nodes = (*NODES, Node("full", {"pool": "steady"}, [], unschedulable=True))
    found = Roster(nodes).count_admitting(placement(nodeSelector={"pool": "spot"}), {})
    assert (found.admitted, found.total) == (0, 4)
    selector, (taint, tainted) = found.shut
    assert selector == ("nodeSelector pool=spot", 2)
    mentions(taint, "taint spot=true:NoSchedule")
    assert tainted == 2


def test_nodes_that_differ_by_a_taint_are_not_alike() -> None:
    """Nor those of which one is cordoned."""
    nodes = [Node("a", {}, []), Node("b", {}, [TAINT]), Node("c", {}, [], unschedulable=True)]
    assert Roster(nodes).count_admitting(placement(), {}).admitted == 1


def test_nodes_that_are_named_are_distinguished() -> None:
    """By the pod's nodeName, or by a field of its affinity."""
    assert Roster(NODES).count_admitting(placement(nodeName="steady-1"), {}).admitted == 1
    named = {"key": "metadata.name", "operator": "In", "values": ["steady-1"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [named]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert Roster(NODES).count_admitting(placement(affinity=affinity), {}).admitted == 1


@settings(
    deadline=None,
    max_examples=examples(80),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(drawn_pods(), min_size=1, max_size=3), st.lists(drawn_nodes(), max_size=8))
def test_the_numbers_are_those_of_looking_at_every_node(
    pods: list[dict[str, Any]], drawn: list[dict[str, Any]]
) -> None:
    """One pod after the other, for what is remembered must not mislead."""
    nodes = list({node["metadata"]["name"]: parse_node(node) for node in drawn}.values())
    roster = Roster(nodes)
    for pod in pods:
        own = placement_of(pod)
        wanted = survey(own, {}, nodes)
        found = roster.count_admitting(own, {})
        assert (found.admitted, found.total) == (len(wanted.admitted), wanted.total)
        shut = tuple((each.condition, len(each.nodes)) for each in wanted.shut[:3])
        assert found.shut == (() if wanted.admitted else shut)
