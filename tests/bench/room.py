"""`python -m tests.bench.room`: how long it takes to say how many pods can run at one time."""

from __future__ import annotations

import time
from statistics import median
from typing import Final

from webhook.placement.nodes import Node
from webhook.placement.room import PodGroup, find_room, node_kinds

NODES: Final = 10_000
KINDS: Final = 40
PODS: Final = 1_000
GROUPS: Final = 5
ROUNDS: Final = 25
_GPU: Final = "nvidia.com/gpu"


def nodes() -> list[Node]:
    """Nodes of 40 sizes, each with its own allocatable, as an API server lists them."""
    return [
        Node(
            f"node-{at}",
            {},
            [],
            allocatable={
                "cpu": 16_000 * (1 + at % 5),
                "memory": (64 + at % KINDS) << 30,
                "ephemeral-storage": 1 << 40,
                "pods": 110,
                _GPU: at % 3 * 4,
            },
        )
        for at in range(NODES)
    ]


def pod_groups() -> list[PodGroup]:
    """Groups of equal pods, each smaller than the one before it."""
    return [
        PodGroup(
            f"group-{at}",
            PODS // GROUPS,
            {"pods": 1, "cpu": 8000 - 1000 * at, "memory": (32 - at) << 30, _GPU: max(1, 8 >> at)},
        )
        for at in range(GROUPS)
    ]


def milliseconds() -> list[float]:
    """Processor time of each round, from the nodes that admit each group to the answer."""
    groups, every = pod_groups(), nodes()
    admitted = [
        tuple(node.name for at, node in enumerate(every) if at % 3 >= 1 + (position % 2))
        for position in range(GROUPS)
    ]
    times = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        find_room(groups, node_kinds(every, groups, admitted))
        times.append(1000 * (time.process_time() - begun))
    return times


if __name__ == "__main__":
    times = milliseconds()
    print(
        f"{NODES:,} nodes of {KINDS} sizes, {PODS:,} pods in {GROUPS} groups: "
        f"{median(times):.1f} ms ({min(times):.1f}–{max(times):.1f})"
    )
