"""Nodes by capacity class: each node and each pod of a run counts once, as the scheduler counts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.wording import mentions
from webhook import names
from webhook.placement.capacity import compiled, complement, shape
from webhook.placement.nodes import Node
from webhook.ui.pools import PodOfRun, answer_of, causes_of, pod_of, pool_rows

SPOT = compiled("spot", [shape({"spot": "true"}, [])], [])
GPU = compiled("gpu", [shape({"gpu": "yes"}, [])], [])
CLASSES = [SPOT, GPU, complement("on-demand", SPOT)]


def node(name: str, cordoned: bool = False, **labels: str) -> Node:
    """A node with 4 CPUs."""
    return Node(name, labels, [], cordoned, {"cpu": 4000, "pods": 110, "example.com/gpu": 2})


def pod(name: str, where: str, **requests: int) -> PodOfRun:
    """A pod of a run on a node."""
    return PodOfRun("ns", name, "r", where, requests, "", "")


def raw(**changes: Any) -> dict[str, Any]:
    """A stored pod with a stamp."""
    spec = {"containers": [{"resources": {"requests": {"cpu": "500m"}}}], "nodeName": "a"}
    annotations = {names.PLACEMENT: "{}"}
    metadata = {"name": "p", "namespace": "ns", "annotations": annotations}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}, **changes}


def test_a_row_has_what_its_nodes_have_and_what_runs_request_there() -> None:
    """Nodes of several classes are a row of their own."""
    rows = pool_rows(
        [node("a", spot="true"), node("b", cordoned=True, spot="true"), node("c", gpu="yes")],
        [pod("p", "a", cpu=1500), pod("q", "b", cpu=500), pod("gone", "nowhere", cpu=9)],
        CLASSES,
    )
    assert [(row.classes, row.nodes, row.cordoned, row.pods) for row in rows] == [
        ("gpu, on-demand", 1, 0, 0),
        ("spot", 2, 1, 2),
    ]
    assert rows[1].resources == [
        ("cpu", "2", "8", 0.25),
        ("pods", "2", "220", 2 / 220),
        ("example.com/gpu", "0", "4", 0),
    ]
    assert [square.state for square in rows[1].squares] == ["Running", "cordoned"]


def test_waiting_pods_are_grouped_by_their_cause() -> None:
    """The cause of most pods first; what the scheduler says about preemption is no part of it."""
    why = "0/3 nodes are available: 3 Insufficient cpu"
    pods = [
        pod("a", "")._replace(why=f"{why}. preemption: 0/3 nodes", since="2026-01-02T00:00:00Z"),
        pod("b", "")._replace(why=f"{why}. preemption: 1/3 nodes", since="2026-01-01T00:00:00Z"),
        pod("c", ""),
        pod("runs", "n"),
    ]
    causes = causes_of(pods)
    assert [(cause.why, cause.pods, cause.runs) for cause in causes] == [
        (why, 2, "ns/r"),
        ("", 1, "ns/r"),
    ]
    assert causes[0].first.name == "b"
    mentions(answer_of(causes), "3 pods of runs wait for a node", "2 of them", "Insufficient cpu")
    assert answer_of([]) == "No pod of a run waits for a node."
    assert answer_of([], 2) == "No pod of a run waits for a node; nodes have no room for 2 runs."
    mentions(answer_of(causes, 1), "Insufficient cpu; nodes have no room for 1 run")


@pytest.mark.property
@settings(max_examples=examples(100))
@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=12),
    st.lists(st.integers(0, 15), max_size=20),
)
def test_each_node_and_each_pod_counts_once(
    nodes: list[tuple[bool, bool, bool]], places: list[int]
) -> None:
    """Whatever classes the nodes are of."""
    made = [
        node(f"n{at}", cordoned, **{key: value for key, value in labels if value})
        for at, (spot, gpu, cordoned) in enumerate(nodes)
        for labels in [[("spot", "true" * spot), ("gpu", "yes" * gpu)]]
    ]
    pods = [pod(f"p{at}", f"n{place}", cpu=1) for at, place in enumerate(places)]
    rows = pool_rows(made, pods, CLASSES[:2])
    assert sum(row.nodes for row in rows) == len(made)
    assert sum(row.cordoned for row in rows) == sum(each.unschedulable for each in made)
    assert sum(row.pods for row in rows) == sum(place < len(made) for place in places)
    assert len({row.classes for row in rows}) == len(rows)


def test_pods_without_a_stamp_and_ended_pods_are_left_out() -> None:
    """Of others, the scheduler's reason is kept while they wait."""
    assert pod_of(raw(status={"phase": "Succeeded"})) is None
    assert pod_of(raw(metadata={"name": "p", "namespace": "ns"})) is None
    found = pod_of(raw())
    assert found is not None
    assert (found.node, found.requests, found.why) == ("a", {"cpu": 500}, "")
    condition = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}
    waiting = pod_of(raw(status={"phase": "Pending", "conditions": [condition]}))
    assert waiting is not None
    assert waiting.why == "0/3 nodes"
