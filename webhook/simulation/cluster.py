"""The nodes of a scenario in virtual time, and who gives them to pods.

Scheduler, autoscaler and kubelets are played here, as simply as possible; ASSUMPTIONS of play.py
says how.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING

from webhook.run.observed import NodeHealth
from webhook.simulation.chance import Chance
from webhook.simulation.placer import EPOCH
from webhook.times import span_seconds, to_second

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webhook.run.observed import OwnedPod
    from webhook.simulation.placer import Placed
    from webhook.simulation.scenario import Pool


@dataclass
class SimPod:
    """A pod. owned: as the controller sees it; note: records what happens to it."""

    owned: OwnedPod
    placed: Placed
    note: Callable[[str], None]


@dataclass
class SimNode:
    """A node of a pool. pod: the uid of the one that has it; ready: when it is there."""

    name: str
    number: int
    pool: Pool
    ready: float
    pod: str = ""
    up: bool = False


class SimCluster:
    """Nodes and pods at the moment `now`, in seconds from the start."""

    def __init__(self, pools: Sequence[Pool], *, seed: int, repetition: int, until: float) -> None:
        self.now = 0.0
        self._pools = {pool.name: pool for pool in pools}
        self._chance = {pool.name: Chance(pool, seed, repetition, until) for pool in pools}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        # By uid, in the order of their creation.
        self._pods: dict[str, SimPod] = {}
        self._nodes: dict[str, SimNode] = {}
        self._made: dict[str, int] = dict.fromkeys(self._pools, 0)
        self._lost: dict[str, str] = {}
        for pool in pools:
            chance = self._chance[pool.name]
            for _, end in chance.sold_out:
                self.at(end, self.schedule)
            for number, at in enumerate(chance.batches):
                self.at(at, lambda pool=pool, number=number: self._batch(pool, number))  # type: ignore[misc]
            for event in pool.events or ():
                if event.lose:
                    at, lose = span_seconds(event.at), event.lose
                    self.at(at, lambda pool=pool, lose=lose: self._lose_oldest(pool, lose))  # type: ignore[misc]

    @property
    def time(self) -> datetime:
        """The moment as a time."""
        return EPOCH + timedelta(seconds=self.now)

    @property
    def next_event(self) -> float:
        """When something happens next; infinite if nothing does."""
        return self._events[0][0] if self._events else float("inf")

    def at(self, at: float, then: Callable[[], None]) -> None:
        """Have something happen at a moment."""
        heapq.heappush(self._events, (at, next(self._numbers), then))

    def play_events(self) -> bool:
        """Do what is due at this moment; return whether anything was."""
        due = self.next_event <= self.now
        while self.next_event <= self.now:
            heapq.heappop(self._events)[2]()
        return due

    def present(self) -> Mapping[str, int]:
        """Return how many nodes of each pool are there, with those that need no time to be made."""
        up = dict.fromkeys(self._pools, 0)
        for node in self._nodes.values():
            up[node.pool.name] += node.up
        return {
            name: pool.nodes
            if not span_seconds(pool.boot) and self._chance[name].in_stock(self.now)
            else up[name]
            for name, pool in self._pools.items()
        }

    def health(self, pods: Iterable[OwnedPod]) -> dict[str, NodeHealth]:
        """Return the nodes of the pods, as the controller sees them."""
        health_by_node = {}
        for pod in pods:
            if pod.node and pod.node not in health_by_node:
                pool = pod.node.rpartition("-")[0]
                health_by_node[pod.node] = (
                    NodeHealth(pod.node, uid=pod.node, capacity_class=pool)
                    if pod.node in self._nodes
                    else NodeHealth(pod.node, since=self._lost[pod.node], capacity_class=pool)
                )
        return health_by_node

    def create(self, pod: SimPod) -> None:
        """Create a pod: it gets a uid, and a node if it can."""
        name = pod.owned.name
        uid = f"{name}-{next(self._numbers)}"
        pod.owned = replace(pod.owned, uid=uid, created=to_second(self.time))
        self._pods[uid] = pod
        self._schedule(uid)

    def remove(self, pod: SimPod) -> None:
        """Delete a pod; others get its node once they are scheduled."""
        del self._pods[pod.owned.uid]
        self._release(pod.owned.uid)

    def end(self, pods: Iterable[SimPod], **ending: object) -> None:
        """End pods by themselves; their nodes are free."""
        for pod in pods:
            pod.owned = replace(pod.owned, ready=False, **ending)  # type: ignore[arg-type]
            self._release(pod.owned.uid)
        self.schedule()

    def schedule(self) -> None:
        """Give nodes to the pods that wait, the oldest first."""
        for uid, pod in list(self._pods.items()):
            if not pod.owned.node and not pod.owned.ended:
                self._schedule(uid)

    def _release(self, uid: str) -> None:
        for node in self._nodes.values():
            if node.pod == uid:
                node.pod = ""

    def _schedule(self, uid: str) -> None:
        """Give a pod a free node, or have one made for it."""
        pod = self._pods[uid]
        pools = pod.placed.pools
        free = [
            node
            for node in self._nodes.values()
            if node.up and not node.pod and node.pool.name in pools
        ]
        if free:
            node = min(free, key=lambda node: (pools.index(node.pool.name), node.number))
            self._bind(uid, node)
            return
        if all(node.pod != uid for node in self._nodes.values()):
            self._ask_for_node(uid, pools)
        if not pod.owned.node and not pod.owned.unscheduled:
            text = f"no node is free; pools that admit the pod: {', '.join(pools) or 'none'}"
            text += "".join(f"; {name}: {why}" for name, why in pod.placed.obstacles)
            since = to_second(self.time)
            pod.owned = replace(pod.owned, unscheduled=text, unscheduled_since=since)

    def _ask_for_node(self, uid: str, pools: Sequence[str]) -> None:
        for pool in pools:
            node_count = sum(node.pool.name == pool for node in self._nodes.values())
            if node_count < self._pools[pool].nodes and self._chance[pool].in_stock(self.now):
                self._make(self._pools[pool], uid)
                return

    def _make(self, pool: Pool, uid: str) -> None:
        number = self._made[pool.name]
        self._made[pool.name] += 1
        ready = self.now + span_seconds(pool.boot)
        node = SimNode(f"{pool.name}-{number}", number, pool, ready, uid)
        self._nodes[node.name] = node
        if node.ready > self.now:
            self.at(node.ready, lambda: self._join(node))
        else:
            self._join(node)
        lives = self._chance[pool.name].lifetime(number)
        if lives != float("inf"):
            self.at(node.ready + lives, lambda: self._lose(node))

    def _join(self, node: SimNode) -> None:
        if node.name not in self._nodes:
            return
        uid, node.pod, node.up = node.pod, "", True
        if uid and not self._pods[uid].owned.node:
            self._bind(uid, node)
        self.schedule()

    def _bind(self, uid: str, node: SimNode) -> None:
        self._release(uid)
        node.pod = uid
        pod, now = self._pods[uid], to_second(self.time)
        pod.owned = replace(
            pod.owned,
            node=node.name,
            bound_since=now,
            running_since=now,
            phase="Running",
            ready=True,
            unscheduled="",
            unscheduled_since="",
        )
        pod.note(f"{pod.owned.name} runs in pool {node.pool.name}")

    def _lose(self, node: SimNode) -> None:
        if self._nodes.pop(node.name, None) is None:
            return
        self._lost[node.name] = to_second(self.time)
        pod = self._pods.get(node.pod)
        if pod and node.up and not pod.owned.ended:
            gone = ("TerminationByKubelet", "the node is interrupted", to_second(self.time))
            pod.owned = replace(
                pod.owned, phase="Failed", ready=False, reason="Terminated", disruption=gone
            )
            pod.note(f"{pod.owned.name} loses its node in pool {node.pool.name}")
        elif pod:
            self._schedule(node.pod)

    def _batch(self, pool: Pool, number: int) -> None:
        for node in list(self._nodes.values()):
            is_running = node.pool is pool and node.up
            if is_running and self._chance[pool.name].taken(number, node.number):
                self._lose(node)

    def _lose_oldest(self, pool: Pool, most: int) -> None:
        pool_nodes = [node for node in self._nodes.values() if node.pool is pool and node.up]
        for node in sorted(pool_nodes, key=lambda node: node.number)[:most]:
            self._lose(node)
