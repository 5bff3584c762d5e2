"""The laws' model of the scheduler, held against the real kube-scheduler.

Which nodes admit a pod shows in where copies of it land that all want one host port: no two fit
onto one node. With one copy more than the model says that nodes admit the pod, the copies cover
those nodes and no others, and one is left that the scheduler finds no node for.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import strategies as st

from tests.agreement.scheduling import await_node, create_nodes, landings, schedulable
from tests.fuzz.drawn import drawn
from tests.laws import scheduler
from tests.laws.strategies import NODE_NAMES, nodes, pods, policy_lists
from tests.laws.world import decided, patched, policy_set
from webhook.sandbox.control_plane import ControlPlane

Json = dict[str, Any]
WORLDS = 6
NODES = 8
# Pods of a world: each as it comes, and as the engine makes it.
PODS = 60


def named_nodes(some: list[Json], world: int) -> list[Json]:
    """The nodes with names of their own, those that pods ask for by name among them."""
    names = [*NODE_NAMES, *(f"n{number}" for number in range(len(NODE_NAMES) + 1, 99))]
    allocatable = {"cpu": "1000", "memory": "1000Gi", "pods": "10000"}
    named = []
    for node, name in zip(some, names, strict=False):
        taints = {(taint["key"], taint["effect"]): taint for taint in node["spec"]["taints"]}
        named.append(
            {
                "metadata": {
                    "name": name,
                    "labels": {**node["metadata"]["labels"], "world": f"{world}"},
                },
                "spec": {"taints": list(taints.values())},
                "status": {"allocatable": allocatable, "capacity": allocatable},
            }
        )
    return named


def create_copies(
    plane: ControlPlane,
    namespace: str,
    world_nodes: list[Json],
    those: Iterable[Json],
    free: Iterator[int],
) -> dict[str, tuple[Json, list[str]]]:
    """Create a copy of each pod for every node that the model says admits it, and one more.

    Returns the pods by the name that their copies begin with, each with the nodes' names.
    """
    expected = {}
    for number, pod in enumerate(those):
        names = [one["metadata"]["name"] for one in world_nodes if _admits(pod, one)]
        expected[f"p{number}"] = pod, names
        # Pods of the worlds before still hold theirs, for nodes go by the same names.
        port = next(free)
        for copy_number in range(len(names) + 1):
            sent = schedulable(pod, f"p{number}-{copy_number}", port)
            plane.api.create(f"/api/v1/namespaces/{namespace}/pods", sent)
    return expected


def _admits(pod: Json, node: Json) -> bool:
    """Whether labels and taints do. The copies have no topologies: they would count each other."""
    return scheduler.labels_admit(pod, node) and scheduler.taints_admit(pod, node)


def variants(case: tuple[Json, list[Json]]) -> Iterator[Json]:
    """The pod as it came, and as the engine makes it, if it makes any other."""
    pod, policies = case
    yield pod
    decision = decided(pod, policy_set(policies))
    if decision.allowed:
        after = patched(pod, decision)
        if after["spec"] != pod["spec"]:
            yield after


def ungated(pod: Json) -> Json:
    """The pod without scheduling gates, behind which the scheduler never looks at it."""
    pod["spec"].pop("schedulingGates", None)
    return pod


def test_the_model_admits_exactly_the_nodes_that_the_scheduler_admits(
    scheduler_plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    """For random pods, as they come and as the engine makes them, and random nodes."""
    plane = scheduler_plane
    # The first examples are the simplest, and worlds without any label or taint.
    node_lists = drawn(
        st.lists(nodes(), min_size=NODES, max_size=NODES).map(copy.deepcopy), WORLDS * 5
    )[-WORLDS:]
    examples = st.tuples(pods().map(ungated), policy_lists()).map(copy.deepcopy)
    cases = drawn(examples, WORLDS * PODS)
    free = itertools.count(1)
    admitting: list[int] = []
    for world, some in enumerate(node_lists):
        those = itertools.chain.from_iterable(map(variants, cases[world::WORLDS]))
        world_nodes = named_nodes(some, world)
        namespace = f"world-{world}"
        plane.create_namespace(namespace)
        for before in plane.api.get("/api/v1/nodes")["items"]:
            plane.api.call("DELETE", f"/api/v1/nodes/{before['metadata']['name']}")
        create_nodes(plane, world_nodes)
        for node in world_nodes:
            await_node(plane, namespace, node)
        expected = create_copies(plane, namespace, world_nodes, those, free)
        landed = landings(plane, namespace)
        for name, (pod, names) in expected.items():
            assert landed[name] == sorted(names), (pod["spec"], world_nodes)
            admitting.append(len(names))
    with capsys.disabled():
        print(
            f"\nkube-scheduler and model agree on {len(admitting)} pods in {WORLDS} worlds of "
            f"{NODES} nodes: {admitting.count(0)} fit nowhere, "
            f"{sum(0 < count < NODES for count in admitting)} onto some nodes"
        )
    assert len(admitting) > WORLDS * PODS
    assert sum(0 < count < NODES for count in admitting) > WORLDS * PODS / 4
