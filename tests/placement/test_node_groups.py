"""Nodes in groups, kept current."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.laws import strategies
from webhook.placement import node_groups
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import Node, obstacle, parse_node, survey
from webhook.placement.pod import PodPlacement
from webhook.placement.pod import parse_pod as read_pod

Json = dict[str, Any]
SMALL = {"cpu": 1000, "pods": 10}
LARGE = {"cpu": 2000, "pods": 10}


def pod(**spec: Any) -> PodPlacement:
    return read_pod({"metadata": {}, "spec": spec})


def admitting(groups: NodeGroups, asked: PodPlacement) -> int:
    return sum(
        each.count for each in groups.groups_for(asked) if obstacle(asked, {}, each.node) is None
    )


@settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))
@given(
    st.lists(strategies.pods(), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 5), st.none() | strategies.nodes()), max_size=20),
)
def test_groups_count_what_looking_at_every_node_counts(
    pods: list[Json], changes: list[tuple[int, Json | None]]
) -> None:
    """Whatever nodes came, changed and went while the groups were in use."""
    groups, plain = NodeGroups(), dict[str, Node]()
    for at, (number, drawn) in enumerate(changes):
        name = f"n{number}"
        node = None if drawn is None else parse_node(drawn)._replace(name=name)
        groups.update(name, node)
        plain.pop(name, None)
        if node is not None:
            plain[name] = node
        asked = read_pod(pods[at % len(pods)])
        assert admitting(groups, asked) == len(survey(asked, {}, plain.values()).admitted)
    assert len(groups) == len(plain)
    for asked in map(read_pod, pods):
        assert sum(each.count for each in groups.groups_for(asked)) == len(plain)


def test_nodes_that_a_pod_cannot_tell_apart_are_one_group() -> None:
    """However many labels they differ by that the pod does not name."""
    groups = NodeGroups(
        Node(f"n{at}", {"host": f"n{at}", "pool": "ab"[at % 2]}, []) for at in range(100)
    )
    assert [each.count for each in groups.groups_for(pod())] == [100]
    assert [each.count for each in groups.groups_for(pod(nodeSelector={"pool": "a"}))] == [50, 50]
    assert len(groups.groups_for(pod(nodeSelector={"host": "n1"}))) == 100
    assert len(groups.groups_for(pod(nodeSelector={"nobody-has-it": "x"}))) == 1


def test_taints_and_cordons_tell_apart() -> None:
    """For no pod says beforehand which it tolerates."""
    taint: Any = {"key": "gpu", "effect": "NoSchedule"}
    groups = NodeGroups([Node("a", {}, [taint]), Node("b", {}, []), Node("c", {}, [], True)])
    assert len(groups.groups_for(pod())) == 3


def test_nodes_of_one_group_may_have_different_rooms() -> None:
    """Each with how many nodes have it; one that is left by its last node is gone."""
    groups = NodeGroups(Node(f"n{at}", {}, [], allocatable=SMALL) for at in range(3))
    groups.update("n3", Node("n3", {}, [], allocatable=LARGE))
    (alike,) = groups.groups_for(pod())
    assert sorted(alike.rooms.values(), key=str) == [(SMALL, 3), (LARGE, 1)]
    groups.update("n3", Node("n3", {}, [], allocatable=SMALL))
    assert list(alike.rooms.values()) == [(SMALL, 4)]


def test_a_label_that_comes_later_tells_apart() -> None:
    """Though a pod asked for it before any node had it."""
    groups = NodeGroups([Node("a", {}, [])])
    asked = pod(nodeSelector={"pool": "ml"})
    assert admitting(groups, asked) == 0
    groups.update("b", Node("b", {"pool": "ml"}, []))
    assert admitting(groups, asked) == 1
    assert len(groups.groups_for(pod(), ["pool"])) == 2
    groups.update("b", None)
    assert admitting(groups, asked) == 0
    assert len(groups.groups_for(pod(), ["pool"])) == 1


def test_a_label_of_deleted_nodes_belongs_to_no_node() -> None:
    """Though that node was the first of a group that others are still in."""
    groups = NodeGroups([Node("a", {"pool": "ml"}, []), Node("b", {}, [])])
    assert admitting(groups, pod()) == 2
    groups.update("a", None)
    assert admitting(groups, pod(nodeSelector={"pool": "ml"})) == 0
    groups.update("b", Node("b", {"zone": "z"}, []))
    absent = {"key": "pool", "operator": "DoesNotExist"}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [absent]}]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    assert admitting(groups, pod(affinity={"nodeAffinity": {required: terms}})) == 1


def test_each_change_raises_the_version() -> None:
    """So that what was said of pods is forgotten."""
    groups = NodeGroups([Node("a", {}, [])])
    before = groups.version
    groups.update("a", Node("a", {"x": "y"}, []))
    assert groups.version > before


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods' authors choose the keys; the grouping that was used longest ago goes."""
    monkeypatch.setattr(node_groups, "_MOST_GROUPS", 6)
    labels = {key: key for key in "abcdefghij"}
    groups = NodeGroups(Node(f"n{at}", labels, [], at == 0) for at in range(4))
    for key in labels:
        assert admitting(groups, pod(nodeSelector={key: key})) == 3
        assert sum(map(len, groups._groupings.values())) <= 6  # noqa: SLF001
    assert admitting(groups, pod(nodeSelector={"a": "a"})) == 3
