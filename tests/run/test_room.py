"""How many replicas of a Run the nodes can run at one time, as its controller knows it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.run.whole_runs import a_run
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import Node
from webhook.placement.room import Limit, Room
from webhook.run.plan import plan
from webhook.run.pod_sets import PodSet
from webhook.run.room import room_of_pods, room_of_run
from webhook.run.run_documents import run_of

GPU = "nvidia.com/gpu"


def nodes(*gpus: int | None) -> NodeGroups:
    """Nodes with so many GPUs; None for one that does not report what it has."""
    return NodeGroups(
        Node(
            f"n{at}",
            {"pool": f"{at}"},
            [{"key": "gpu", "effect": "NoSchedule"}],
            allocatable=None if count is None else {"cpu": 64_000, "pods": 110, GPU: count},
        )
        for at, count in enumerate(gpus)
    )


def room(groups: NodeGroups, count: int = 4, **fields: Any) -> Room | None:
    """That of workers with 8 GPUs each."""
    spec = {"containers": [{"name": "main", "image": "i", "resources": {"limits": {GPU: "8"}}}]}
    worker = {"count": count, **fields}
    whole = a_run(framework="pytorch", template={"spec": spec}, replicas={"worker": worker})
    return room_of_run(plan(run_of(whole, "lab")), groups)


def test_only_requests_count() -> None:
    """Policies may let the pods onto nodes with a taint, or change what they select."""
    expected = Room(4, 2, 2, Limit(GPU, 2, 8, 8, {"worker": 8}))
    assert room(nodes(8, 0, 8)) == expected
    assert room(nodes(8, 0, 8), environment={"nodeSelector": {"pool": "none"}}) == expected


@pytest.mark.parametrize("gpus", [(8, 8, 16), (0, 0), (8, None)])
def test_where_there_may_be_more_there_is_no_limit(gpus: tuple[int | None, ...]) -> None:
    """Also of a resource that no node has, as DRA may provide it, and of a node that does not
    report what it has."""
    found = room(nodes(*gpus))
    assert found is None or found.limit is None


def test_a_replica_with_its_own_requests_is_counted_as_it_is() -> None:
    """It has room beside others."""
    light = {"index": 0, "resources": {"limits": {GPU: "4"}}}
    assert room(nodes(12), 3, byIndex=[light]) == Room(
        3, 2, 2, Limit(GPU, 1, 12, 12, {"worker": 8})
    )


def test_pods_as_they_are_placed_have_room_on_nodes_that_admit_them() -> None:
    """By labels, taints and cordons too; equal replicas of one role may be placed differently."""
    groups = nodes(8, 8, 8)
    spec: Any = {"containers": [{"name": "main", "image": "i"}]}
    spec["containers"][0]["resources"] = {"limits": {GPU: "8"}}
    tolerated = {**spec, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
    here = {**tolerated, "nodeSelector": {"pool": "1"}}

    def most(*specs: Any) -> int | None:
        roles = {f"role{at}": placed for at, placed in enumerate(specs)}
        found = room_of_pods([pod_set(role, placed) for role, placed in roles.items()], groups)
        return found and found.most

    assert most(spec) == 0
    assert most(tolerated) == 2
    assert most(here) == 1
    assert most(here, tolerated) == 3
    groups.update("n0", Node("n0", {"pool": "0"}, [], unschedulable=True, allocatable={"pods": 9}))
    assert most(here, tolerated) == 2
    assert most() is None


def pod_set(role: str, spec: Any) -> PodSet:
    """Two pods of a role, as they were tried."""
    return PodSet(role, role, (0, 1), 0, "", {"template": {"spec": spec}}, frozenset(), "", {})
