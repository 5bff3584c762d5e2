"""One look at one run, on an API server that answers in every way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from tests.controller.runs import UID, Api, Json, raw_node, raw_pod, raw_run, refused
from tests.controller.test_action_executor import QUOTA, Counted
from tests.controller.test_node_health import SPOT, raw_class
from tests.wording import mentions
from webhook import names
from webhook.controller import reconciler as module
from webhook.controller.action_executor import ActionExecutor
from webhook.controller.announcer import Announcer
from webhook.controller.delegation import Delegation
from webhook.controller.engines import Engines
from webhook.controller.observed_state import ObservedState
from webhook.controller.owned_objects import Objects
from webhook.controller.queues import Queues, Trials
from webhook.controller.reconciler import Reconciler
from webhook.controller.refusals import Refusals
from webhook.controller.starts import Starts
from webhook.controller.stored_run import RunCache
from webhook.controller.waiting_pods import WaitingPods
from webhook.controller.workload_executor import WorkloadExecutor
from webhook.errors import ClusterError, InvalidRun, NotLeading
from webhook.kube.cache import Cache
from webhook.kube.watches import Watches
from webhook.run.actions import Outcome
from webhook.run.model import RunStatus
from webhook.run.plan import plan
from webhook.run.queue_workload import workload_name

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
        self.known.memory.begin()
        self.raw = raw_run(**changes)
        self.known.runs.put("lab/mnist", self.known.runs.keep(self.raw))
        self.transitions: list[tuple[str, str]] = []
        self.expected: set[tuple[str, str]] = set()
        self.refusals = Refusals(clock=lambda: self.now, random=Random(1))
        self.said: list[str] = []
        objects = Objects(self.api.client, self.api.writer, self.known)
        trials = Trials(self.known)
        queues = Queues(Watches(self.api.client), self.known, objects, trials)
        self.reconciler = Reconciler(
            self.known,
            objects,
            RunCache(plan),
            ActionExecutor(
                objects,
                self.refusals,
                self.known.memory,
                Counted(),
                WorkloadExecutor(self.api.client, self.api.writer, self.known, objects, trials),
                others_wait=lambda _: self.others_wait,
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
            Starts(self.known, self.refusals, lambda _: None, now=lambda: self.moment),
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


def test_a_new_run_has_its_pods_in_its_status_before_they_are_created() -> None:
    """One write for all of them, and no other until they are there."""
    stage = Stage()
    stage.look()
    assert stage.api.calls == [("create", "mnist"), ("replace", "mnist")]
    assert stage.status["replicas"]["worker"]["creatingIndexes"] == "0-2"
    assert stage.status["observedGeneration"] == 1
    assert "Begun" in stage.said
    stage.look()
    assert sorted(stage.api.named("create")[1:]) == THREE
    assert stage.api.named("replace") == ["mnist"]
    stage.look()
    worker = stage.status["replicas"]["worker"]
    assert (worker["activeIndexes"], worker.get("creatingIndexes", "")) == ("0-2", "")


def test_pods_mount_the_keys_that_the_status_names() -> None:
    """Keys and their name first, then the plan of the pods, then pods."""
    roles: Json = {"launcher": {}, "worker": {"count": 2}}
    stage = Stage(framework="mpi", replicas=roles)
    stage.look()
    (secret,) = stage.api.named("create")
    assert stage.status["sshSecret"] == secret
    assert "creatingIndexes" not in stage.status["replicas"]["worker"]
    stage.look()
    assert stage.status["replicas"]["worker"]["creatingIndexes"] == "0-1"
    stage.look()
    pods = [body for body in stage.api.bodies if body["kind"] == "Pod"]
    mounted = {
        volume["secret"]["secretName"]
        for pod in pods
        for volume in pod["spec"]["volumes"]
        if "secret" in volume
    }
    assert (len(pods), mounted) == (2, {secret})


def test_a_second_reconcile_creates_nothing_before_the_watch_reports_the_pods() -> None:
    """What was created is known, and so is the status that was written."""
    stage = Stage()
    for _ in range(3):
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


def test_a_run_that_is_gone_is_left_alone() -> None:
    """What it owns goes with it."""
    stage = Stage()
    stage.known.runs.put("lab/mnist", None)
    assert stage.look() is None
    assert stage.api.calls == []


@pytest.mark.parametrize("spec", [{}, {"kind": 7}])
def test_of_a_run_that_is_being_deleted_only_the_status_is_written(spec: dict[str, Any]) -> None:
    """What it owns goes with it. One that has no valid pods has nothing left to say."""
    stage = Stage()
    stage.raw["metadata"]["deletionTimestamp"] = "2026-11-21T20:00:00Z"
    stage.raw["spec"] |= spec
    stage.known.runs.put("lab/mnist", stage.known.runs.keep(stage.raw))
    assert stage.look() is None
    assert stage.api.calls == ([] if spec else [("replace", "mnist")])


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
    stage.look()
    stage.moment += timedelta(seconds=100)
    stage.known.pods.put("lab/mnist-worker-0", stage.known.pods.keep(raw_pod(0)))
    stage.api.answers["create", "mnist-worker-2"] = refused(503)
    with pytest.raises(ClusterError):
        stage.look()
    assert stage.api.named("replace") == ["mnist", "mnist"]


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
    stage.look()
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


def running(stage: Stage, index: int, version: int = 300) -> Json:
    """A pod that was created runs on spot-0, as the watch tells it; the raw pod."""
    pod = stage.known.pods.get(f"lab/mnist-worker-{index}")
    assert pod is not None
    raw = {**raw_pod(index, uid=pod.uid, version=version), "spec": {"nodeName": "spot-0"}}
    raw["status"] = {"phase": "Running"}
    stage.known.pods.put(*stage.known.pods.entry(raw), str(version))
    return raw


def begun(count: int = 2, **spec: Any) -> Stage:
    """The pods of a run were created, and the status says so."""
    stage = Stage(replicas={"worker": {"count": count}}, **spec)
    for _ in range(3):
        stage.look()
    stage.known.nodes.cache.replace({"spot-0": stage.known.nodes.cache.keep(raw_node("spot-0"))})
    return stage


def test_the_last_state_of_a_pod_that_is_gone_is_counted_once() -> None:
    """It is read live first; after the write it is forgotten, but for a conflict."""
    stage = begun()
    raw = running(stage, 0)
    target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    evicted = {**raw, "status": {**raw["status"], "conditions": [target]}}
    stage.known.pods.remove(evicted, "301")
    stage.api.answers["replace", "*"] = refused(409, "Conflict")
    with pytest.raises(ClusterError):
        stage.look()
    assert [pod.node for pod in stage.known.memory.gone(UID)] == ["spot-0"]
    del stage.api.answers["replace", "*"]
    stage.look()
    assert stage.api.named("get") == ["mnist-worker-0"] * 2
    last = stage.status["lastFailure"]
    assert (last["node"], last["reason"]) == ("spot-0", "EvictionByEvictionAPI")
    assert stage.status["disruptions"] == 1
    assert stage.known.memory.gone(UID) == ()


def test_a_write_without_an_answer_may_have_counted_what_is_gone() -> None:
    """The next look must not count it by its last state again, after its replica was planned."""
    stage = begun()
    stage.known.pods.remove(running(stage, 0), "301")
    stage.api.answers["replace", "*"] = refused(None, "Timeout")
    with pytest.raises(ClusterError):
        stage.look()
    assert stage.known.memory.gone(UID) == ()


def test_a_pod_that_goes_before_the_reconcile_after_its_creation_is_counted() -> None:
    """The status had planned it, and its last state was seen."""
    stage = Stage(replicas={"worker": {"count": 2}}, restartScope="Run")
    stage.look()
    stage.look()
    stage.known.pods.remove(running(stage, 0), "301")
    stage.look()
    worker = stage.status["replicas"]["worker"]
    assert (worker["disruptions"], worker["attempt"], worker["creatingIndexes"]) == (1, 1, "0-1")


def test_a_pod_that_another_process_may_have_created_is_looked_up_and_charged_to_nobody() -> None:
    """Its number is in the status before its creation is sent again."""
    stage = Stage(replicas={"worker": {"count": 2}})
    stage.look()
    stage.known.memory.begin()
    stage.api.answers["get", "mnist-worker-1"] = raw_pod(1, version=90)
    stage.look()
    assert sorted(stage.api.named("get")) == ["mnist-worker-0", "mnist-worker-1"]
    worker = stage.status["replicas"]["worker"]
    assert (worker["recreations"], worker["restarts"], worker["disruptions"]) == (1, 0, 0)
    assert stage.api.named("create") == ["mnist"]
    stage.look()
    [body] = [each for each in stage.api.bodies if each and each.get("kind") == "Pod"]
    env = {each["name"]: each["value"] for each in body["spec"]["containers"][0]["env"]}
    assert (body["metadata"]["name"], env["FAIRLEAD_ATTEMPT"]) == ("mnist-worker-0", "1")


@pytest.mark.parametrize(
    ("answer", "known"),
    [
        (QUOTA, True),
        (refused(429, "TooManyRequests"), True),
        (refused(409, "Conflict"), True),
        (refused(500, "InternalError", "failed calling webhook x: timeout"), True),
        (refused(500, "InternalError", "etcdserver: request timed out"), False),
        (refused(504, "Timeout"), False),
        (refused(None, "Broken"), False),
    ],
)
def test_a_creation_that_was_rejected_is_known_not_to_have_happened(
    answer: ClusterError, known: bool
) -> None:
    """Any other answer, or none, leaves it open."""
    stage = Stage(replicas={"worker": {"count": 1}})
    stage.look()
    stage.api.answers["create", "mnist-worker-0"] = answer
    with suppress(ClusterError):
        stage.look()
    assert (stage.known.memory.uncreated(UID) == {"mnist-worker-0"}) == known


def test_a_live_pod_that_the_watch_does_not_know_is_read_again_after_a_while() -> None:
    """Its labels are gone, and with them every event of it."""
    stage = begun()
    running(stage, 1)
    raw = running(stage, 0)
    stage.known.pods.remove(raw, "301")
    stage.api.answers["get", "mnist-worker-0"] = raw
    left = stage.look()
    assert left is not None
    assert left <= module.UNWATCHED_PAUSE
    done = {"exitCode": 1, "reason": "Error", "finishedAt": "2026-11-21T20:15:00Z"}
    ended = {**raw, "status": {"phase": "Failed", "containerStatuses": []}}
    ended["status"]["containerStatuses"] = [{"name": "main", "state": {"terminated": done}}]
    stage.api.answers["get", "mnist-worker-0"] = ended
    stage.look()
    assert stage.status["replicas"]["worker"]["restarts"] == 1


@pytest.mark.parametrize("known", ["nodes and class", "nodes", "nothing"])
def test_an_author_does_not_get_out_of_a_class_where_the_controller_knows_its_nodes(
    known: str,
) -> None:
    """Without nodes, or without the class, it does not guess, and every wait counts."""
    zone = {"nodeSelector": {"zone": "b"}}
    stage = Stage(replicas={"worker": {"count": 1}}, environment=zone)
    for _ in range(3):
        stage.look()
    nodes = stage.known.nodes
    if known != "nothing":
        there = (raw_node("spot-0", labels=SPOT), raw_node("b-0", labels={"zone": "b"}))
        nodes.cache.replace({each["metadata"]["name"]: nodes.cache.keep(each) for each in there})
    if known == "nodes and class":
        nodes.classes.put("spot", nodes.classes.keep(raw_class("spot", nodes=[{"labels": SPOT}])))
    stamped: Json = {"annotations": {names.PLACEMENT: '{"fallback": {"spot": 60}}'}}
    since = {"lastTransitionTime": "2026-11-21T20:15:00Z", "message": "0/2 nodes are available"}
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", **since}
    raw = {**raw_pod(0, version=300, **stamped), "spec": zone}
    raw["status"] = {"phase": "Pending", "conditions": [waits]}
    stage.known.pods.put(*stage.known.pods.entry(raw), "300")
    stage.moment += timedelta(seconds=60)
    left = stage.look()
    counted = "history" in stage.status["replicas"]["worker"]
    assert counted == (known != "nodes and class")
    assert ("nodeSelector zone=b" in stage.status["message"]) != counted
    assert counted or left == 60.0


def test_what_the_pods_of_a_run_that_is_deleted_used_is_counted() -> None:
    """No status has it: who deletes instead of waiting would use nothing."""
    worker = {"desired": 3, "active": 2, "activeIndexes": "0-1"}
    stage = Stage(status={"phase": "Running", "replicas": {"worker": worker}})
    counted: list[Any] = []
    stage.written = lambda before, after: counted.append((before, after))  # type: ignore[method-assign]
    for index in range(2):
        raw = raw_pod(index, creationTimestamp="2026-11-21T20:14:20Z")
        raw["spec"] = {"nodeName": "a"}
        stage.known.pods.put(f"lab/mnist-worker-{index}", stage.known.pods.keep(raw))
    stage.known.pods.put("lab/mnist-worker-1", None)
    stored = stage.known.runs.get("lab/mnist")
    assert stored
    stage.reconciler.count_deleted(stored)
    ((before, after),) = counted
    assert before.usage == ()
    (row,) = after.usage
    assert (row.resource, row.seconds) == ("replicas", 80)


def test_a_run_whose_status_is_not_stored_whole_is_looked_at_again() -> None:
    """An older definition drops which pods are being created: the Run stays as it was, and no watch
    tells of it, nor of the definition that comes later."""
    stage = Stage()
    first = stage.look()
    stored = next(
        body["status"]
        for (verb, _), body in zip(stage.api.calls, stage.api.bodies, strict=True)
        if verb == "replace"
    )
    assert first != module.HELD_PAUSE
    worker = {
        key: value for key, value in stored["replicas"]["worker"].items() if "ndexes" not in key
    }
    cut = {**stored, "replicas": {"worker": worker}}
    stage = Stage()
    stage.api.answers["replace", "mnist"] = {**stage.raw, "status": cut}
    assert stage.look() == module.HELD_PAUSE
    stage.api.answers.clear()
    assert stage.look() != module.HELD_PAUSE


def test_the_pods_of_a_gang_are_tried_before_its_start() -> None:
    """One that admission rejects keeps it from starting, and holds nothing; others may be next."""
    stage = Stage(gang={"startWithin": "10m"})
    node = raw_node("n1")
    node["status"] = {**node.get("status", {}), "allocatable": {"cpu": "8", "pods": "9"}}
    stage.known.nodes.cache.replace({"n1": stage.known.nodes.cache.keep(node)}, "1")
    tried = workload_name("mnist", UID)
    stage.api.answers["create", tried] = refused(403, "Forbidden", "no pods of this team")
    stage.raw["metadata"]["creationTimestamp"] = "2026-11-21T20:14:00Z"
    stage.known.runs.put("lab/mnist", stage.known.runs.keep(stage.raw))
    stage.look()
    assert ("create", tried) in stage.api.calls
    mentions(stage.status["message"], "is rejected", "no pods of this team")
    assert (stage.status["phase"], stage.status["gang"]["tries"]) == ("Pending", 0)
