"""How many replicas of a Run the nodes can run at one time, as its controller knows it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.run.whole_runs import a_run
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import Node
from webhook.placement.room import Limit, Room
from webhook.run.plan import plan
from webhook.run.room import room_of_run
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
