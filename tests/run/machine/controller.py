"""A controller as webhook.controller is one, in steps that anything may come between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias

from tests.run.machine import raw
from tests.run.machine.caches import Caches
from tests.run.machine.executor import Executor, pod_name
from tests.run.machine.laws import Laws
from tests.run.machine.server import KINDS, Refused, Server
from tests.run.machine.things import Json, Pod, RunThing, WorkloadThing, moment, stamp
from webhook.controller.reconciler import UNWATCHED_PAUSE
from webhook.run import actions as act
from webhook.run.idle import needs_whole
from webhook.run.model import Run
from webhook.run.model.status import GangStatus
from webhook.run.observed import Needs, NodeHealth, Observed, OwnedPod, Refusal
from webhook.run.queue_state import Queueing
from webhook.run.start_order import NO_START, Start, Starter, find_start
from webhook.times import to_microsecond

Heart: TypeAlias = Callable[[Run, Needs, Observed, datetime], act.Outcome]
# Seconds after which what was refused is tried again; the real one doubles them.
RETRY = 5.0
CREATIONS = (
    *(act.CreateKeys, act.CreateConfigMap, act.CreateService),
    *(act.CreateDeployment, act.CreatePod, act.CreateWorkload, act.CheckWorkload),
)
# Seconds after which a run queues again that gave its quota back.
PAUSE = 15.0
# Live lookups that may follow each other in one reconcile.
LOOK_UPS = 4


@dataclass
class Work:
    """What one reconcile decided, as far as it is not done yet."""

    thing: RunThing
    outcome: act.Outcome
    left: list[act.Action]
    refusals: dict[str, Refusal]
    at: float
    gone: tuple[OwnedPod, ...] = ()
    ssh_secret: str | None = None


@dataclass
class Controller:
    """One process: what it sees, what it is about to do, and what it would forget if it died.

    due: names of runs -> when they are to be looked at again.
    paused: names of runs -> until when nothing is created, since something was refused.
    uncreated: uids of runs with names of pods that are planned, and that it has not created.
    """

    server: Server
    laws: Laws
    heart: Heart
    needs: Callable[[RunThing], Needs]
    caches: Caches = field(init=False)
    executor: Executor = field(init=False)
    works: dict[str, Work] = field(default_factory=dict)
    due: dict[str, float] = field(default_factory=dict)
    refusals: dict[str, dict[str, Refusal]] = field(default_factory=dict)
    paused: dict[str, float] = field(default_factory=dict)
    uncreated: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.crash()

    def crash(self) -> None:
        """Another process takes its place, and knows nothing."""
        self.caches = Caches(self.server)
        self.executor = Executor(self.server, self.caches)
        self.works, self.due, self.refusals, self.paused = {}, {}, {}, {}
        self.uncreated = set()

    def relist(self, kind: str) -> None:
        """List one kind, for the first time or again."""
        self._wake(kind, self.caches.relist(kind))

    def hear(self, kind: str, events: int = 1) -> None:
        """Some events of one kind arrive."""
        self._wake(kind, self.caches.hear(kind, events))

    def hear_all(self) -> None:
        """Everything that happened so far is known."""
        for kind in self.caches.unlisted:
            self.relist(kind)
        for kind in KINDS:
            self.hear(kind, self.caches.behind(kind))

    def step(self, name: str, choice: int = 0) -> None:
        """Go on with a run: decide if nothing is under way, else do the next thing."""
        if not self.caches.whole:
            return
        work = self.works.get(name)
        if work is None:
            self._decide(name)
        elif work.left:
            self._do(name, work, choice)
        else:
            self._write(name, work)

    def finish(self, name: str) -> None:
        """Decide, and do all of it."""
        self.step(name)
        while name in self.works:
            self.step(name)

    def ready(self) -> list[str]:
        """Runs whose time has come."""
        return sorted(name for name, at in self.due.items() if at <= self.server.now)

    def _wake(self, kind: str, names: Iterable[str]) -> None:
        for name in names:
            if kind == "nodes":
                here = (pod for pod in self.caches.held("pods").values() if pod.node == name)
                self.due.update((pod.run, self.server.now) for pod in here if pod.run)
            elif kind != "pods":
                self.due[name] = self.server.now
            else:
                for run in {name.rsplit("-", 2)[0], *self._owners(name)}:
                    self.due[run] = self.server.now

    def _owners(self, pod: str) -> list[str]:
        known = self.caches.held("pods").get(pod)
        return [known.run] if known and known.run else []

    def _decide(self, name: str) -> None:
        self.due.pop(name, None)
        thing: RunThing | None = self.caches.held("runs").get(name)
        if thing is None:
            self.refusals.pop(name, None)
            return
        now = moment(self.server.now)
        run, needs = raw.run(thing), self.needs(thing)
        absent: frozenset[str] = frozenset()
        found: dict[str, Pod] = {}
        read: dict[str, NodeHealth] = {}
        for _ in range(LOOK_UPS):
            observed = self._observed(thing, absent, found, read)
            outcome = self.heart(run, needs, observed, now)
            if not outcome.look_up and not outcome.look_up_nodes:
                break
            found |= self._look_up(thing, outcome.look_up)
            absent |= outcome.look_up - found.keys()
            unwatched = self.caches.unwatched.setdefault(thing.uid, set())
            unwatched |= found.keys() - self.caches.held("pods").keys()
            unwatched -= absent
            for node in outcome.look_up_nodes:
                there = self.server.nodes.get(node) or self.caches.gone_since(node)
                read[node] = raw.node(node, there)
        self.laws.decided(run, needs, observed, outcome, now)
        self._decides_alike(thing, observed, outcome, now)
        now_left = list(outcome.actions)
        self.works[name] = Work(thing, outcome, now_left, {}, self.server.now, observed.gone)
        if found:
            self._again(name, self.server.now + UNWATCHED_PAUSE)

    def _decides_alike(
        self, thing: RunThing, observed: Observed, outcome: act.Outcome, now: datetime
    ) -> None:
        """The same is decided by what is kept of an idle Run, or that the whole one is read."""
        run = raw.reduced_run(thing)
        if run is None:
            return
        found = self.heart(run, Needs(address=run.status.address), observed, now)
        phase = run.status.phase
        if phase == "Suspended" and thing.going is None and needs_whole(phase, found):
            return
        assert found == outcome, f"what is kept of {thing} leads to {found}, not {outcome}"

    def _observed(
        self,
        thing: RunThing,
        absent: frozenset[str],
        found: Mapping[str, Pod],
        read: Mapping[str, NodeHealth],
    ) -> Observed:
        held = self.caches.held

        def mine(kind: str) -> bool:
            found = held(kind).get(thing.name)
            return found is not None and found.run_uid == thing.uid

        pods = {
            n: raw.pod(p) for n, p in {**held("pods"), **found}.items() if p.run_uid == thing.uid
        }
        known = self.caches.nodes()
        nodes = None
        if known is not None:
            nodes = {**{name: raw.node(name, node) for name, node in known.items()}, **read}
        deployment = held("deployments")[thing.name] if mine("deployments") else None
        return Observed(
            pods=pods,
            service=mine("services"),
            service_closed=mine("services") and held("services")[thing.name].closed,
            config_map=mine("configmaps"),
            deployment=raw.deployment(deployment) if deployment else None,
            absent=absent - pods.keys(),
            unwatched=frozenset(self.caches.unwatched.get(thing.uid, ())),
            gone=tuple(
                raw.pod(pod) for pod in self.caches.gone_pods.values() if pod.run_uid == thing.uid
            ),
            uncreated=frozenset(pod for uid, pod in self.uncreated if uid == thing.uid),
            nodes=nodes,
            nodes_read=frozenset(read),
            ill_nodes=tuple(each for each in (nodes or {}).values() if each.ill),
            refusals=tuple(self.refusals.get(thing.name, {}).values()),
            uncounted={
                (name, capacity): "excluded"
                for name, pod in pods.items()
                for capacity, most in pod.fallback
                if self.server.excluded and pod.unscheduled and not pod.node and most is not None
            },
            queue=self._queueing(thing, held("workloads")[thing.name])
            if mine("workloads")
            else Queueing(),
            start=self._start(thing) if "gang" in thing.spec else NO_START,
        )

    def _start(self, thing: RunThing) -> Start:
        """What the order of starts says; of what is decided and not written yet, too."""
        runs = self.caches.held("runs").values()
        starters = [self._starter(each) for each in runs if "gang" in each.spec]
        me = next(each for each in starters if each.uid == thing.uid)
        others = [each for each in starters if each.gang.state != "Whole"]
        found = find_start(me, others, moment(self.server.now))
        return found._replace(on_demand=self.server.on_demand)

    def _starter(self, thing: RunThing) -> Starter:
        run, now = raw.run(thing), moment(self.server.now)
        work = self.works.get(thing.name)
        status = work.outcome.status if work and work.thing.uid == thing.uid else run.status
        gang = status.gang or GangStatus(state="Waiting", since=to_microsecond(now))
        if status.ended or run.spec.suspend or thing.going is not None:
            gang = gang.model_copy(update={"state": "Whole"})
        pods = [
            p for p in self.caches.held("pods").values() if p.run_uid == thing.uid and not p.over
        ]
        refusals = self.refusals.get(thing.name, {}).values()
        return Starter(
            name=f"lab/{thing.name}",
            uid=thing.uid,
            created=stamp(thing.created),
            gang=gang,
            resources=frozenset({"cpu"}),
            holds=any(pod.node for pod in pods),
            lacks=any(pod.unscheduled is not None and not pod.node for pod in pods)
            or bool(refusals),
            over_quota=any(refusal.reason == "QuotaExceeded" for refusal in refusals),
        )

    def _queueing(self, thing: RunThing, found: WorkloadThing) -> Queueing:
        if found.uid in self.executor.deleted:
            return Queueing()
        begun = thing.status.get("phase") not in (None, "", "Suspended")
        look = found.has("QuotaReserved") and not begun and found.uid not in self.executor.tried
        return Queueing(raw.workload(found, thing.name), look=look, pause=PAUSE)

    def _look_up(self, thing: RunThing, names: Iterable[str]) -> dict[str, Pod]:
        found = {}
        for name in names:
            pod = self.server.pods.get(name)
            if pod is not None and pod.run_uid == thing.uid:
                if not pod.bare:
                    self.caches.answered("pods", pod)
                found[name] = pod
        return found

    def _do(self, name: str, work: Work, choice: int) -> None:
        """The next action: deletions of pods first and their creations last, each in any order."""
        pods = [at for at, each in enumerate(work.left) if isinstance(each, act.DeletePod)]
        rest = [at for at, each in enumerate(work.left) if not isinstance(each, act.CreatePod)]
        any_of = pods or rest[:1] or range(len(work.left))
        position = any_of[choice % len(any_of)]
        action = work.left.pop(position)
        if isinstance(action, CREATIONS) and self.server.now < self.paused.get(name, 0.0):
            self._again(name, self.paused[name])
            work.left = [each for each in work.left if not isinstance(each, CREATIONS)]
            return
        self.laws.about_to(work.thing, action)
        created = work.thing.uid, pod_name(work.thing, action)
        self.uncreated.discard(created)
        try:
            self.executor.do(work.thing, action)
        except Refused as refused:
            if refused.reason == "Timeout":
                # Nothing more is tried, and nothing is written.
                del self.works[name]
                self._again(name, self.server.now + 1)
                return
            if created[1]:
                self.uncreated.add(created)
            words = {"AlreadyExists": "NameTaken"}.get(refused.reason, refused.reason)
            named = pod_name(work.thing, action) or name
            work.refusals[named] = Refusal(named, words, str(refused))
            # As with a slow start, what is refused is not tried for all the others at once.
            work.left = [each for each in work.left if not isinstance(each, CREATIONS)]
        else:
            if isinstance(action, act.CreateKeys):
                work.ssh_secret = f"{work.thing.name}-ssh"
            if isinstance(action, act.CreatePod):
                self.refusals.pop(name, None)
            if isinstance(action, act.CheckWorkload):
                self._again(name, self.server.now)

    def _write(self, name: str, work: Work) -> None:
        """The end of a reconcile: one write of the status, if it differs."""
        del self.works[name]
        outcome, thing = work.outcome, work.thing
        now = self.server.now
        self._note(name, work)
        if outcome.after is not None:
            self._again(name, max(now, work.at + outcome.after))
        if work.ssh_secret:
            known = outcome.status.model_copy(update={"ssh_secret": work.ssh_secret})
            outcome = replace(outcome, status=known)
        status: Json = json.loads(outcome.status.model_dump_json(by_alias=True, exclude_none=True))
        before = raw.run(thing).status
        settled = [pod.uid for pod in work.gone] if outcome.counted else []
        stopped = outcome.status.ended or outcome.status.phase == "Suspended"
        if outcome.status == before:
            self._forget(settled)
            if stopped:
                self.caches.unwatched.pop(thing.uid, None)
            return
        try:
            written = self.server.write_status(name, thing.uid, thing.version, status)
        except Refused as refused:
            if refused.reason == "Conflict":
                self._again(name, now + RETRY)
            return
        self._forget(settled)
        if stopped:
            self.caches.unwatched.pop(thing.uid, None)
        self.uncreated |= {(thing.uid, pod) for pod in outcome.planned}
        self.caches.answered("runs", written)
        self.laws.written(thing, written)
        self._again(name, now)

    def _forget(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self.caches.gone_pods.pop(uid, None)

    def _note(self, name: str, work: Work) -> None:
        """Remember what was refused: the status is to tell of it, and it is tried again."""
        before = self.refusals.get(name, {})
        if not any(isinstance(action, CREATIONS) for action in work.outcome.actions):
            self.refusals.pop(name, None)
        if work.refusals:
            self.refusals[name] = {**before, **work.refusals}
            self.paused[name] = self.server.now + RETRY
        if self.refusals.get(name, {}) != before:
            self._again(name, self.server.now)
        elif before:
            self._again(name, max(self.server.now, self.paused[name]))

    def _again(self, name: str, at: float) -> None:
        self.due[name] = min(at, self.due.get(name, at))
