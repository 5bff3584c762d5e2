"""Evaluates the pods of a run, as the webhook does, and which node pools admit them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.decision.arrival import history_of
from webhook.placement import pod as pods
from webhook.placement.node_affinity import failed
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import Node, obstacle
from webhook.placement.pod import PREFERRED_NODES
from webhook.placement.pod_requests import requests
from webhook.placement.quantity import amount
from webhook.run.observation import pod as observed_pod
from webhook.run.own_terms import uncounted_waits
from webhook.run.plan import plan
from webhook.run.room import room_of_run
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.evaluation.world import World
    from webhook.placement.pod import PodPlacement
    from webhook.placement.room import Room
    from webhook.placement.shapes import JsonObject
    from webhook.run.model import Run
    from webhook.run.observed import OwnedPod
    from webhook.simulation.scenario import Pool

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_PODS: Final = "pods"
# Pods whose evaluation is kept. Their histories have times, and so most of them are used once.
_CACHED_EVALUATIONS: Final = 10_000


class Placed(NamedTuple):
    """What the webhook makes of a pod, and a reason if it rejects it.

    owned: as the controller sees it. pools: those that admit it, the best first; obstacles: if
    none does, why, by pool.
    """

    owned: OwnedPod
    pools: Sequence[str]
    obstacles: Sequence[tuple[str, str]]
    rejected: str = ""


class Placer:
    """Evaluates the pods of a run. Equal ones once: all repetitions of a policy set share it.

    number: of the run, if several share the nodes.
    """

    def __init__(self, world: World, run: Run, pools: Iterable[Pool], number: int = 0) -> None:
        self._world = world
        self.plan = plan(_stored(run, number))
        self.on_demand = any(c.autoscaled for c in world.policies.classes.values())
        self._pools = {pool.name: pool for pool in pools}
        self._nodes = {pool.name: _node(pool) for pool in self._pools.values()}
        self._groups = NodeGroups(self._nodes.values())
        self._known: dict[tuple[str, int, str], Placed] = {}
        self._rooms: dict[frozenset[tuple[str, int]], Room | None] = {}

    def placed(self, role: str, index: int, attempt: int, history: str) -> Placed:
        """Return what becomes of a replica's pod. The attempt decides nothing."""
        key = role, index, history
        if key not in self._known:
            if len(self._known) > _CACHED_EVALUATIONS:
                self._known.clear()
            self._known[key] = self._evaluate(self.plan.pod(role, index, attempt, history))
        return self._known[key]

    def uncounted_waits(self, waiting: Iterable[OwnedPod]) -> Mapping[tuple[str, str], str]:
        """Return why the waiting of pods for a class does not count, as if each pool had nodes."""
        return uncounted_waits(self.plan, waiting, self._world.policies.classes.get, self._groups)

    def room(self, present: Mapping[str, int]) -> Room | None:
        """Return the room of the run on so many nodes of each pool, as the controller does."""
        key = frozenset(present.items())
        if key not in self._rooms:
            nodes = (
                self._nodes[pool]._replace(name=f"{pool}-{number}", allocatable=alone)
                for pool, count in present.items()
                for alone in (_for_one(self._nodes[pool].allocatable),)
                for number in range(count)
            )
            self._rooms[key] = room_of_run(self.plan, NodeGroups(nodes))
        return self._rooms[key]

    def _evaluate(self, pod: JsonObject) -> Placed:
        namespace = self.plan.run.namespace
        history = history_of(pod)
        # The time is that of the simulation.
        world = replace(self._world, now=history.as_of) if history else self._world
        evaluation = world.evaluate(pod, namespace, led=False)
        stored = evaluation.stored() if evaluation.decision.allowed else pod
        metadata = {**stored["metadata"], "uid": names.NO_UID}
        owned = observed_pod({**stored, "metadata": metadata, "status": {"phase": "Pending"}})
        if owned is None:
            raise ValueError(f"pod {metadata['name']} is of no run")
        placement, asked = pods.parse_pod(stored), requests(stored["spec"])
        why = (
            ""
            if evaluation.allowed
            else "; ".join(evaluation.refusals or [evaluation.decision.reason])
        )
        obstacle_by_node = {
            name: obstacle(placement, asked, node) for name, node in self._nodes.items()
        }
        admitted = [name for name, shut in obstacle_by_node.items() if shut is None]
        wish = {name: _preference(placement, self._nodes[name]) for name in admitted}
        return Placed(
            owned,
            sorted(admitted, key=lambda name: (-wish[name], self._pools[name].price)),
            [] if admitted else [(name, str(shut)) for name, shut in obstacle_by_node.items()],
            why,
        )


def _stored(run: Run, number: int) -> Run:
    uid = f"{names.NO_UID[:-12]}{number:012}"
    metadata = run.metadata.model_copy(
        update={"uid": uid, "creation_timestamp": to_second(EPOCH), "generation": 1}
    )
    return run.model_copy(update={"metadata": metadata})


def _node(pool: Pool) -> Node:
    """Return a node of a pool; where it says what can be requested, 110 pods can be there."""
    allocatable = None
    if pool.allocatable is not None:
        given: dict[str, Any] = {_PODS: "110", **pool.allocatable}
        allocatable = {name: amount(name, value) for name, value in given.items()}
    labels = {"kubernetes.io/hostname": pool.name, **(pool.labels or {})}
    taints: list[Any] = [
        taint.model_dump(by_alias=True, exclude_none=True) for taint in pool.taints or ()
    ]
    return Node(pool.name, labels, taints, allocatable=allocatable)


def _for_one(allocatable: Mapping[str, int] | None) -> Mapping[str, int] | None:
    return None if allocatable is None else {**allocatable, _PODS: 1}


def _preference(placement: PodPlacement, node: Node) -> int:
    """Return the weight by which the pod prefers the node (NodeAffinity of the scheduler)."""
    return sum(
        term["weight"]
        for term in placement.lists.get(PREFERRED_NODES, ())
        if failed(term["preference"], node.labels, node.name) is None
    )
