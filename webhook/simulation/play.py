"""Play one run under one policy set, from its creation to its end.

The webhook's evaluation places each pod, and the controller's reconcile decides what is done.
Scheduler, autoscaler and kubelets are played here, as simply as possible; ASSUMPTIONS says how.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook import names
from webhook.run import actions as act
from webhook.run.facts import collect_facts
from webhook.run.observed import Exit, NodeHealth, Observed, Refusal
from webhook.run.reconcile import reconcile
from webhook.run.usage import REPLICAS, live_usage, sum_usage
from webhook.simulation.chance import Chance
from webhook.simulation.placer import EPOCH
from webhook.times import span_seconds, to_second

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.run.observed import OwnedPod
    from webhook.simulation.placer import Placed, Placer
    from webhook.simulation.scenario import Pool, ScenarioSpec

ASSUMPTIONS: Final = (
    "a node runs one replica; an autoscaler makes nodes for pods that wait, and removes none",
    "a pod gets the free node, or else the new one, that it prefers most, then the cheapest",
    "an interrupted node ends its pods as kubelets do at a shutdown, and is gone at once",
    "the program makes progress only while all replicas run; it does not fail by itself",
    "a checkpoint takes no time",
    "a replica runs as soon as it has a node; a pod that is deleted is gone at once",
    "cost is that of replicas on nodes: neither nodes that boot nor those without a pod cost",
    "lifetimes of nodes are exponential; only batches take several nodes together",
)
# The most moments of one repetition. In a year with an interruption each hour there are about as
# many; where nodes live for seconds, there would be no end.
MOST_MOMENTS: Final = 50_000
# Reconciles at one moment. A run whose pods are refused never comes to rest.
_MAX_RECONCILES: Final = 1000


class Happening(NamedTuple):
    """Something that happened: seconds from the start, and what, in words."""

    at: float
    what: str


class Ending(NamedTuple):
    """How a run ended.

    phase: that of the run; not an end if the limit came first.
    seconds: until then. cost: hours of a replica on demand. waiting: hours of replicas without a
    node. nodes: hours of replicas by pool. lost: those of them in which the program made no
    progress that it kept. incidents: disruptions of the run.
    """

    phase: str
    seconds: float
    cost: float
    waiting: float
    lost: float
    nodes: Mapping[str, float]
    incidents: int
    happenings: Sequence[Happening]
    reason: str


@dataclass
class SimNode:
    """A node of a pool. pod: the name of the one that has it; ready: when it is there."""

    name: str
    number: int
    pool: Pool
    ready: float
    pod: str = ""
    up: bool = False


class Play:
    """One repetition. `until`: seconds from the start at which it is given up."""

    def __init__(self, placer: Placer, spec: ScenarioSpec, *, seed: int, repetition: int) -> None:
        self._placer = placer
        self._program = spec.program
        self._replicas = sum(role.count for role in placer.plan.run.spec.roles.values())
        self._until = span_seconds(spec.limit)
        self._pools = {pool.name: pool for pool in spec.pools}
        self._chance = {
            pool.name: Chance(pool, seed, repetition, self._until) for pool in spec.pools
        }
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._run = placer.plan.run
        self._pods: dict[str, OwnedPod] = {}
        self._placed: dict[str, Placed] = {}
        self._nodes: dict[str, SimNode] = {}
        self._made: dict[str, int] = dict.fromkeys(self._pools, 0)
        self._lost: dict[str, str] = {}
        self._refusals: dict[str, Refusal] = {}
        self._service = self._config_map = False
        self._saved = 0.0
        # Since when all replicas run.
        self._whole_since: float | None = None
        # Names of pods that the status plans, and that were never created since.
        self._uncreated: set[str] = set()
        self._due = float("inf")
        self._happened: list[Happening] = []
        for pool in spec.pools:
            chance = self._chance[pool.name]
            for _, end in chance.sold_out:
                self._at(end, self._schedule_all)
            for number, at in enumerate(chance.batches):
                self._at(at, lambda pool=pool, number=number: self._batch(pool, number))  # type: ignore[misc]
            for event in pool.events or ():
                if event.lose:
                    at, lose = span_seconds(event.at), event.lose
                    self._at(at, lambda pool=pool, lose=lose: self._lose_oldest(pool, lose))  # type: ignore[misc]

    def ending(self) -> Ending:
        """Play it, and return how it ended."""
        self._reconcile()
        for _ in range(MOST_MOMENTS):
            if self._run.status.ended:
                return self._ended()
            at = min(self._events[0][0] if self._events else float("inf"), self._due)
            if at > self._until:
                self._now = self._until
                return self._ended()
            self._now = at
            while self._events and self._events[0][0] <= at:
                heapq.heappop(self._events)[2]()
            self._reconcile()
        return self._ended(f"gave up after {MOST_MOMENTS:,} moments at which something happened")

    @property
    def _time(self) -> datetime:
        return EPOCH + timedelta(seconds=self._now)

    def _at(self, at: float, then: Callable[[], None]) -> None:
        heapq.heappush(self._events, (at, next(self._numbers), then))

    def _say(self, what: str) -> None:
        self._happened.append(Happening(self._now, what))

    # The controller.

    def _reconcile(self) -> None:
        """Do what the controller does until nothing is left to do now."""
        for _ in range(_MAX_RECONCILES):
            self._progress()
            outcome = self._outcome()
            for announcement in outcome.announcements:
                self._say(f"{announcement.reason}: {announcement.message}")
            for action in outcome.actions:
                self._carry_out(action)
            changed = outcome.status != self._run.status
            self._run = self._run.model_copy(update={"status": outcome.status})
            self._uncreated |= outcome.planned
            self._due = float("inf")
            if outcome.after is not None:
                self._due = self._now + max(outcome.after, 0.001)
            if not changed and not outcome.actions:
                return
            if self._refusals and not changed:
                self._due = min(self._due, self._now + 60)
                return

    def _outcome(self) -> act.Outcome:
        observed = Observed(
            pods=self._pods,
            service=self._service,
            config_map=self._config_map,
            nodes=self._health(),
            uncreated=frozenset(self._uncreated),
            refusals=tuple(self._refusals.values()),
            uncounted=self._placer.uncounted_waits(self._pods.values()),
        )
        while True:
            # Nothing is kept of Secrets here.
            needs = self._placer.plan.needs._replace(keys=False)
            outcome = reconcile(self._run, needs, observed, self._time)
            if not outcome.look_up and not outcome.look_up_nodes:
                return outcome
            observed = replace(
                observed,
                absent=observed.absent | outcome.look_up,
                nodes_read=observed.nodes_read | outcome.look_up_nodes,
            )

    def _health(self) -> dict[str, NodeHealth]:
        health_by_node = {}
        for pod in self._pods.values():
            if pod.node and pod.node not in health_by_node:
                node = self._nodes.get(pod.node)
                pool = pod.node.rpartition("-")[0]
                health_by_node[pod.node] = (
                    NodeHealth(pod.node, uid=pod.node, capacity_class=pool)
                    if node
                    else NodeHealth(pod.node, since=self._lost[pod.node], capacity_class=pool)
                )
        return health_by_node

    def _carry_out(self, action: act.Action) -> None:
        match action:
            case act.CreateService() | act.OpenService():
                self._service = True
            case act.CreateConfigMap():
                self._config_map = True
            case act.CreatePod(role, index, attempt, history):
                self._create(role, index, attempt, history)
            case act.DeletePod(name) | act.ForceDeletePod(name):
                self._remove(name)

    # Pods, and who places them.

    def _create(self, role: str, index: int, attempt: int, history: str) -> None:
        placed = self._placer.placed(role, index, attempt, history)
        name = placed.owned.name
        if placed.rejected:
            self._refusals[name] = Refusal(name, "Rejected", placed.rejected)
            return
        self._uncreated.discard(name)
        self._refusals.pop(name, None)
        uid = f"{name}-{next(self._numbers)}"
        now = to_second(self._time)
        self._pods[name] = replace(
            placed.owned, uid=uid, run_uid=names.NO_UID, attempt=attempt, created=now
        )
        self._placed[name] = placed
        self._schedule(name)

    def _remove(self, name: str) -> None:
        if self._pods.pop(name, None):
            self._release(name)
            self._schedule_all()

    def _release(self, name: str) -> None:
        for node in self._nodes.values():
            if node.pod == name:
                node.pod = ""

    def _schedule_all(self) -> None:
        for name, pod in list(self._pods.items()):
            if not pod.node and not pod.ended:
                self._schedule(name)

    def _schedule(self, name: str) -> None:
        """Give a pod a free node, or have one made for it."""
        pools = self._placed[name].pools
        free = [
            node
            for node in self._nodes.values()
            if node.up and not node.pod and node.pool.name in pools
        ]
        if free:
            node = min(free, key=lambda node: (pools.index(node.pool.name), node.number))
            self._bind(name, node)
            return
        if all(node.pod != name for node in self._nodes.values()):
            self._ask_for_node(name, pools)
        pod = self._pods[name]
        if not pod.node and not pod.unscheduled:
            text = f"no node is free; pools that admit the pod: {', '.join(pools) or 'none'}"
            text += "".join(f"; {name}: {why}" for name, why in self._placed[name].obstacles)
            self._pods[name] = replace(
                pod, unscheduled=text, unscheduled_since=to_second(self._time)
            )

    def _ask_for_node(self, name: str, pools: Sequence[str]) -> None:
        for pool in pools:
            node_count = sum(node.pool.name == pool for node in self._nodes.values())
            if node_count < self._pools[pool].nodes and self._chance[pool].in_stock(self._now):
                self._make(self._pools[pool], name)
                return

    def _make(self, pool: Pool, pod: str) -> None:
        number = self._made[pool.name]
        self._made[pool.name] += 1
        node = SimNode(
            f"{pool.name}-{number}", number, pool, self._now + span_seconds(pool.boot), pod
        )
        self._nodes[node.name] = node
        if node.ready > self._now:
            self._at(node.ready, lambda: self._join(node))
        else:
            self._join(node)
        lives = self._chance[pool.name].lifetime(number)
        if lives != float("inf"):
            self._at(node.ready + lives, lambda: self._lose(node))

    def _join(self, node: SimNode) -> None:
        if node.name not in self._nodes:
            return
        name, node.pod, node.up = node.pod, "", True
        if name and not self._pods[name].node:
            self._bind(name, node)
        self._schedule_all()

    def _bind(self, name: str, node: SimNode) -> None:
        self._release(name)
        node.pod = name
        now = to_second(self._time)
        self._pods[name] = replace(
            self._pods[name],
            node=node.name,
            bound_since=now,
            running_since=now,
            phase="Running",
            ready=True,
            unscheduled="",
            unscheduled_since="",
        )
        self._say(f"{name} runs in pool {node.pool.name}")

    # What becomes of nodes.

    def _lose(self, node: SimNode) -> None:
        if self._nodes.pop(node.name, None) is None:
            return
        self._lost[node.name] = to_second(self._time)
        pod = self._pods.get(node.pod)
        if pod and node.up and not pod.ended:
            gone = ("TerminationByKubelet", "the node is interrupted", to_second(self._time))
            self._pods[pod.name] = replace(
                pod, phase="Failed", ready=False, reason="Terminated", disruption=gone
            )
            self._say(f"{pod.name} loses its node in pool {node.pool.name}")
        elif pod:
            self._schedule(pod.name)

    def _batch(self, pool: Pool, number: int) -> None:
        for node in list(self._nodes.values()):
            is_running = node.pool is pool and node.up
            if is_running and self._chance[pool.name].taken(number, node.number):
                self._lose(node)

    def _lose_oldest(self, pool: Pool, most: int) -> None:
        pool_nodes = [node for node in self._nodes.values() if node.pool is pool and node.up]
        for node in sorted(pool_nodes, key=lambda node: node.number)[:most]:
            self._lose(node)

    # The program.

    def _progress(self) -> None:
        """Keep what was saved when a replica is down; begin to count when all run."""
        running = sum(pod.phase == "Running" and not pod.deleted_at for pod in self._pods.values())
        if running == self._replicas and self._whole_since is None:
            since = self._whole_since = self._now
            left = (
                span_seconds(self._program.work) - self._saved + span_seconds(self._program.restart)
            )
            self._at(since + left, lambda: self._finish(since))
        elif running < self._replicas and self._whole_since is not None:
            self._saved += self._kept(self._now - self._whole_since)
            self._whole_since = None

    def _kept(self, whole: float) -> float:
        """Return the progress of a stretch that the program keeps."""
        if self._program.checkpoint is None:
            return 0.0
        made = max(0.0, whole - span_seconds(self._program.restart))
        between = span_seconds(self._program.checkpoint)
        return made // between * between

    def _finish(self, since: float) -> None:
        if self._whole_since != since:
            return
        now = to_second(self._time)
        done = Exit("main", 0, reason="Completed", finished_at=now)
        for name, pod in self._pods.items():
            self._pods[name] = replace(pod, phase="Succeeded", ready=False, exit=done)
        self._say("the program is done")
        self._saved, self._whole_since = span_seconds(self._program.work), None

    def _ended(self, given_up: str = "") -> Ending:
        status, now = self._run.status, self._time
        rows = list(status.usage)
        if not status.ended:
            observed = Observed(pods=self._pods, nodes=self._health())
            rows += live_usage(status, collect_facts(self._run, observed), observed, now)
        rows = [usage for usage in sum_usage(rows) if usage.resource == REPLICAS]
        nodes = {row.capacity_class: row.seconds / 3600 for row in rows if row.seconds}
        return Ending(
            phase=status.phase,
            seconds=self._now,
            cost=sum(hours * self._pools[pool].price for pool, hours in nodes.items()),
            waiting=sum(row.waiting_seconds for row in rows) / 3600,
            lost=sum(nodes.values()) - self._saved * self._replicas / 3600,
            nodes=nodes,
            incidents=status.disruptions,
            happenings=self._happened,
            reason=given_up or status.message,
        )
