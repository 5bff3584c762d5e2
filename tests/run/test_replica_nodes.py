"""What a status keeps of the nodes of replicas: enough to name a lost one, within a bound."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from webhook.run.model.status import RoleStatus
from webhook.run.observed import NodeHealth, Observed, OwnedPod
from webhook.run.replica_nodes import MOST_TEXT, Place, record_nodes, recorded_places

NODES = {"a": NodeHealth("a", "uid", capacity_class="spot"), "b": NodeHealth("b", "uid")}


def pod(index: int, node: str, *classes: str, phase: str = "Running") -> OwnedPod:
    fallback = tuple((each, None) for each in classes)
    name = f"mnist-worker-{index}"
    return OwnedPod(name, name, "run", "worker", index, 0, phase, node=node, fallback=fallback)  # type: ignore[arg-type]


def test_each_replica_that_runs_is_recorded_with_its_node_and_classes() -> None:
    """Those that are alike share an entry."""
    pods = [pod(0, "a", "spot"), pod(1, "a", "spot"), pod(2, "b"), pod(3, "b", phase="Pending")]
    by_index = {each.index: each for each in pods}
    found = record_nodes(RoleStatus(), by_index, Observed(nodes=NODES))
    assert [(each.capacity_class, each.fallback, dict(each.nodes)) for each in found] == [
        ("", (), {"b": "2"}),
        ("spot", ("spot",), {"a": "0-1"}),
    ]
    places = recorded_places(RoleStatus(nodes=found), {0, 2, 3})
    assert places == {0: Place("a", "spot", ("spot",)), 2: Place("b")}
    # Before the nodes are listed their classes are not known, and stay.
    assert record_nodes(RoleStatus(nodes=found), by_index, Observed()) == found


def test_the_nodes_of_ten_thousand_replicas_fit_into_a_bound() -> None:
    """Whatever their names are; the same ones are kept at each look."""
    name = "ip-10-0-{}-{}.eu-west-1.compute.internal"
    pods = {index: pod(index, name.format(index // 250, index % 250)) for index in range(9999)}
    found = record_nodes(RoleStatus(), pods, Observed())
    [entry] = found
    assert 500 < len(entry.nodes) < 1000
    assert len(entry.model_dump_json()) < MOST_TEXT + 200
    assert record_nodes(RoleStatus(nodes=found), pods, Observed()) == found


def test_a_replica_on_two_nodes_cannot_be_read() -> None:
    """So what is read is bounded by the number of replicas."""
    with pytest.raises(ValidationError, match="has index 3 twice"):
        RoleStatus.model_validate({"nodes": [{"nodes": {"a": "0-5", "b": "3"}}]})
