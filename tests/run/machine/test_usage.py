"""What a run says that it used is what a recorded history adds up to, second by second."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest

from tests.examples import examples
from tests.run.machine.books import OVER, gave_way, indexes, role_of
from tests.run.machine.happenings import HAPPENINGS
from tests.run.machine.raw import CLASSES
from tests.run.machine.specs import gang, training
from tests.run.machine.stage import Stage
from tests.run.machine.things import Json, Pod, RunThing, moment
from tests.run.machine.walks import SpecOf, random_walk
from webhook.run.actions import Outcome
from webhook.run.deletion import BEING_DELETED
from webhook.run.model import Run
from webhook.run.observed import Needs, Observed
from webhook.run.reconcile import reconcile

# What would make the controller learn of things later than they happen.
LATE = (
    "mood",
    "stripped",
    "lag",
    "hear",
    "relist",
    "step",
    "reconcile",
    "settle",
    "apply",
    "starts",
)


@dataclass
class Recorder:
    """Adds up the time of each pod that a write of the status gives up, until its end.

    sums: (class, resource, amount) -> seconds; added: uids of these pods; gone: those of them that
    were gone by then, and whose last state was seen; ending: by the uids of those that had not
    ended, what is in the sums of them, and whether it is repeated; later: how many ended later.
    """

    stage: NodesHeard
    sums: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    added: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    ending: dict[str, tuple[float, bool]] = field(default_factory=dict)
    going_on: set[str] = field(default_factory=set)
    later: int = 0
    crashed: float = 0.0
    uid: str = ""

    def __post_init__(self) -> None:
        self._law = self.stage.laws.written
        self._decided = self.stage.laws.decided
        self.stage.laws.written = self.written  # type: ignore[method-assign]
        self.stage.laws.decided = self.decided  # type: ignore[method-assign]

    def decided(
        self, run: Run, needs: Needs, observed: Observed, outcome: Outcome, now: datetime
    ) -> None:
        """Note which pods go on, as the decision knows it."""
        self._decided(run, needs, observed, outcome, now)
        self.going_on = {
            pod.uid
            for pod in observed.pods.values()
            if not (pod.ended or pod.deleted_at)
            and not ((node := observed.node_health(pod)) and node.ready == "Unknown")
            and not (node and node.trouble == "NodeGone")
        }

    def written(self, old: RunThing, new: RunThing) -> None:
        """Take note of a write, after the laws have."""
        self._law(old, new)
        if new.name != "one" or new.status["message"].startswith(BEING_DELETED):
            return
        for uid, (until, repeated) in list(self.ending.items()):
            fate = self.stage.server.ledger.fates[uid]
            if uid not in self.going_on:
                del self.ending[uid]
                seen = fate.gone_at is None or fate.gone_at >= self.crashed
                self._add(fate.pod, until, repeated=repeated, sign=-1 if seen else 0)
                self._add(fate.pod, self._until_now(fate.pod), repeated=repeated, sign=seen)
                self.later += seen and whole(self._until_now(fate.pod)) > whole(until)
        over = new.status["phase"] in OVER
        held = gave_way(old.status, new.status)
        useful = held or new.status["phase"] in ("Suspended", "Succeeded")
        for fate in self.stage.server.ledger.fates.values():
            pod = fate.pod
            if pod.run_uid == new.uid and not useful and fate.gone_at is None:
                self._run_again(pod, old.status, new.status)
            if pod.run_uid != new.uid or not counts(pod, old.status):
                continue
            if pod.uid in self.added:
                continue
            if fate.gone_at is not None:
                self.gone.add(pod.uid)
            elif not over and counts(pod, new.status):
                continue
            self.added.add(pod.uid)
            done = pod.index in indexes(role_of(new.status, pod.role).get("succeededIndexes", ""))
            repeated = not (useful or done)
            self._add(pod, self._until_now(pod), repeated=repeated, held=held)
            # What a start held that gave way is known as of then.
            if held:
                continue
            if fate.gone_at is None and not pod.over and self._end(pod) is None:
                self.ending[pod.uid] = self.stage.server.now, repeated
        self.uid = new.uid

    def _end(self, pod: Pod) -> float | None:
        """When its time ended, as far as anybody can know."""
        ends = [pod.going, pod.ended if pod.code is not None else None, self._silent(pod)]
        known = [each for each in ends if each is not None]
        if pod.phase == "Failed" and pod.target and not known:
            known = [pod.target[1]]
        return min(known, default=None)

    def _until_now(self, pod: Pod) -> float:
        now, end = self.stage.server.now, self._end(pod)
        return now if end is None else min(now, end)

    def _add(
        self, pod: Pod, end: float, *, repeated: bool, sign: int = 1, held: bool = False
    ) -> None:
        until = end if pod.bound is None else min(end, pod.bound)
        on_node = 0 if pod.bound is None else max(0, whole(end) - whole(pod.bound))
        waited = max(0, whole(until) - whole(pod.created))
        if held:
            # Its program waited for peers without a node.
            on_node, waited = 0, waited + on_node
        for resource, count in (("replicas", 1), ("example.com/gpu", pod.index % 3)):
            key = CLASSES.get(pod.node, ""), resource
            self.sums[*key, "seconds"] += on_node * count * sign
            self.sums[*key, "waitingSeconds"] += waited * count * sign
            self.sums[*key, "repeatedSeconds"] += on_node * count * repeated * sign

    def _run_again(self, pod: Pod, old: Json, new: Json) -> None:
        """The work of a finished replica is repeated if the replica runs again."""
        before, after = (
            indexes(role_of(each, pod.role).get("succeededIndexes", "")) for each in (old, new)
        )
        if pod.phase == "Succeeded" and pod.index in before - after:
            done = whole(pod.ended or 0) - whole(pod.bound or 0)
            for resource, count in (("replicas", 1), ("example.com/gpu", pod.index % 3)):
                self.sums[CLASSES.get(pod.node, ""), resource, "repeatedSeconds"] += done * count

    def _silent(self, pod: Pod) -> float | None:
        """Since when nobody hears of the pod's node."""
        node = self.stage.server.nodes.get(pod.node)
        if node is not None:
            return node.since if node.ready == "Unknown" else None
        gone = [
            at for at, name, there in self.stage.heard_of_nodes if name == pod.node and not there
        ]
        return max(gone[-1], self.crashed) if gone and pod.node else None


def counts(pod: Pod, status: Json) -> bool:
    """Whether a run counts on a pod, by a status."""
    if status.get("phase") in OVER:
        return False
    role = role_of(status, pod.role)
    done = indexes(role.get("succeededIndexes", ""))
    ended = pod.uid in role.get("countedUIDs", ()) or pod.index in done
    return pod.attempt >= role.get("attempt", 0) and not ended


def whole(seconds: float) -> int:
    """As Kubernetes writes times: whole seconds, cut off."""
    return int(moment(seconds).timestamp())


def told(status: Json) -> dict[tuple[str, str, str], int]:
    """What a status says, by class, resource and amount."""
    return {
        (row["class"], row["resource"], amount): row[amount]
        for row in status.get("usage", ())
        for amount in ("seconds", "waitingSeconds", "repeatedSeconds")
        if row[amount]
    }


class NodesHeard(Stage):
    """Knows when each Node came and went."""

    def __init__(self, *args: Any) -> None:
        self.heard_of_nodes: list[tuple[float, str, bool]] = []
        super().__init__(*args)

    def life(self) -> None:
        """Look first which Nodes are there."""
        there = self.server.nodes
        for name in CLASSES:
            last = next((each for each in reversed(self.heard_of_nodes) if each[1] == name), None)
            if last is None or last[2] != (name in there):
                self.heard_of_nodes.append((self.server.now, name, name in there))
        super().life()


@pytest.mark.property
@pytest.mark.parametrize(("spec_of", "walks"), [(training, examples(300)), (gang, examples(150))])
def test_usage_is_the_sum_over_the_recorded_history(spec_of: SpecOf, walks: int) -> None:
    """Whatever ends the pods, and however often the controller is killed."""
    total: Counter[str] = Counter()
    gone = later = 0
    for seed in range(walks):
        walk = random_walk(seed, spec_of, 1)
        stage = NodesHeard(reconcile, 1, walk.spec)
        recorder = Recorder(stage)
        stage.life()
        for method, values in walk.steps:
            if method in LATE:
                continue
            if method == "crash":
                recorder.crashed = stage.server.now
            getattr(stage, method)(**values)
            stage.life()
            run = stage.server.runs.get("one")
            # Of a Run that is being deleted the rest is settled as its pods go.
            if run is not None and run.uid == recorder.uid and run.going is None:
                assert told(run.status) == {k: v for k, v in recorder.sums.items() if v}, seed
                assert "unseen" not in run.status or not run.status["unseen"], seed
                gone += len(recorder.gone)
                later += recorder.later
                total.update({amount: value for (*_, amount), value in recorder.sums.items()})
            else:
                recorder.sums.clear()
                recorder.ending.clear()
    assert min(total[each] for each in ("seconds", "waitingSeconds", "repeatedSeconds"))
    assert gone
    assert later
    assert {each.method for each in HAPPENINGS} > set(LATE) - {"apply"}
