"""One look at one run, on an API server that answers in every way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from tests.controller.runs import UID, Api, Json, raw_node, raw_pod, raw_run, refused
from tests.controller.test_action_executor import QUOTA, Counted
from tests.controller.test_node_health import SPOT, raw_class
from webhook.controller import reconciler as module
from webhook.controller.action_executor import ActionExecutor
from webhook.controller.announcer import Announcer
from webhook.controller.delegation import Delegation
from webhook.controller.engines import Engines
from webhook.controller.observed_state import ObservedState
from webhook.controller.owned_objects import Objects
from webhook.controller.queues import Queues
from webhook.controller.reconciler import Reconciler
from webhook.controller.refusals import Refusals
from webhook.controller.stored_run import RunCache
from webhook.controller.waiting_pods import WaitingPods
from webhook.errors import ClusterError, InvalidRun, NotLeading
from webhook.kube.cache import Cache
from webhook.kube.watches import Watches
from webhook.run.actions import Outcome
from webhook.run.model import RunStatus
from webhook.run.plan import plan

NOW = datetime(2026, 11, 21, 20, 15, tzinfo=UTC)
THREE = ["mnist-worker-0", "mnist-worker-1", "mnist-worker-2"]


class Stage:
    """A reconciler with the real heart, whose clocks stand still unless they are moved."""

    def __init__(self, **changes: Any) -> None:
        self.now = 100.0
        self.others_wait = False
        self.moment = NOW
        self.api, self.known = Api(), ObservedState()
        for cache in (self.known.pods, self.known.services, self.known.runs):
            cache.replace({}, "1")
        self.raw = raw_run(**changes)
        self.known.runs.put("lab/mnist", self.known.runs.keep(self.raw))
        self.transitions: list[tuple[str, str]] = []
        self.expected: set[tuple[str, str]] = set()
        self.refusals = Refusals(clock=lambda: self.now, random=Random(1))
        self.said: list[str] = []
        objects = Objects(self.api.client, self.api.writer, self.known)
        queues = Queues(Watches(self.api.client), self.api.writer, self.known, objects)
        self.reconciler = Reconciler(
            self.known,
            objects,
            RunCache(plan),
            ActionExecutor(
                objects, self.refusals, Counted(), queues, others_wait=lambda _: self.others_wait
            ),
            self.refusals,
            Announced(self),
            self,
            Delegation(
                self.api.client,
                self.api.writer,
                Engines(Watches(self.api.client), self.known.runs, "", lambda _: None),
                self.known.nodes,
                objects,
                self.refusals,
            ),
            WaitingPods(self.api.client, clock=lambda: self.now),
            queues,
            now=lambda: self.moment,
        )

    def expect_usage(self, resources: Iterable[tuple[str, str]]) -> None:
        self.expected.update(resources)

    def written(self, before: RunStatus, after: RunStatus) -> None:
        if before.phase != after.phase:
            self.transitions.append((before.phase, after.phase))

    def look(self) -> float | None:
        return asyncio.run(self.reconciler.reconcile_key("lab/mnist"))

    @property
    def status(self) -> Json:
        stored = self.known.runs.get("lab/mnist")
        assert stored is not None
        status: Json = stored.raw().get("status", {})
        return status


class Announced(Announcer):
    """Notes the reasons of what is announced, and writes nothing."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.api.writer)
        self._stage = stage

    def announce(self, run: Any, announcements: Any) -> None:
        del run
        self._stage.said += [each.reason for each in announcements]


def test_a_new_run_gets_its_pods_and_its_status() -> None:
    """The status last, written once."""
    stage = Stage()
    stage.look()
    assert stage.api.calls[0] == ("create", "mnist")
    assert sorted(stage.api.named("create")[1:]) == THREE
    assert stage.api.calls[-1] == ("replace", "mnist")
    assert stage.status["observedGeneration"] == 1
    assert "Begun" in stage.said


def test_a_second_reconcile_creates_nothing_before_the_watch_reports_the_pods() -> None:
    """What was created is known, and so is the status that was written."""
    stage = Stage()
    stage.look()
    stage.look()
    created = stage.api.named("create")
    assert len(created) == len(set(created)) == 4
    assert stage.status["replicas"]["worker"]["active"] == 3


def test_a_status_that_has_not_changed_is_not_written() -> None:
    """Else two controllers would keep each other busy for ever."""
    stage = Stage()
    for _ in range(4):
        stage.look()
    written = len(stage.api.named("replace"))
    assert stage.look() is None
    assert len(stage.api.named("replace")) == written


@pytest.mark.parametrize("there", [False, True])
def test_a_run_that_is_gone_or_going_is_left_alone(there: bool) -> None:
    """What it owns goes with it."""
    stage = Stage()
    stage.raw["metadata"]["deletionTimestamp"] = "2026-11-21T20:00:00Z"
    kept = stage.known.runs.keep(stage.raw) if there else None
    stage.known.runs.put("lab/mnist", kept)
    assert stage.look() is None
    assert stage.api.calls == []


def test_events_come_only_after_the_status_was_written() -> None:
    """A look whose status was refused is repeated, and would say everything again."""
    stage = Stage()
    stage.api.answers["replace", "*"] = refused(409, "Conflict")
    with pytest.raises(ClusterError) as caught:
        stage.look()
    assert caught.value.status == 409
    assert stage.said == []
    assert stage.transitions == []


def test_a_run_that_was_deleted_meanwhile_is_not_an_error() -> None:
    """Nobody is left to read its status."""
    stage = Stage()
    stage.api.answers["replace", "*"] = refused(404)
    stage.look()
    assert stage.said == []


def test_a_pod_that_is_missing_is_looked_up_before_it_is_counted() -> None:
    """The cache may only be behind."""
    replicas = {"worker": {"desired": 3, "activeIndexes": "0-2"}}
    status = {"phase": "Running", "startTime": "2026-11-21T20:00:00Z", "replicas": replicas}
    stage = Stage(status=status)
    stage.known.services.put(
        "lab/mnist",
        stage.known.services.keep(
            {"metadata": raw_pod(0)["metadata"], "spec": {"selector": {"a": "b"}}}
        ),
    )
    stage.api.answers["get", "mnist-worker-1"] = raw_pod(1)
    stage.look()
    assert sorted(stage.api.named("get")) == THREE
    worker = stage.status["replicas"]["worker"]
    assert worker["restarts"] == 2
    assert worker["activeIndexes"] == "1"
    # What went down is counted first; the pods come with a later look.
    assert stage.api.named("create") == []


def test_a_refusal_is_reported_by_the_next_reconcile_and_then_waited_for() -> None:
    """In between nothing is tried, and nothing is counted."""
    stage = Stage()
    stage.api.answers["create", "*"] = QUOTA
    assert stage.look() == 0.0
    left = stage.look()
    assert left is not None
    assert 0 < left <= 1.5
    assert stage.api.named("create") == ["mnist"]
    [created] = [each for each in stage.status["conditions"] if each["type"] == "Created"]
    assert (created["status"], created["reason"]) == ("False", "QuotaExceeded")
    assert "exceeded quota" in created["message"]
    stage.now += left
    del stage.api.answers["create", "*"]
    assert stage.look() == 0.0
    stage.look()
    [created] = [each for each in stage.status["conditions"] if each["type"] == "Created"]
    assert created["status"] == "True"


def test_trouble_with_an_action_is_raised_after_the_status_was_written() -> None:
    """What was counted must be remembered, though a deletion failed."""
    stage = Stage()
    stage.api.answers["create", "mnist-worker-2"] = refused(503)
    with pytest.raises(ClusterError):
        stage.look()
    assert stage.api.named("replace") == ["mnist"]


@pytest.mark.parametrize("trouble", [refused(None, "Timeout"), NotLeading("lost")])
def test_without_the_api_server_or_the_lease_nothing_more_is_tried(trouble: Exception) -> None:
    """The status could not be written either, or must not be."""
    stage = Stage()
    stage.api.answers["create", "*"] = trouble
    with pytest.raises(type(trouble)):
        stage.look()
    assert stage.api.named("replace") == []


def test_a_run_of_which_no_pods_can_be_made_is_over_once() -> None:
    """The status says why, an Event does, and the next look writes nothing."""
    stage = Stage(template={"spec": {"containers": []}})
    with pytest.raises(InvalidRun):
        stage.look()
    assert stage.status["phase"] == "Failed"
    [failed] = [each for each in stage.status["conditions"] if each["type"] == "Failed"]
    assert failed["reason"] == "InvalidRun"
    assert stage.said == ["InvalidRun"]
    assert stage.transitions == [("Pending", "Failed")]
    calls = len(stage.api.calls)
    assert stage.look() is None
    assert len(stage.api.calls) == calls


def test_a_run_that_cannot_even_be_read_is_over_too() -> None:
    """An older API let it through, say."""
    stage = Stage(backoffLimit=-1)
    for _ in range(2):
        with pytest.raises(InvalidRun):
            stage.look()
    assert stage.api.named("replace") == ["mnist"]
    assert "spec.backoffLimit" in stage.status["message"]


def test_a_run_whose_time_to_live_is_over_is_deleted_and_nothing_is_written() -> None:
    """In the version that was looked at."""
    done = {"phase": "Succeeded", "completionTime": "2026-11-21T20:00:00Z"}
    stage = Stage(status=done, ttlSecondsAfterFinished=60)
    stage.api.answers["delete", "mnist"] = {"kind": "Status"}
    stage.look()
    assert stage.api.calls == [("delete", "mnist")]
    assert stage.api.bodies[0]["preconditions"] == {"uid": UID, "resourceVersion": "5"}


def test_a_node_that_is_reported_as_shut_down_is_read_live_before_its_pod_is_deleted() -> None:
    """For each decision again; by what is read, and not by what was heard."""
    stage = Stage(replicas={"worker": {"count": 1}})
    stage.look()
    stage.look()
    bound = {**raw_pod(0, version=300), "spec": {"nodeName": "spot-0"}}
    bound["status"] = {"phase": "Running"}
    pods, nodes = stage.known.pods, stage.known.nodes.cache
    pods.put("lab/mnist-worker-0", pods.keep(bound), "300")
    off = raw_node("spot-0", ready="Unknown", shut_down=True)
    nodes.replace({"spot-0": nodes.keep(off)}, "1")
    stage.api.answers["get", "spot-0"] = raw_node("spot-0", ready="Unknown", version=400)
    stage.look()
    assert stage.api.named("get") == ["spot-0"]
    assert stage.status["replicas"]["worker"]["restarts"] == 0
    nodes.put("spot-0", nodes.keep({**off, "metadata": {**off["metadata"]}}), "500")
    stage.api.answers["get", "spot-0"] = raw_node(
        "spot-0", ready="Unknown", shut_down=True, version=500
    )
    stage.api.answers["delete", "mnist-worker-0"] = bound
    stage.look()
    assert stage.status["replicas"]["worker"]["restarts"] == 1
    assert stage.api.named("delete") == []
    stage.moment += timedelta(seconds=5)
    stage.look()
    assert stage.api.named("delete") == ["mnist-worker-0"]
    [options] = [body for body in stage.api.bodies if body and body["kind"] == "DeleteOptions"]
    assert options["gracePeriodSeconds"] == 0
    assert stage.api.named("get") == ["spot-0"] * 3


def test_an_unknown_node_is_read_once() -> None:
    """It may be newer than the view; where there is none, it is gone."""
    stage = Stage(replicas={"worker": {"count": 1}})
    stage.look()
    bound = {**raw_pod(0, version=300), "spec": {"nodeName": "spot-0"}}
    stage.known.pods.put("lab/mnist-worker-0", stage.known.pods.keep(bound), "300")
    stage.known.nodes.cache.replace({}, "1")
    for _ in range(3):
        stage.look()
    assert stage.api.named("get") == ["spot-0"]
    assert "NodeGone" in stage.said


def test_the_deadline_is_met_while_creations_are_refused() -> None:
    """The next look is for whichever comes first: the deadline, or the next try."""
    stage = Stage(activeDeadlineSeconds=100)
    stage.api.answers["create", "*"] = QUOTA
    waited = 0.0
    while stage.status.get("phase") != "Failed":
        left = stage.look() or 0.0
        waited += left
        stage.now += left
        stage.moment += timedelta(seconds=left)
        assert waited < 101


def test_a_look_that_did_nothing_is_not_followed_by_the_next_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Were the decision wrong, a core would be busy with one run."""
    stage = Stage()
    stage.look()
    monkeypatch.setattr(module, "reconcile", lambda run, *_: Outcome(run.status, after=0))
    assert stage.look() == module.IDLE


def test_a_large_run_lets_other_namespaces_pass() -> None:
    """It is looked at again at once, after them, until all of its pods are there."""
    stage = Stage(replicas={"worker": {"count": 120}})
    stage.others_wait = True
    looks = []
    while len(stage.known.pods.items()) < 120:
        looks.append(stage.look())
        assert len(looks) < 10
    assert looks[:2] == [0.0, 0.0]
    assert len(stage.api.named("create")) == 121


def test_what_the_pods_use_is_expected_before_it_is_counted() -> None:
    """By class and resource; an accelerator of a pod that has started, as others may be no name."""
    stage = Stage()
    spot = raw_class("spot", nodes=[{"labels": SPOT}])
    stage.known.nodes.classes.put("spot", stage.known.nodes.classes.keep(spot))
    stage.known.nodes.cache.replace({})
    stage.known.nodes.cache.put("a", stage.known.nodes.cache.keep(raw_node("a", labels=SPOT)))
    started = {"name": "main", "state": {"running": {"startedAt": "2026-11-21T20:00:00Z"}}}
    for index, (node, statuses) in enumerate([("", []), ("a", []), ("a", [started])]):
        gpu = {"name": "main", "resources": {"requests": {f"made.up/{index}": "1"}}}
        raw = {
            **raw_pod(index),
            "spec": {"nodeName": node, "containers": [gpu]},
            "status": {"phase": "Pending", "containerStatuses": statuses},
        }
        stage.known.pods.put(f"lab/mnist-worker-{index}", stage.known.pods.keep(raw))
    stage.look()
    assert stage.expected == {("", "replicas"), ("spot", "replicas"), ("spot", "made.up/2")}


def test_a_look_at_a_run_walks_no_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it needs of all nodes, pods and Runs is kept as they change, in an outage, too."""
    stage = Stage(status={"phase": "Running"})
    spot = raw_class("spot", nodes=[{"labels": SPOT}], lostAfter="5m")
    stage.known.nodes.classes.put("spot", stage.known.nodes.classes.keep(spot))
    stage.known.nodes.cache.replace({})
    for name in ("a", "b", "c"):
        raw = raw_node(name, labels=SPOT, ready="Unknown")
        stage.known.nodes.cache.put(name, stage.known.nodes.cache.keep(raw))
    bound = {**raw_pod(0), "spec": {"nodeName": "a"}, "status": {"phase": "Running"}}
    stage.known.pods.put("lab/mnist-worker-0", stage.known.pods.keep(bound))
    health = stage.known.nodes.get("a")
    assert health is not None
    assert health.many_of == "spot"
    monkeypatch.delattr(Cache, "items")
    stage.look()
    stage.known.nodes.cache.put("b", stage.known.nodes.cache.keep(raw_node("b", labels=SPOT)))
    stage.look()
