"""Which nodes admit a pod, and what shuts it out of the others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.laws import scheduler, strategies
from tests.objects import required_affinity
from tests.wording import Wording, mentions
from webhook.placement import nodes
from webhook.placement.nodes import InvalidNode, Node, obstacle, survey
from webhook.placement.pod import PodPlacement
from webhook.placement.pod import parse_pod as read_pod

Json = dict[str, Any]
SPOT = {"key": "spot", "value": "true", "effect": "NoSchedule"}


def pod(**spec: Any) -> PodPlacement:
    return read_pod({"metadata": {}, "spec": spec})


def affine(*terms: Json) -> PodPlacement:
    return pod(affinity=required_affinity(*terms))


def term(*expressions: str) -> Json:
    """Expressions written as `key Operator value`."""
    return {
        "matchExpressions": [
            {"key": key, "operator": operator} | ({"values": values} if values else {})
            for key, operator, *values in map(str.split, expressions)
        ]
    }


def node(name: str = "n1", *, cordoned: bool = False, taints: Any = (), **labels: str) -> Node:
    spec: Json = {"taints": [*taints]}
    if cordoned:
        spec["unschedulable"] = True
    return nodes.parse_node({"metadata": {"name": name, "labels": labels}, "spec": spec})


@settings(max_examples=examples(500), deadline=None)
@given(strategies.pods(), strategies.nodes())
def test_a_node_admits_what_the_scheduler_would_put_there(pod: Json, node: Json) -> None:
    """The answer is that of a model of the scheduler which shares no code with this."""
    admitted = obstacle(read_pod(pod), {}, nodes.parse_node(node)) is None
    assert admitted == scheduler.admits(pod, node)


@settings(max_examples=examples(200), deadline=None)
@given(strategies.pods(), strategies.nodes())
def test_what_is_named_is_what_is_in_the_way(pod: Json, node: Json) -> None:
    """Without the field that the obstacle names, that obstacle is gone."""
    found = obstacle(read_pod(pod), {}, nodes.parse_node(node))
    if found is None:
        return
    labels_admit = scheduler.labels_admit(pod, node)
    if found.condition.startswith("nodeSelector "):
        assert not scheduler.selector_holds(pod, node)
    elif found.condition.startswith("required affinity "):
        assert scheduler.selector_holds(pod, node)
        assert not scheduler.affinity_holds(pod, node)
    elif found.condition.startswith("topologyKey "):
        assert labels_admit
        assert not scheduler.topologies_admit(pod, node)
    else:
        assert labels_admit
        assert scheduler.topologies_admit(pod, node)
        assert not scheduler.taints_admit(pod, node)


@settings(max_examples=examples(200), deadline=None)
@given(
    strategies.pods(),
    st.lists(strategies.nodes(), max_size=6, unique_by=lambda node: node["metadata"]["name"]),
)
def test_a_survey_counts_every_node_once(pod: Json, listed: list[Json]) -> None:
    """Each node either admits the pod or stands under one condition; most nodes come first."""
    placement, views = read_pod(pod), [nodes.parse_node(each) for each in listed]
    found = survey(placement, {}, views)
    named = [*found.admitted, *(name for shut in found.shut for name in shut.nodes)]
    assert sorted(named) == sorted(view.name for view in views)
    assert found.total == len(views)
    assert len(found.admitted) == sum(scheduler.admits(pod, each) for each in listed)
    counts = [len(shut.nodes) for shut in found.shut]
    assert counts == sorted(counts, reverse=True)


@settings(max_examples=examples(200), deadline=None)
@given(strategies.pods(), st.lists(strategies.nodes(), max_size=6), st.data())
def test_a_survey_of_equal_nodes_is_that_of_each(
    pod: Json, listed: list[Json], data: st.DataObject
) -> None:
    """It asks one of those that are equal in what the pod asks for, and says it of all."""
    placement, views = read_pod(pod), [nodes.parse_node(each) for each in listed]
    copies = [
        view._replace(name=f"{number}-{at}")
        for number, view in enumerate(views)
        for at in range(data.draw(st.integers(1, 3)))
    ]
    found = survey(placement, {}, copies)
    conditions = {name: shut.condition for shut in found.shut for name in shut.nodes}
    for view in copies:
        alone = obstacle(placement, {}, view)
        assert conditions.get(view.name) == (alone and alone.condition)


def test_a_selector_key_is_named_with_what_the_node_has(wording: Wording) -> None:
    """The key and value that are wanted, and the value, or its absence, on the node."""
    wants = pod(nodeSelector={"pool": "ml"})
    assert obstacle(wants, {}, node(pool="ml")) is None
    for there, fact in ((node(pool="cpu"), "'cpu'"), (node(), "no such label")):
        found = obstacle(wants, {}, there)
        assert found is not None
        assert found.condition == "nodeSelector pool=ml"
        mentions(found.actual, fact)
        wording(str(found))


@pytest.mark.parametrize(
    ("terms", "condition"),
    [
        ([term("pool In ml gpu", "zone Exists")], "zone Exists"),
        ([term("zone In a"), term("zone In a", "gen Gt 5")], "zone In [a] (in each of 2 terms)"),
        (
            [term("zone In a"), term("gen Gt 5"), term("zone In a", "pool In ml")],
            "zone In [a] (term 1, 3); gen Gt 5 (term 2)",
        ),
        ([{}], "with an empty term"),
        ([], "without terms"),
        (
            [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}],
            "field metadata.name In [n2]",
        ),
    ],
)
def test_the_requirement_that_fails_is_named_with_its_term(
    terms: list[Json], condition: str
) -> None:
    """The first requirement of each term that does not hold, and which terms it is in."""
    found = obstacle(affine(*terms), {}, node(pool="ml", gen="5"))
    assert found is not None
    assert found.condition == f"required affinity {condition}"


def test_one_term_that_holds_is_enough() -> None:
    """Terms are alternatives."""
    assert obstacle(affine(term("zone In a"), term("pool In ml")), {}, node(pool="ml")) is None


def test_the_taint_that_is_not_tolerated_is_named(wording: Wording) -> None:
    """As kubectl writes it; what only makes a node less liked shuts nobody out."""
    soft = {"key": "old", "effect": "PreferNoSchedule"}
    tainted = node(taints=[soft, SPOT, {"key": "gpu", "effect": "NoExecute"}])
    first = obstacle(pod(), {}, tainted)
    assert first is not None
    mentions(first.condition, "taint", "spot=true:NoSchedule")
    wording(str(first))
    second = obstacle(pod(tolerations=[{"key": "spot", "value": "true"}]), {}, tainted)
    assert second is not None
    mentions(second.condition, "taint", "gpu:NoExecute")


def test_a_cordoned_node_admits_only_who_tolerates_that() -> None:
    """As the NodeUnschedulable plugin has it, with or without the taint that comes with it."""
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    for cordoned in (node(cordoned=True), node(cordoned=True, taints=[taint])):
        found = obstacle(pod(), {}, cordoned)
        assert found is not None
        assert found.condition == "cordoned"
        tolerant = pod(tolerations=[{"key": taint["key"], "operator": "Exists"}])
        assert obstacle(tolerant, {}, cordoned) is None


def test_a_bound_pod_is_shut_out_of_all_other_nodes() -> None:
    """Of its own node's taints only NoExecute counts, for the scheduler is passed by."""
    bound = pod(nodeName="n1")
    other = obstacle(bound, {}, node("n2"))
    assert other is not None
    assert other.condition == "nodeName n1"
    assert obstacle(bound, {}, node("n1", cordoned=True, taints=[SPOT])) is None
    evicts = obstacle(bound, {}, node("n1", taints=[SPOT | {"effect": "NoExecute"}]))
    assert evicts is not None
    mentions(evicts.condition, "taint", "spot=true:NoExecute")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "metadata.name"),
        ({"metadata": []}, "metadata"),
        ({"metadata": {"name": "n", "labels": {"a": True}}}, "metadata.labels[a]"),
        ({"metadata": {"name": "n"}, "spec": {"taints": {"key": "spot"}}}, "spec.taints"),
        ({"metadata": {"name": "n"}, "spec": {"taints": ["spot"]}}, "spec.taints[0]"),
        ({"metadata": {"name": "n"}, "spec": {"taints": [None]}}, "spec.taints[0]"),
        ({"metadata": {"name": "n"}, "spec": {"taints": [{"value": 1}]}}, "spec.taints[0].value"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(given: Json, field: str) -> None:
    """A node that is none is an error with the field's path."""
    with pytest.raises(InvalidNode) as caught:
        nodes.parse_node(given)
    assert caught.value.field == field


def test_all_that_an_author_may_write_without_end_is_work() -> None:
    """Labels, terms, requirements, tolerations, and values, of which some go into one look."""
    few, many = ["a"], ["a"] * 3200
    assert nodes.work(pod()) == 1
    assert nodes.work(pod(nodeSelector={"a": "b"}, tolerations=[{"key": "a"}])) == 3
    one: Json = {"key": "a", "operator": "In", "values": few}
    more: Json = {"key": "metadata.name", "operator": "NotIn", "values": many}
    assert nodes.work(affine({"matchExpressions": [one]}, {"matchExpressions": [one]})) == 5
    assert nodes.work(affine({"matchFields": [more]})) == 203
