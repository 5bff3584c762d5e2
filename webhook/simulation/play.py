"""Play the runs of one repetition under one policy set, each from its creation to its end.

The webhook's evaluation places each pod, and the controller's reconcile decides what is done. The
starts of gangs have their order from it, too. What is not Fairlead's own is in cluster.py.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.run import actions as act
from webhook.run.gang import is_gang, unfinished_start
from webhook.run.gangs import Gang, Gangs
from webhook.run.observed import Exit, Observed, Refusal
from webhook.run.reconcile import reconcile
from webhook.run.start_order import NO_START
from webhook.simulation.cluster import SimCluster, SimPod
from webhook.simulation.placer import EPOCH
from webhook.times import span_seconds, to_second

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webhook.run.observed import OwnedPod
    from webhook.run.start_order import Start
    from webhook.simulation.placer import Placer
    from webhook.simulation.scenario import ScenarioSpec

ASSUMPTIONS: Final = (
    "a node runs one replica; an autoscaler makes nodes for pods that wait, and removes none",
    "a pod gets the free node, or else the new one, that it prefers most, then the cheapest",
    "runs that start at one time create their pods in turn; the pod that waits longest is first",
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
# The part of a moment for which a look counts that changes nothing, as each gang takes that waits.
_IDLE_LOOK: Final = 0.05
# Reconciles at one moment. A run whose pods are refused never comes to rest.
_MAX_RECONCILES: Final = 1000


class Happening(NamedTuple):
    """Something that happened: seconds from the start, and what, in words."""

    at: float
    what: str


class Ending(NamedTuple):
    """How a run ended.

    phase: that of the run; not an end if the limit came first.
    seconds: from its creation until then. cost: hours of a replica on demand. waiting: hours of
    replicas without a node. nodes: hours of replicas by pool. lost: those of them in which the
    program made no progress that it kept. held: those in which not all replicas had a node.
    incidents: disruptions of the run.
    """

    phase: str
    seconds: float
    cost: float
    waiting: float
    held: float
    lost: float
    nodes: Mapping[str, float]
    incidents: int
    happenings: Sequence[Happening]
    reason: str


class Play:
    """One repetition: the runs, which are created in their order, share the nodes."""

    def __init__(
        self, placers: Sequence[Placer], spec: ScenarioSpec, *, seed: int, repetition: int
    ) -> None:
        self._until = span_seconds(spec.limit)
        self._cluster = SimCluster(spec.pools, seed=seed, repetition=repetition, until=self._until)
        self._gangs = Gangs(self._objects)
        self._runs = {
            placer.plan.run.metadata.uid: SimRun(placer, spec, self._cluster, self._gangs)
            for placer in placers
        }

    def endings(self) -> list[Ending]:
        """Play it, and return how each run ended."""
        cluster, moments, given_up = self._cluster, 0.0, ""
        self._reconcile(all_runs=True)
        while not all(run.over for run in self._runs.values()):
            at = min(cluster.next_event, *(run.due for run in self._runs.values()))
            self._advance(min(at, self._until))
            if at > self._until:
                break
            if moments >= MOST_MOMENTS - 1:
                given_up = f"gave up after {MOST_MOMENTS:,} moments at which something happened"
                break
            happened = cluster.play_events()
            changed = self._reconcile(all_runs=happened)
            moments += 1 if happened or changed else _IDLE_LOOK
        return [run.ending(given_up) for run in self._runs.values()]

    def _objects(self, _: str, uid: str) -> tuple[Collection[OwnedPod], Collection[Refusal]]:
        run = self._runs[uid]
        return run.pods.values(), run.refusals.values()

    def _advance(self, to: float) -> None:
        for run in self._runs.values():
            run.elapse(to - self._cluster.now)
        self._cluster.now = to

    def _reconcile(self, *, all_runs: bool) -> bool:
        """Do what the controller does until nothing is left to do now; return whether it did."""
        now = self._cluster.now
        runs = [run for run in self._runs.values() if all_runs or run.due <= now]
        for number in range(_MAX_RECONCILES):
            steps = [(run, run.decide()) for run in runs if run.active]
            for turn in zip_longest(*(outcome.actions for _, outcome in steps)):
                for (run, _), action in zip(steps, turn, strict=True):
                    if action is not None:
                        run.carry_out(action)
            self._cluster.schedule()
            if not [run for run, outcome in steps if run.settle(outcome)]:
                return number > 0
            runs = list(self._runs.values())
        return True


class SimRun:
    """One run: what the controller knows and does of it, and the progress of its program.

    begins: when it is created; due: when the controller looks at it again.
    """

    def __init__(
        self, placer: Placer, spec: ScenarioSpec, cluster: SimCluster, gangs: Gangs
    ) -> None:
        self._placer = placer
        self._cluster = cluster
        self._gangs = gangs
        self._prices = {pool.name: pool.price for pool in spec.pools}
        self._run = placer.plan.run
        terms = next((run for run in spec.runs or () if run.name == self._run.name), None)
        self._program = spec.program
        self._work = span_seconds(terms.work if terms and terms.work else spec.program.work)
        self.begins = self.due = span_seconds(terms.at) if terms else 0.0
        self.refusals: dict[str, Refusal] = {}
        self._replicas = sum(role.count for role in self._run.spec.roles.values())
        self._pods: dict[str, SimPod] = {}
        self._service = self._config_map = self._deleted = self._changed = False
        self._saved = self._held = self._waiting = 0.0
        self._on_nodes: dict[str, float] = defaultdict(float)
        self._ended_at: float | None = None
        # Since when all replicas run.
        self._whole_since: float | None = None
        # Names of pods that the status plans, and that were never created since.
        self._uncreated: set[str] = set()
        self._happened: list[Happening] = []

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._run.status.ended

    @property
    def active(self) -> bool:
        """Whether it is there."""
        return self.begins <= self._cluster.now and not self._deleted

    @property
    def pods(self) -> dict[str, OwnedPod]:
        """Its pods by name, as the controller sees them."""
        return {name: pod.owned for name, pod in self._pods.items()}

    def _note(self, what: str) -> None:
        self._happened.append(Happening(self._cluster.now, what))

    # The controller.

    def decide(self) -> act.Outcome:
        """Decide what to do now, and store the status."""
        self._progress()
        outcome = self._outcome()
        for announcement in outcome.announcements:
            self._note(f"{announcement.reason}: {announcement.message}")
        self._changed = outcome.status != self._run.status
        self._run = self._run.model_copy(update={"status": outcome.status})
        if self.over and self._ended_at is None:
            self._ended_at = self._cluster.now
        return outcome

    def settle(self, outcome: act.Outcome) -> bool:
        """Return whether to decide again at once, after the actions."""
        self._uncreated |= outcome.planned
        now = self._cluster.now
        self.due = float("inf") if outcome.after is None else now + max(outcome.after, 0.001)
        if self.refusals and not self._changed:
            self.due = min(self.due, now + 60)
            return False
        return self._changed or bool(outcome.actions)

    def _outcome(self) -> act.Outcome:
        pods = self.pods
        observed = Observed(
            pods=pods,
            service=self._service,
            config_map=self._config_map,
            nodes=self._cluster.health(pods.values()),
            uncreated=frozenset(self._uncreated),
            refusals=tuple(self.refusals.values()),
            uncounted=self._placer.uncounted_waits(pods.values()),
            start=self._start(),
        )
        while True:
            # Nothing is kept of Secrets here.
            needs = self._placer.plan.needs._replace(keys=False)
            outcome = reconcile(self._run, needs, observed, self._cluster.time)
            if not outcome.look_up and not outcome.look_up_nodes:
                return outcome
            observed = replace(
                observed,
                absent=observed.absent | outcome.look_up,
                nodes_read=observed.nodes_read | outcome.look_up_nodes,
            )

    def _start(self) -> Start:
        """Return whether it may start, if all of it starts at once."""
        if not is_gang(self._run):
            return NO_START
        metadata = self._run.metadata
        created = to_second(EPOCH + timedelta(seconds=self.begins))
        status = None if self.over else unfinished_start(self._run.status, created)
        name = f"{self._run.namespace}/{self._run.name}"
        self._gangs.store(metadata.uid, Gang(name, created, status) if status else None)
        return self._gangs.observe(
            self._run,
            self._placer.plan,
            self._placer.room(self._cluster.present()),
            self._cluster.time,
            on_demand=self._placer.on_demand,
        )

    def carry_out(self, action: act.Action) -> None:
        """Carry out an action."""
        match action:
            case act.CreateService() | act.OpenService():
                self._service = True
            case act.CreateConfigMap():
                self._config_map = True
            case act.CreatePod(role, index, attempt, history):
                self._create(role, index, attempt, history)
            case act.DeletePod(name) | act.ForceDeletePod(name):
                if pod := self._pods.pop(name, None):
                    self._cluster.remove(pod)
            case act.DeleteRun():
                self._deleted = True

    def _create(self, role: str, index: int, attempt: int, history: str) -> None:
        placed = self._placer.placed(role, index, attempt, history)
        name = placed.owned.name
        if placed.rejected:
            self.refusals[name] = Refusal(name, "Rejected", placed.rejected)
            return
        self._uncreated.discard(name)
        self.refusals.pop(name, None)
        owned = replace(placed.owned, run_uid=self._run.metadata.uid, attempt=attempt)
        self._pods[name] = SimPod(owned, placed, self._note)
        self._cluster.create(self._pods[name])

    # The program.

    def elapse(self, seconds: float) -> None:
        """Count the time of replicas with a node and without one, in which nothing changes."""
        for pod in self._pods.values():
            if pod.owned.phase == "Running":
                self._on_nodes[pod.owned.node.rpartition("-")[0]] += seconds
                self._held += 0.0 if self._whole_since is not None else seconds
            elif not pod.owned.ended:
                self._waiting += seconds

    def _progress(self) -> None:
        """Keep what was saved when a replica is down; begin to count when all run."""
        running = sum(pod.owned.phase == "Running" for pod in self._pods.values())
        if running == self._replicas and self._whole_since is None:
            since = self._whole_since = self._cluster.now
            left = self._work - self._saved + span_seconds(self._program.restart)
            self._cluster.at(since + left, lambda: self._finish(since))
        elif running < self._replicas and self._whole_since is not None:
            self._saved += self._kept(self._cluster.now - self._whole_since)
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
        done = Exit("main", 0, reason="Completed", finished_at=to_second(self._cluster.time))
        self._cluster.end(self._pods.values(), phase="Succeeded", exit=done)
        self._note("the program is done")
        self._saved, self._whole_since = self._work, None

    def ending(self, given_up: str) -> Ending:
        """Return how it ended, or how it is now."""
        status = self._run.status
        nodes = {pool: seconds / 3600 for pool, seconds in sorted(self._on_nodes.items())}
        end = self._cluster.now if self._ended_at is None else self._ended_at
        return Ending(
            phase=status.phase,
            seconds=max(0.0, end - self.begins),
            cost=sum(hours * self._prices[pool] for pool, hours in nodes.items()),
            waiting=self._waiting / 3600,
            held=self._held / 3600,
            lost=sum(nodes.values()) - self._saved * self._replicas / 3600,
            nodes=nodes,
            incidents=status.disruptions,
            happenings=self._happened,
            reason=status.message if status.ended else given_up or status.message,
        )
