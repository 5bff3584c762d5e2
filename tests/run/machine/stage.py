"""The whole play: the world, one run or two, and those who control them; what can happen to them.

Where the world is lively, pods run as soon as they are made; where the controllers are diligent,
they hear of everything but the kinds that lag, and do at once what is due.
"""

from __future__ import annotations

from tests.run.machine import good_end
from tests.run.machine.cluster import Cluster
from tests.run.machine.controller import Controller, Heart
from tests.run.machine.laws import Laws
from tests.run.machine.ledger import Ledger
from tests.run.machine.server import KINDS, Server
from tests.run.machine.specs import needs_of
from tests.run.machine.things import Json, Pod, RunThing
from webhook.placement.fallback import Fallback


class Stage:
    """Every method is something that happens. `pod` and `who` choose among those there are."""

    def __init__(self, heart: Heart, controllers: int, spec: Json) -> None:
        self.server = Server(Ledger())
        self.cluster = Cluster(self.server)
        self.laws = Laws(self.server, alone=controllers == 1)
        self.team = [
            Controller(self.server, self.laws, heart, lambda run: needs_of(run.spec))
            for _ in range(controllers)
        ]
        self.lively = self.diligent = True
        self.lagging: set[str] = set()
        self.apply("one", spec)

    # What happens to pods.

    def exits(self, pod: int, code: int, word: str = "") -> None:
        """A program ends by itself."""
        for each in self._pod(pod):
            self.cluster.exit(each, code, word)

    def killed(self, pod: int, reason: str, marked: bool) -> None:
        """The kubelet ends a pod, for the node's sake (then it is marked) or for its own."""
        code = None if reason == "OutOfcpu" else 137
        for each in self._pod(pod):
            self.cluster.fail(each, reason, code, target=marked)

    def deleted(self, pod: int, force: bool) -> None:
        for each in self._pod(pod):
            self.cluster.delete(each, force=force)

    def stripped(self, pod: int) -> None:
        """A pod loses its labels, and no watch tells of it any more."""
        for one in self._pod(pod):
            self.cluster.strip(one)

    def targeted(self, pod: int, reason: str) -> None:
        """Scheduler or eviction API mark a pod that is to go; without a reason it may stay."""
        for each in self._pod(pod):
            if reason:
                self.cluster.target(each, reason)
            else:
                self.cluster.spare(each)

    def goes(self, pod: int, code: int | None) -> None:
        """A pod that was asked to go does, and may say a last word."""
        going = [each for each in self._pods() if each.going is not None]
        for each in going[pod % len(going) :][:1] if going else ():
            self.cluster.finish_going(each, code)

    def starts(self, pod: int) -> None:
        """A pod goes one step on its way: bound, running, ready."""
        for each in self._pod(pod):
            self.cluster.start(each)

    def node(self, name: str, what: str) -> None:
        """A node is lost, that is noticed in one way or another, or it is there again."""
        cluster = self.cluster
        ways = {
            "back": cluster.recover,
            "untainted": cluster.untaint,
            "off": cluster.turn_off,
            "shut down": cluster.shut_down,
            "gone": cluster.forget,
            "collected": cluster.forget,
            "not ready": cluster.not_ready,
            "registered again": cluster.register_again,
            "restarted": cluster.restart,
            "out of service": cluster.out_of_service,
            "ill": cluster.fall_ill,
            "well": cluster.get_well,
        }
        ways.get(what, cluster.lose)(name)
        if what in ("noticed", "tainted"):
            self.cluster.notice(name)
        if what == "tainted":
            for pod in self._pods():
                self.cluster.taint(pod)
        if what == "collected":
            self.cluster.collect_pods()

    # What people and collectors do.

    def apply(self, name: str, spec: Json) -> None:
        """A Run is created, unless one of this name is there."""
        if name not in self.server.runs:
            self.server.create("runs", RunThing(name, spec, self.server.now))

    def suspend(self, name: str, value: bool) -> None:
        """A Run is suspended, or goes on."""
        run = self.server.runs.get(name)
        if run is not None and run.going is None:
            self.server.write_spec(name, suspend=value)

    def delete(self, kind: str, foreground: bool = False) -> None:
        """A Run is deleted, or something that it owns."""
        thing = self.server.stored[kind].get("one")
        if isinstance(thing, RunThing):
            self.server.delete_run("one", thing.uid, foreground=foreground)
        elif thing is not None:
            self.server.remove(kind, "one")

    def policy(self, rule: Fallback | None) -> None:
        """An administrator changes the policy. Pods that are there stay as they are."""
        self.server.rule = rule

    def stock(self, sold_out: bool) -> None:
        """There are no spot nodes any more, or there are again."""
        self.server.sold_out = sold_out

    def excluded(self, value: bool) -> None:
        """The nodes of spot that there are do not meet the authors' own terms, or do again."""
        self.server.excluded = value

    def quota(self, used_up: bool) -> None:
        """The namespace's quota of pods is used up, or is not any more."""
        self.server.quota_used_up = used_up

    def room(self, places: int) -> None:
        """Nodes have room for so many pods each."""
        self.server.places = places

    def part(self, most_pods: int | None) -> None:
        """The namespace has a quota of so many pods."""
        self.server.most_pods = most_pods

    def demand(self, value: bool) -> None:
        """Nodes may be made on demand, or not any more."""
        self.server.on_demand = value
        self.server.was_on_demand |= value

    def start_now(self, name: str) -> None:
        """Somebody asks for a start without a pause."""
        if name in self.server.runs:
            self.server.change("runs", name, start_now=self.server.now)

    def kueue(self, reason: str) -> None:
        """Kueue evicts for a reason; without one it admits. Or somebody deletes Workloads."""
        if reason == "deleted":
            for name in list(self.server.workloads):
                self.laws.without_quota.add(self.server.workloads[name].run_uid)
                self.server.remove("workloads", name)
        elif reason:
            self.cluster.evict(reason)
        else:
            self.cluster.admit()

    def answers(self, stored: bool | None) -> None:
        """Answers to creations of pods are lost; they are stored, or not. Or answers come again."""
        self.server.answers_lost = stored

    def stranger(self, name: str) -> None:
        """Somebody else's pod takes a name; without a name, all such pods go."""
        if name:
            self.cluster.occupy(name)
        else:
            self.cluster.vacate()

    def garbage(self) -> None:
        """The garbage collector takes what no Run owns any more."""
        self.cluster.collect_garbage()

    def time(self, seconds: float) -> None:
        """Time goes by; 0 is until a controller wants to look at something again."""
        due = [at for each in self.team for at in each.due.values() if at > self.server.now]
        self.server.now += seconds or (min(due) - self.server.now if due else 1.0)

    # How the world and the controllers are.

    def mood(self, lively: bool, diligent: bool) -> None:
        """Pods start by themselves from now on, or do not; controllers are awake, or slow."""
        self.lively, self.diligent = lively, diligent

    def lag(self, kind: str) -> None:
        """A kind's events come late from now on, or in time again."""
        self.lagging ^= {kind}

    def hear(self, who: int, kind: str, events: int) -> None:
        """Some events arrive."""
        self._one(who).hear(kind, events)

    def relist(self, who: int, kind: str) -> None:
        """A kind is listed: for the first time, or after the watch broke."""
        self._one(who).relist(kind)

    def step(self, who: int, steps: int, choice: int) -> None:
        """A controller does one thing or a few: decides, or acts, or writes."""
        for _ in range(steps):
            for name in self._names(who):
                self._one(who).step(name, choice)

    def reconcile(self, who: int) -> None:
        """A controller decides, and does all of it."""
        for name in self._names(who):
            self._one(who).finish(name)

    def settle(self, who: int) -> None:
        """A controller hears of everything, and does all that is due."""
        good_end.settle(self.server, self._one(who))

    def crash(self, who: int, kind: str) -> None:
        """A controller dies. Another one comes up, and lists all kinds but one, for a start."""
        controller = self._one(who)
        controller.crash()
        for each in KINDS:
            if each != kind:
                controller.relist(each)

    def life(self) -> None:
        """What goes on by itself after each of these; and what must hold at every moment."""
        if self.lively:
            for pod in self._pods() * 3:
                self.cluster.start(self.server.pods.get(pod.name, pod))
            self.cluster.deploy()
            self.cluster.admit()
        if self.diligent:
            for controller in self.team:
                self._work(controller)
        self.laws.every_moment()

    def end(self) -> None:
        """The world turns kind: every run that can end does."""
        for other in self.team[1:]:
            other.crash()
        good_end.turn_kind(self.server, self.cluster, self.team[0])

    def _work(self, controller: Controller) -> None:
        for kind in KINDS:
            if kind in controller.caches.unlisted:
                controller.relist(kind)
            elif kind not in self.lagging:
                controller.hear(kind, controller.caches.behind(kind))
        for name in controller.ready():
            controller.finish(name)

    def _one(self, who: int) -> Controller:
        return self.team[who % len(self.team)]

    def _names(self, who: int) -> list[str]:
        return sorted({*self._one(who).works, *self.server.runs})

    def _pods(self) -> list[Pod]:
        return [pod for pod in self.server.pods.values() if pod.run_uid]

    def _pod(self, choice: int) -> list[Pod]:
        """One pod, or none if there is none."""
        pods = self._pods()
        return [pods[choice % len(pods)]] if pods else []
