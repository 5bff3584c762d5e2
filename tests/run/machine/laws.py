"""What must hold of every decision, of every action, and of every status that is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from tests.run.machine import decisions, raw, statuses
from tests.run.machine.books import Books, evicted, gang_of, indexes, role_of
from tests.run.machine.server import Server
from tests.run.machine.things import Pod, RunThing, Thing, seconds
from tests.run.machine.waits import Waits
from webhook.run import actions as act
from webhook.run.deletion import BEING_DELETED
from webhook.run.model import Run
from webhook.run.observed import Needs, Observed

OVER = ("Succeeded", "Failed")


@dataclass
class Laws:
    """Watches a controller. alone: whether there is never more than one of them.

    without_quota: uids of runs whose Workload somebody else has deleted.
    """

    server: Server
    alone: bool = True
    books: dict[str, Books] = field(default_factory=dict)
    without_quota: set[str] = field(default_factory=set)
    waits: Waits = field(default_factory=Waits)

    def of(self, uid: str) -> Books:
        """What was written of one run so far."""
        return self.books.setdefault(uid, Books(uid, self.server.ledger, self.alone))

    def decided(
        self, run: Run, needs: Needs, observed: Observed, outcome: act.Outcome, now: datetime
    ) -> None:
        decisions.check(run, needs, observed, outcome, now)
        if run.spec.gang and self.alone:
            self.waits.check(run, observed, outcome, now)

    def about_to(self, thing: RunThing, action: act.Action) -> None:
        match action:
            case act.CreatePod(role, index, attempt, history, _, restarts):
                self._creation(thing, role, index)
                self._number(thing, role, index, attempt, restarts)
                self._one_attempt(thing, role, attempt)
                self._alike(thing, role, history)
            case act.DeletePod(name, uid):
                pod = self.server.pods.get(name)
                if pod is not None and pod.uid == uid:
                    self._deletion(pod)
            case act.ForceDeletePod(name, uid):
                pod = self.server.pods.get(name)
                if pod is not None and pod.uid == uid:
                    self._deletion(pod)
                    living = pod in self.server.ledger.living()
                    assert not living, f"{name} is deleted by force, and its program runs"
            case act.DeleteRun():
                self._end_of_life(thing)
            case act.CreateWorkload():
                self.without_quota.discard(thing.uid)

    def written(self, old: RunThing, new: RunThing) -> None:
        if new.status.get("message", "").startswith(BEING_DELETED):
            statuses.check_deletion(old.status, new.status)
            return
        books = self.of(new.uid)
        if (gang_of(old.status), gang_of(new.status)) == ("Waiting", "Starting"):
            self._one_starts(new)
        statuses.check(books, raw.run(new).spec, old.status, new.status, self.server.now)
        if evicted(old.status, new.status):
            causes = [one["cause"] for one in new.status.get("incidents", ())]
            assert "Disruption" in causes, f"an eviction is no disruption: {new.status}"
            if new.spec.get("restartScope") == "Run":
                done = [one["succeeded"] for one in new.status["replicas"].values()]
                assert not any(done), f"some will not run again: {new.status}"
        books.note(old, new)
        self.waits.written(old, new)

    def _one_starts(self, new: RunThing) -> None:
        """Of two runs one begins to start, unless the other has waited for a node for minutes."""
        for other in self.server.runs.values():
            starts = gang_of(other.status) == "Starting" and other.uid != new.uid
            active = other.going is None and other.status.get("phase") not in OVER
            if starts and active and not other.spec.get("suspend") and self.alone:
                since = seconds(other.status["gang"]["since"])
                assert self.server.now - since >= 120, "both start"

    def every_moment(self) -> None:
        """What is stored now."""
        places: set[tuple[str, str, int]] = set()
        for pod in self.server.pods.values():
            if pod.run_uid:
                place = (pod.run_uid, pod.role, pod.index)
                assert place not in places, f"two pods for {place}"
                places.add(place)
        programs = [(pod.run_uid, pod.role, pod.index) for pod in self.server.ledger.living()]
        assert len(set(programs)) == len(programs), f"two programs of one replica: {programs}"
        self._quota()

    def _quota(self) -> None:
        """No pod of a queued run is there without quota, and a run that is over gives it back."""
        for pod in self.server.pods.values():
            run = next(
                (each for each in self.server.runs.values() if each.uid == pod.run_uid), None
            )
            if run is None or pod.over or not run.spec.get("queue") or not self.alone:
                continue
            found = self.server.workloads.get(run.name)
            holds = found and found.run_uid == run.uid and found.has("QuotaReserved")
            kept = run.spec["cleanPodPolicy"] == "None" and run.status.get("phase") in OVER
            going = run.uid in self.without_quota or run.going is not None
            assert holds or kept or going, f"{pod.name} is there without quota: {found}"

    def _creation(self, thing: RunThing, role: str, index: int) -> None:
        books, run = self.of(thing.uid), self.server.runs.get(thing.name)
        what = f"the creation of {thing.name}-{role}-{index}"
        services = [event.thing for event in self.server.log["services"]]
        assert any(isinstance(each, Thing) and each.run_uid == thing.uid for each in services), (
            f"{what}: there never was a Service"
        )
        if run is None or run.uid != thing.uid or not self.alone:
            return
        planned = indexes(role_of(run.status, role).get("creatingIndexes", ""))
        assert index in planned, f"{what}: the status does not say that it may be there"
        finished = books.succeeded(run.status, role)
        assert index not in finished, f"{what}: it has finished its work"
        assert run.status.get("phase") not in OVER, f"{what}: the run is over"
        if "gang" in run.spec:
            assert gang_of(run.status) in ("Starting", "Whole"), f"{what}: it may not start yet"
        if thing.name + f"-{role}-{index}" not in self.server.pods:
            wait = books.wait_until(role, index)
            assert self.server.now >= wait - 0.001, f"{what}: before its backoff is over at {wait}"

    def _number(self, thing: RunThing, role: str, index: int, attempt: int, restarts: int) -> None:
        """Every earlier pod of the replica has a smaller number, whoever saw it."""
        if f"{thing.name}-{role}-{index}" in self.server.pods or not self.alone:
            return
        for fate in self.of(thing.uid).fates(role, index):
            number = attempt + restarts
            assert fate.pod.number < number, f"{fate.pod.name}: {number} after {fate.pod.number}"

    def _one_attempt(self, thing: RunThing, role: str, attempt: int) -> None:
        """No program of an earlier attempt runs beside it, but for those on nodes that are lost."""
        scope, ledger = thing.spec.get("restartScope", "Replica"), self.server.ledger
        if scope == "Replica" or not self.alone:
            return
        for pod in ledger.living():
            unit = pod.run_uid == thing.uid and (scope == "Run" or pod.role == role)
            earlier = pod.attempt < (attempt if pod.role == role else self._attempt(thing, pod))
            if unit and earlier and pod.name in self.server.pods and pod.node not in ledger.away:
                raise AssertionError(f"{role} has attempt {attempt}, and {pod.name} runs: {pod}")

    def _attempt(self, thing: RunThing, pod: Pod) -> int:
        return int(self.of(thing.uid).attempts.get(pod.role, 0))

    def _alike(self, thing: RunThing, role: str, history: str) -> None:
        """What restarts together is created with one history, but for what waited for a node.

        A pod that has a node when the others give up keeps what it was created with, and so does
        one that had no class to give up.
        """
        scope, run = thing.spec.get("restartScope", "Replica"), self.server.runs.get(thing.name)
        if scope == "Replica" or run is None or run.uid != thing.uid or not self.alone:
            return
        books = self.of(thing.uid)
        for pod in self.server.pods.values():
            mine = pod.run_uid == thing.uid and (scope == "Run" or pod.role == role)
            waits = not (pod.node or pod.over or pod.going is not None or pod.uid in books.counted)
            latest = books.attempts.get(pod.role, 0) == pod.attempt
            if mine and waits and latest and (pod.fallback or pod.history):
                told = pod.history, history
                assert pod.history == history, f"{pod.name} and {role} have histories {told}"

    def _deletion(self, pod: Pod) -> None:
        books = self.of(pod.run_uid)
        earlier = pod.attempt < books.attempts.get(pod.role, 0)
        done = pod.index in books.ever_succeeded.get(pod.role, set())
        allowed = earlier or books.over or pod.uid in books.counted
        if pod.phase != "Failed":
            allowed = allowed or done
        assert allowed, f"{pod.name} ({pod.phase}) is deleted, and no status says why"

    def _end_of_life(self, thing: RunThing) -> None:
        ttl = thing.spec.get("ttlSecondsAfterFinished")
        assert thing.status.get("phase") in OVER, "a Run is deleted that is not over"
        assert ttl is not None, "a Run is deleted that has no time to live"
        end = seconds(thing.status["completionTime"])
        assert self.server.now >= end + ttl - 0.001, "a Run is deleted before its time"
