"""Delegated runs: what is made, counted and ended, from the engine's object and its pods."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.run.runs import UID, a_run, containers, spec_of
from tests.wording import mentions
from webhook import names
from webhook.errors import InvalidRun
from webhook.identity import identify
from webhook.run.actions import (
    Action,
    Announcement,
    CreateEngineObject,
    DeleteEngineObject,
    DeleteRun,
    Outcome,
    SuspendEngineObject,
)
from webhook.run.backends.engine_object import (
    delegated_object,
    render_delegated,
    undelegated_problems,
)
from webhook.run.backends.engines import ENGINES, engine_key, find_engine
from webhook.run.backends.table import BACKENDS
from webhook.run.delegated import reconcile_delegated
from webhook.run.delegated_counts import MOST_GONE
from webhook.run.engine_report import (
    FIRST_LOOK,
    SILENCE,
    describe_edits,
    report_failed_write,
)
from webhook.run.idle import is_idle, needs_whole, reduce_run
from webhook.run.model import Condition, RoleStatus, Run, RunSpec, RunStatus
from webhook.run.observation import engine_event
from webhook.run.observed import (
    EngineEvent,
    EngineObject,
    EngineObserved,
    Exit,
    NodeHealth,
    OwnedPod,
    Refusal,
)
from webhook.run.plan import plan
from webhook.times import to_second
from webhook.workloads.object import Object
from webhook.workloads.template_search import pod_templates

BEGIN = datetime(2026, 11, 24, 9, tzinfo=UTC)
WORKERS = {"master": {"restartPolicy": "ExitCode"}, "worker": {"count": 2}}
ALL = ("master-0", "worker-0", "worker-1")


class Engine:
    """An engine that does nothing by itself, and the run that was given to it."""

    def __init__(self, **spec: Any) -> None:
        whole = {
            "backend": "kubeflow",
            "framework": "pytorch",
            "replicas": WORKERS,
            "template": spec_of(containers("main")),
            **spec,
        }
        self.run: Run = a_run("mnist", whole)
        found = find_engine(self.run)
        assert found is not None
        self.engine = found
        self.observed = EngineObserved()
        self.live: EngineObserved | None = None
        self.events: tuple[EngineEvent, ...] = ()
        self.now = BEGIN
        self.did: list[Action] = []
        self.told: list[Announcement] = []
        self.outcome = Outcome(self.run.status)
        # Why writes to the object fail; empty while they do not.
        self.failing = ""

    def look(self) -> Engine:
        """Reconcile until nothing changes; what is decided is done to the object at once."""
        for _ in range(6):
            outcome = reconcile_delegated(self.run, self.engine, self.observed, self.now)
            if outcome.look_up:
                self.observed = replace(self.live or self.observed, fresh=True)
                outcome = reconcile_delegated(self.run, self.engine, self.observed, self.now)
            if outcome.look_up_events:
                self.observed = replace(self.observed, events=self.events)
                outcome = reconcile_delegated(self.run, self.engine, self.observed, self.now)
            self._decides_alike(outcome)
            self.observed = replace(self.observed, events=None, fresh=False)
            assert not outcome.look_up
            assert not outcome.look_up_events
            if self.failing and outcome.actions:
                outcome = report_failed_write(self.run, outcome, self.failing)
            self.outcome = outcome
            self.told += outcome.announcements
            self.did += outcome.actions
            for action in () if self.failing else outcome.actions:
                self._do(action)
            before, self.run = self.run, self.run.model_copy(update={"status": outcome.status})
            if before.status == self.run.status and (self.failing or not outcome.actions):
                break
        return self

    def _decides_alike(self, outcome: Outcome) -> None:
        """The same is decided by what is kept of an idle run, or that the whole one is read."""
        raw = self.run.model_dump(mode="json", by_alias=True, exclude_unset=True)
        raw["status"] = {"phase": self.run.status.phase}
        if is_idle(raw, queued=False):
            kept = Run.model_validate(reduce_run(raw)).model_copy(
                update={"status": self.run.status}
            )
            found = reconcile_delegated(kept, self.engine, self.observed, self.now)
            over = self.run.status.ended or self.run.metadata.deletion_timestamp
            assert found == outcome or (not over and needs_whole(raw["status"]["phase"], found))

    def _do(self, action: Action) -> None:
        match action:
            case CreateEngineObject() if not self.observed.refusals:
                found = EngineObject("mnist", "uid-job", UID, to_second(self.now))
                self.observed = replace(self.observed, object=found)
            case SuspendEngineObject(_, suspend):
                self.object(suspended=suspend)
            case DeleteEngineObject():
                self.observed = replace(self.observed, object=None, pods=())

    def object(self, **changes: Any) -> Engine:
        assert self.observed.object is not None
        self.observed = replace(self.observed, object=self.observed.object._replace(**changes))
        return self

    def reports(self, kind: str, reason: str = "", message: str = "") -> Engine:
        """The engine writes a condition."""
        assert self.observed.object is not None
        conditions = {**self.observed.object.conditions, kind: (reason, message)}
        return self.object(conditions=conditions, reported=True).look()

    def pod(self, name: str, **changes: Any) -> Engine:
        """A pod changes, or is there for the first time."""
        role, _, index = name.rpartition("-")
        known = {pod.name: pod for pod in self.observed.pods}
        fields: dict[str, Any] = {"uid": f"uid-{name}", "run_uid": "uid-job", "attempt": 0}
        fields |= {"phase": "Running", "ready": True, "node": "n"}
        pod = known.get(name) or OwnedPod(name=name, role=role, index=int(index), **fields)
        known[name] = replace(pod, **changes)
        self.observed = replace(self.observed, pods=tuple(known.values()))
        return self

    def goes(self, name: str) -> Engine:
        pods = {pod.name: pod for pod in self.observed.pods}
        pod = pods.pop(name)
        gone = (*self.observed.gone, pod)
        self.observed = replace(self.observed, pods=tuple(pods.values()), gone=gone)
        return self

    def fails(self, name: str, code: int = 1, reason: str = "Error") -> Engine:
        """A pod ends."""
        end = Exit("pytorch", code, reason=reason, finished_at=to_second(self.now))
        return self.pod(name, phase="Failed", ready=False, exit=end)

    def runs(self) -> Engine:
        return self.look().pods().look()

    def pods(self, **changes: Any) -> Engine:
        """All pods change, or are there for the first time."""
        for name in ALL:
            self.pod(name, **changes)
        return self

    def recreated(self) -> Engine:
        """All pods are deleted, and others have their names."""
        for name in ALL:
            self.goes(name).pod(name, uid=f"again-{name}", deleted_at="")
        return self.look()

    def later(self, seconds: float) -> Engine:
        self.now += timedelta(seconds=seconds)
        return self.look()

    def spec(self, **fields: Any) -> Engine:
        spec = self.run.spec.model_copy(update=fields)
        self.run = self.run.model_copy(update={"spec": spec})
        return self.look()

    @property
    def status(self) -> RunStatus:
        return self.run.status

    def role(self, role: str = "worker") -> RoleStatus:
        return self.status.replicas[role]

    @property
    def phase(self) -> str:
        return self.run.status.phase

    def condition(self, kind: str) -> Condition:
        return next(each for each in self.status.conditions if each.type == kind)


def test_the_object_is_created_once() -> None:
    """And nothing else."""
    engine = Engine().runs().later(5)
    assert engine.did == [CreateEngineObject()]
    assert engine.phase == "Running"
    assert engine.status.replicas_ready == "3/3"


def test_a_failed_pod_is_counted_once_whether_it_is_seen_or_already_gone() -> None:
    """The training operator deletes it at once."""
    seen = Engine().runs().fails("worker-1", 137).look()
    assert seen.status.phase == "Restarting"
    seen.goes("worker-1").look().pod("worker-1", uid="next").look()
    missed = Engine().runs().fails("worker-1", 137).goes("worker-1")
    missed.pod("worker-1", uid="next").look().later(5)
    for engine in (seen, missed):
        assert engine.phase == "Running"
        assert (engine.role().failed, engine.role().restarts) == (1, 1)
        assert engine.status.last_failure is not None
        assert engine.status.last_failure.exit_code == 137


def test_restarts_of_the_main_container_are_failures_each_once() -> None:
    """With restartPolicy OnFailure the kubelet restarts it, and the pod stays."""
    engine = Engine(backoffLimit=3).runs()
    end = Exit("pytorch", 1, message="no data")
    engine.pod("worker-0", restarts=2, previous=end).look().later(9)
    assert (engine.role().failed, engine.role().restarts) == (2, 2)
    assert engine.status.last_failure is not None
    assert engine.status.last_failure.message == "no data"
    engine.pod("worker-0", restarts=4, previous=end).look()
    assert engine.condition("Failed").reason == "BackoffLimitExceeded"
    assert engine.role().failed == 4


def test_the_backoff_limit_ends_the_run_before_its_object_is_deleted() -> None:
    """The status is written first."""
    engine = Engine(backoffLimit=0).runs().fails("worker-1", 137)
    outcome = reconcile_delegated(engine.run, engine.engine, engine.observed, engine.now)
    assert outcome.status.phase == "Failed"
    assert outcome.actions == ()
    engine.look()
    assert engine.did[-1] == DeleteEngineObject("uid-job")
    assert engine.condition("Failed").reason == "BackoffLimitExceeded"


def test_an_unset_backoff_limit_is_no_limit() -> None:
    """The default of 3 is that of the native backend."""
    engine = Engine().runs()
    for attempt in range(9):
        engine.fails("worker-1", 137).look().goes("worker-1")
        engine.pod("worker-1", uid=f"uid-{attempt}", phase="Running", exit=None).look()
    assert engine.role().failed == 9
    assert engine.phase == "Running"


def test_a_deadline_counts_from_the_start_and_the_controller_wakes_for_it() -> None:
    """The training operator does not."""
    engine = Engine(activeDeadlineSeconds=30).runs()
    assert engine.outcome.after == 30
    assert engine.later(29).status.phase == "Running"
    assert engine.later(1).condition("Failed").reason == "DeadlineExceeded"
    assert engine.did[-1] == DeleteEngineObject("uid-job")


def test_success_wins_over_what_remains_of_running() -> None:
    """The training operator leaves Active beside Succeeded, and deletes pods only afterwards."""
    engine = Engine(ttlSecondsAfterFinished=60).runs().reports("Running").reports("Succeeded")
    assert engine.phase == "Succeeded"
    engine.pod("worker-0", deleted_at=to_second(engine.now)).goes("worker-0").look()
    assert engine.status.disruptions == 0
    assert engine.did == [CreateEngineObject()]
    assert engine.later(60).did[-1] == DeleteRun()


def test_pods_that_are_deleted_at_the_end_are_not_counted_before_it_is_known() -> None:
    """The watch of pods may be ahead of that of objects: the object is read live."""
    engine = Engine().runs()
    engine.live = engine.observed
    engine.pod("worker-0", deleted_at=to_second(engine.now))
    ahead = engine.observed
    engine.live = replace(
        ahead,
        object=ahead.object._replace(conditions={"Succeeded": ("", "")}),  # type: ignore[union-attr]
    )
    engine.look()
    assert engine.phase == "Succeeded"
    assert engine.status.disruptions == 0


@pytest.mark.parametrize(
    ("reason", "word"), [("Error", "PermanentFailure"), ("OOMKilled", "OutOfMemory")]
)
def test_a_failure_of_the_object_has_the_reason_of_a_native_run(reason: str, word: str) -> None:
    """Without a completion time, as the training operator writes it for exit codes below 128."""
    engine = Engine().runs().fails("worker-1", 1, reason).look()
    engine.reports("Failed", "PyTorchJobFailed", "job is failing")
    assert engine.condition("Failed").reason == word
    mentions(engine.status.message, "worker-1", "job is failing")
    assert DeleteEngineObject("uid-job") not in engine.did


def test_a_failure_without_a_failed_pod_is_the_backend_s() -> None:
    """Nothing is guessed."""
    engine = Engine().runs().reports("Failed", "PyTorchJobFailed", "no quota")
    assert engine.condition("Failed").reason == "BackendFailed"
    mentions(engine.status.message, "PyTorchJob mnist", "no quota")


def test_suspension_is_handed_down_once_and_costs_nothing() -> None:
    """Edits of the object by others are left alone."""
    engine = Engine().runs().spec(suspend=True)
    assert engine.did[-1] == SuspendEngineObject("uid-job", suspend=True)
    engine.pods(deleted_at=to_second(engine.now)).look()
    assert engine.phase == "Suspended"
    done = len(engine.did)
    assert len(engine.object(suspended=False).look().did) == done
    engine.object(suspended=True).spec(suspend=False)
    assert engine.did[-1] == SuspendEngineObject("uid-job", suspend=False)
    engine.recreated()
    assert engine.phase == "Running"
    assert (engine.status.disruptions, engine.status.restarts) == (0, 0)


def test_a_suspension_that_fails_is_due_until_the_object_is_suspended() -> None:
    """Until then the status says that the run is not suspended, and why; also on resuming."""
    engine = Engine().runs()
    fails_and_is_due(engine, "Running", suspend=True)
    assert engine.phase == "Suspended"
    assert engine.condition("Suspended").status == "True"
    fails_and_is_due(engine, "Suspended", suspend=False)
    assert engine.phase == "Running"


def fails_and_is_due(engine: Engine, phase: str, *, suspend: bool) -> None:
    """The run stays in its phase while the write fails, and goes on when it does not."""
    told = len(engine.told)
    engine.failing = "the webhook is away"
    engine.spec(suspend=suspend).look()
    tries = len(engine.did)
    engine.look()
    assert len(engine.did) > tries
    assert (engine.phase, engine.status.message) == (phase, "the webhook is away")
    assert "BackendWriteFailed" in [each.reason for each in engine.told[told:]]
    engine.failing = ""
    engine.look()


def test_a_run_is_suspended_when_its_object_is() -> None:
    """The answer to the write may come before the operator, or a queue, has done it."""
    engine = Engine().runs()
    spec = engine.run.spec.model_copy(update={"suspend": True})
    engine.run = engine.run.model_copy(update={"spec": spec})
    outcome = reconcile_delegated(engine.run, engine.engine, engine.observed, engine.now)
    assert outcome.actions == (SuspendEngineObject("uid-job", suspend=True),)
    assert outcome.status.phase == "Running"
    mentions(outcome.status.message, "PyTorchJob mnist is not suspended yet")


def test_pods_that_go_because_a_queue_suspends_the_object_are_no_disruption() -> None:
    """Kueue has evicted the workload; it counts again once the queue admits it."""
    engine = Engine().runs()
    engine.object(suspended=True)
    engine.pods(deleted_at=to_second(engine.now)).look().object(suspended=False).recreated()
    assert engine.phase == "Running"
    assert (engine.status.disruptions, engine.status.last_failure) == (0, None)
    engine.pod("worker-1", deleted_at=to_second(engine.now)).look()
    assert engine.status.disruptions == 1


def test_pods_of_a_resumed_run_live_though_its_status_was_not_written() -> None:
    """The controller ends after it resumed the object: the pods that are there then are new."""
    engine = Engine(backoffLimit=0).runs().spec(suspend=True)
    for name in ALL:
        engine.goes(name)
    engine.look()
    suspended = engine.run.status
    engine.spec(suspend=False).pod("master-0", uid="new-0").pod("worker-0", uid="new-1")
    engine.run = engine.run.model_copy(update={"status": suspended})
    engine.look().pod("worker-1", uid="new-2").look()
    assert engine.phase == "Running"
    assert (engine.status.restarts, engine.status.disruptions) == (0, 0)
    assert engine.fails("worker-0").look().condition("Failed").reason == "BackoffLimitExceeded"


def test_pods_that_outlive_a_suspension_count_again() -> None:
    """The run is resumed before the engine has deleted any pod."""
    engine = Engine(backoffLimit=0).runs().spec(suspend=True).object(suspended=True)
    engine.spec(suspend=False).look()
    assert engine.phase == "Running"
    engine.look()
    assert engine.fails("worker-0").look().condition("Failed").reason == "BackoffLimitExceeded"


def test_a_run_that_is_suspended_from_its_start_has_no_object() -> None:
    """It is created when the run is resumed."""
    engine = Engine(suspend=True).look()
    assert engine.did == []
    assert engine.spec(suspend=False).did == [CreateEngineObject()]


def test_the_suspension_of_a_queue_is_reported_and_left_alone() -> None:
    """Kueue suspends the object; its queue is named."""
    engine = Engine()
    engine.look().object(suspended=True, queue="q").look()
    assert engine.did == [CreateEngineObject()]
    assert engine.phase == "Pending"
    assert engine.condition("Created").reason == "BackendSuspended"
    mentions(engine.status.message, "PyTorchJob mnist", "queue q")


def test_an_object_that_kueue_does_not_queue_is_reported_to_run_without_quota() -> None:
    """Kueue suspends what it queues as it is created, and labels its templates later."""
    engine = Engine()
    labels = {names.KUEUE_QUEUE: "ml"}
    metadata = engine.run.metadata.model_copy(update={"labels": labels})
    engine.run = engine.run.model_copy(update={"metadata": metadata})
    engine.runs()
    condition = engine.condition("Admitted")
    assert (condition.status, condition.reason) == ("False", "NotQueued")
    mentions(
        condition.message,
        "PyTorchJob mnist runs without the quota of queue ml",
        "kubeflow.org/pytorchjob",
        "integrations.frameworks",
    )
    mentions(engine.status.message, "3 of 3 replicas run", condition.message)
    engine.later(60).later(60)
    assert [each.reason for each in engine.told].count("NotQueued") == 1
    labelled = b'{"Worker":{"template":{"metadata":{"labels":{"kueue.x-k8s.io/podset":"worker"}}}}}'
    engine.object(templates=labelled).look()
    assert engine.condition("Admitted").status == "True"
    assert "without the quota" not in engine.status.message


def test_a_delegated_run_without_a_queue_has_no_condition_of_one() -> None:
    assert "Admitted" not in {each.type for each in Engine().runs().status.conditions}


def test_a_queue_is_told_that_a_run_is_suspended_and_that_it_is_resumed() -> None:
    """It would resume an object that is suspended alone, also one that waits for its quota."""
    suspends = SuspendEngineObject("uid-job", suspend=True, queued=True)
    resumes = SuspendEngineObject("uid-job", suspend=False, queued=True)
    waits = Engine().look().object(suspended=True, queue="q").look()
    assert waits.phase == "Pending"
    for engine in (waits, Engine().runs().object(queue="q")):
        engine.spec(suspend=True)
        assert engine.phase == "Suspended"
        assert {*engine.did[1:]} == {suspends}
        done = len(engine.did)
        assert len(engine.look().did) == done
        # The queue was late to know of it.
        engine.object(suspended=False).look()
        assert engine.did[done:] == [suspends]
        done = len(engine.did)
        engine.spec(suspend=False)
        assert engine.did[done:] == [resumes]
        assert engine.phase in ("Pending", "Running")


def test_a_silent_engine_is_reported_after_a_minute() -> None:
    """With the cure, and what its status says; a pod ends that."""
    engine = Engine().look()
    assert engine.outcome.after == FIRST_LOOK
    assert engine.later(50).outcome.after == pytest.approx(SILENCE - 50 + 0.1)
    assert engine.later(SILENCE - 51).status.phase == "Pending"
    assert not any(each.reason == "BackendSilent" for each in engine.told)
    engine.later(2)
    assert engine.condition("Created").reason == "BackendSilent"
    mentions(engine.status.message, "the training operator", "kubectl describe pytorchjob mnist")
    assert sum(each.reason == "BackendSilent" for each in engine.later(60).told) == 1
    engine.reports("Created", "Made", "the job is created")
    mentions(engine.status.message, "the job is created", "read its log")
    assert engine.pod("master-0").look().condition("Created").reason != "BackendSilent"


def test_any_warning_is_the_reason_while_there_are_no_pods() -> None:
    """What the engine cannot make may be something else; the reason of pods comes first."""
    engine = Engine().look()
    raw = {"type": "Warning", "reason": "HeadlessServiceCreationFailed", "message": "no address"}
    other = engine_event({**raw, "lastTimestamp": "2026-11-24T09:00:04Z"})
    assert other is not None
    engine.events = (other,)
    assert engine.later(FIRST_LOOK).condition("Created").reason == "BackendWarning"
    mentions(engine.status.message, "HeadlessServiceCreationFailed: no address")
    engine.events = (EngineEvent("Rejected", "by p1", "2026-11-24T09:00:03Z"), other)
    assert engine.later(FIRST_LOOK).condition("Created").reason == "Rejected"
    engine.events = (other,)
    assert engine.pod("master-0").look().condition("Created").reason == "Creating"


@pytest.mark.parametrize(
    ("words", "kind", "reason", "cure"),
    [
        ('admission webhook "w" denied the request: p1', "FailedCreatePod", "Rejected", "policy"),
        ("Policy p1 rejects it", "PlacementRejected", "Rejected", "policy"),
        ("pods is forbidden: exceeded quota: q", "FailedCreatePod", "QuotaExceeded", "quota"),
        ('violates PodSecurity "restricted"', "FailedCreate", "PodSecurity", "template"),
        ("no such service account", "FailedCreate", "FailedCreate", "message"),
        ("worker pod created failed: denied the request: p", "MPIJobFailed", "Rejected", "policy"),
        ("Found validation errors: spec.x", "ValidationError", "Invalid", "other fields"),
    ],
)
def test_rejected_pods_are_reported_with_the_reason_and_the_cure(
    words: str, kind: str, reason: str, cure: str
) -> None:
    """From the Events of the object."""
    engine = Engine().look()
    raw = {
        "type": "Warning",
        "reason": kind,
        "message": words,
        "lastTimestamp": "2026-11-24T09:00:02Z",
    }
    event = engine_event(raw)
    assert event is not None
    assert engine_event({**raw, "type": "Normal"}) is None
    # The MPI operator has one reason for two things.
    assert engine_event({**raw, "reason": "MPIJobFailed", "message": "has failed"}) is None
    engine.events = (event,)
    assert engine.status.phase == "Pending"
    assert engine.later(FIRST_LOOK).condition("Created").reason == reason
    mentions(engine.status.message, "PyTorchJob mnist", "3 pods", words, cure)
    assert engine.pod("master-0").look().condition("Created").reason == reason
    mentions(engine.status.message, "2 pods")
    engine.later(30)
    assert sum(each.reason == reason for each in engine.told) == 1
    for name in ("worker-0", "worker-1"):
        engine.pod(name)
    assert engine.look().condition("Created").reason == "AllCreated"
    assert engine.outcome.after is None


def test_an_event_from_before_all_pods_were_there_is_no_reason() -> None:
    """A pod that is replaced later is not rejected; one that is rejected then is."""
    engine = Engine().look()
    engine.events = (EngineEvent("QuotaExceeded", "exceeded quota: few", to_second(engine.now)),)
    assert engine.later(3).condition("Created").reason == "QuotaExceeded"
    engine.runs().later(60)
    engine.goes("worker-1").look().later(3)
    assert engine.condition("Created").reason == "Creating"
    engine.events += (EngineEvent("Rejected", "denied the request", to_second(engine.now)),)
    assert engine.later(60).condition("Created").reason == "Rejected"


def edited(engine: Engine, change: Callable[[Any], object]) -> str:
    """What is said of the rendered object after this change of its replicas."""
    made = render_delegated(engine.run, engine.engine)
    owner = {"kind": "Run", "apiVersion": "fairlead.dev/v1alpha1", "name": "mnist", "uid": UID}
    made["metadata"] |= {"uid": "u", "ownerReferences": [{**owner, "controller": True}]}
    made = json.loads(json.dumps(made))
    change(made["spec"]["pytorchReplicaSpecs"])
    first, later = (
        engine.engine.read({**made, "metadata": {**made["metadata"], "generation": generation}})
        for generation in (1, 2)
    )
    assert first is not None
    assert later is not None
    assert describe_edits(engine.run, engine.engine, first) == ""
    return describe_edits(engine.run, engine.engine, later)


def test_what_others_change_in_the_object_is_reported_and_left() -> None:
    """A count or a template; what they add is no change. Nothing is done about it."""
    engine = Engine().runs()
    done = len(engine.did)
    said = edited(engine, lambda each: each["Worker"].update(replicas=5))
    assert said == "spec.pytorchReplicaSpecs.Worker.replicas: 5, the Run wants 2"
    engine.observed = replace(engine.observed, edits=said)
    engine.look()
    assert engine.condition("Edited").status == "True"
    mentions(engine.condition("Edited").message, said, "kubectl delete pytorchjob mnist")
    assert engine.later(9).status.phase == "Running"
    assert [each.reason for each in engine.told].count("ObjectEdited") == 1
    assert len(engine.did) == done
    engine.observed = replace(engine.observed, edits="")
    assert engine.look().condition("Edited").status == "False"

    def add(replicas: Any) -> None:
        template = replicas["Worker"]["template"]
        template["spec"]["nodeSelector"] = {"flavor": "spot"}
        template["spec"]["tolerations"] = [{"operator": "Exists"}]
        template["metadata"]["labels"]["added"] = "yes"

    assert edited(engine, add) == ""
    image = edited(
        engine, lambda each: each["Master"]["template"]["spec"]["containers"][0].pop("image")
    )
    mentions(image, "Master.template.spec.containers[0].image: nothing")
    mentions(edited(engine, dict.clear), "spec.pytorchReplicaSpecs.Master: nothing")


def test_a_refusal_is_in_the_status_and_the_object_is_tried_again() -> None:
    """Nothing is lost: it is created as soon as it may be."""
    engine = Engine()
    refused = Refusal("mnist", "BackendMissing", "the cluster has no PyTorchJob")
    engine.observed = EngineObserved(refusals=(refused,))
    engine.look()
    assert engine.condition("Created").reason == "BackendMissing"
    assert engine.phase == "Pending"
    engine.observed = EngineObserved()
    assert engine.runs().status.phase == "Running"


def test_an_object_that_another_client_deleted_is_made_again_after_a_live_read() -> None:
    """The cache alone is not evidence."""
    engine = Engine().runs()
    engine.observed = EngineObserved()
    outcome = reconcile_delegated(engine.run, engine.engine, engine.observed, engine.now)
    assert outcome == Outcome(engine.status, look_up=frozenset({"mnist"}))
    assert engine.look().did == [CreateEngineObject(), CreateEngineObject()]
    (told,) = [each for each in engine.told if each.reason == "BackendObjectReplaced"]
    mentions(told.message, "PyTorchJob mnist", "was deleted", "starts again")


def test_an_object_is_made_again_once_nothing_is_left_of_the_deleted_one() -> None:
    """Its engine would take that for its own, and see it vanish."""
    engine = Engine().runs()
    made = list(engine.did)
    engine.observed = EngineObserved()
    engine.live = EngineObserved(left="pod mnist-worker-0")
    engine.look()
    assert engine.did == made
    mentions(engine.status.message, "pod mnist-worker-0", "deleted PyTorchJob mnist")
    assert engine.outcome.after is not None
    engine.live = None
    engine.observed = EngineObserved()
    engine.look()
    assert engine.did == [*made, CreateEngineObject()]
    assert [each.reason for each in engine.told].count("BackendObjectReplaced") == 1


def test_a_first_object_and_one_after_a_suspension_replace_none() -> None:
    """Nor does one that was refused before."""
    engine = Engine()
    engine.observed = replace(engine.observed, refusals=(Refusal("mnist", "Forbidden", "no"),))
    engine.look().later(5)
    engine.observed = EngineObserved()
    engine.runs()
    assert all(each.reason != "BackendObjectReplaced" for each in engine.told)


def test_a_lost_node_is_no_failure() -> None:
    """As natively: the pod's exit code does not decide."""
    engine = Engine(backoffLimit=0).runs()
    gone = NodeHealth("n", uid="")
    engine.pod("worker-0", running_since=to_second(engine.now)).fails("worker-0", 255)
    engine.observed = replace(engine.observed, nodes={"n": gone})
    engine.look()
    assert engine.status.disruptions == 1
    assert engine.role().failed == 0


def test_counted_pods_that_are_gone_are_remembered_up_to_a_limit() -> None:
    """Another process may still know them."""
    engine = Engine().runs()
    old = tuple(f"old-{n}" for n in range(MOST_GONE + 20))
    roles = {
        **engine.status.replicas,
        "worker": engine.role().model_copy(update={"counted_uids": old}),
    }
    status = engine.status.model_copy(update={"replicas": roles})
    engine.run = engine.run.model_copy(update={"status": status})
    engine.look()
    assert engine.role().counted_uids == old[-MOST_GONE:]


def test_a_run_that_is_being_deleted_is_left_to_the_garbage_collector() -> None:
    """Its object goes with it, and its status says so."""
    engine = Engine().runs()
    metadata = engine.run.metadata.model_copy(update={"deletion_timestamp": "2026-11-24T09:00:00Z"})
    engine.run = engine.run.model_copy(update={"metadata": metadata})
    assert engine.look().did == [CreateEngineObject()]
    assert engine.status.message.startswith("is being deleted; ")


def test_the_object_has_what_the_engine_acts_on_and_not_what_fairlead_acts_on() -> None:
    """The time to live would make the Run create it again."""
    engine = Engine(ttlSecondsAfterFinished=9, backoffLimit=2, activeDeadlineSeconds=7)
    metadata = engine.run.metadata.model_copy(update={"labels": {"kueue.x-k8s.io/queue-name": "q"}})
    run = engine.run.model_copy(update={"metadata": metadata})
    made = render_delegated(run, engine.engine)
    assert made["spec"]["runPolicy"] == {"cleanPodPolicy": "Running"}
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "q"
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (UID, True)
    for replica in made["spec"]["pytorchReplicaSpecs"].values():
        labels = replica["template"]["metadata"]["labels"]
        # The webhook is sent pods with the label of the run, whichever systems it was set up for.
        assert (labels["fairlead.dev/run"], labels["fairlead.dev/run-uid"]) == ("mnist", UID)


def test_cleaning_that_is_written_is_handed_down() -> None:
    """Unset it is Running, as natively."""
    engine = Engine(cleanPodPolicy="All")
    made = render_delegated(engine.run, engine.engine)
    assert made["spec"]["runPolicy"] == {"cleanPodPolicy": "All"}


def test_the_backends_of_the_model_are_those_of_the_table() -> None:
    """And native."""
    field = RunSpec.model_fields["backend"].annotation
    known = set(getattr(field, "__args__", ()))
    assert known == {"native", *(each.backend for each in ENGINES.values())}
    assert known - {"native"} <= set(BACKENDS)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"framework": "ray", "replicas": {"head": {}}}, "spec.framework"),
        (
            {"framework": "mxnet", "replicas": {"scheduler": {}, "server": {}, "worker": {}}},
            "spec.framework",
        ),
        ({"framework": None, "replicas": None}, "spec.framework"),
        ({"backend": "dask", "framework": "pytorch", "replicas": None}, "spec.framework"),
        ({"backend": "dask", "framework": None, "replicas": None}, "spec.framework"),
    ],
)
def test_a_framework_without_an_engine_is_a_problem_with_a_cure(
    spec: dict[str, Any], path: str
) -> None:
    """The guard of authors denies such a Run; without the guard it fails."""
    run = a_run("mnist", {"backend": "kubeflow", "template": spec_of(containers("main")), **spec})
    assert find_engine(run) is None
    (problem,) = undelegated_problems(run)
    assert problem.startswith(f"{path}: ")
    mentions(problem, "native")


ROLES = {
    ("kubeflow", "tensorflow"): ("chief", "worker", "ps", "evaluator"),
    ("kubeflow", "pytorch"): ("master", "worker"),
    ("kubeflow", "paddle"): ("server", "worker"),
    ("kubeflow", "xgboost"): ("master", "worker"),
    ("kubeflow", "jax"): ("worker",),
    ("kubeflow", "mpi"): ("launcher", "worker"),
    ("jobset", "pytorch"): ("master", "worker"),
    ("jobset", "jax"): ("worker",),
    ("jobset", "tensorflow"): ("chief", "worker", "ps"),
    ("jobset", None): ("worker",),
    ("dask", "dask"): ("scheduler", "worker", "driver"),
}


@pytest.mark.parametrize(("backend", "framework"), ROLES)
@pytest.mark.parametrize("kind", ["job", "experiment", "build"])
def test_policies_match_the_pods_as_those_of_a_native_run(
    backend: str, framework: str | None, kind: str
) -> None:
    """By kind, framework, role, index and coordinator; a label of the template does not win.

    Only JobSet says how many replicas there are, if more than one. Paddle's servers differ: they
    are the operator's masters, which lead. Dask's pods and a launcher have no index. Worker 0 of a
    JobSet leads, also without a framework.
    """
    roles = ROLES[backend, framework]
    several = {role: {"count": 2} for role in roles if role in ("worker", "ps", "server")}
    template = spec_of(containers("main"))
    template["metadata"] = {"labels": {names.KIND: "service"}}
    spec = {
        "kind": kind,
        "framework": framework,
        "replicas": {role: several.get(role, {}) for role in roles},
        "template": template,
    }
    native = plan(a_run("mnist", spec))
    made = delegated_object(a_run("mnist", {**spec, "backend": backend}))
    pods = {}
    for each in pod_templates(Object("run.yaml", made)):
        for index in range(each.count or 1):
            metadata = each.pod(index)["metadata"]
            found = identify(metadata["labels"], {}, {}, led=each.led)
            assert found is not None
            pods[found.role, index if backend == "dask" else found.replica_index] = found
    for role, count in native.gang.counts.items():
        for index in range(count):
            metadata = native.pod(role, index, 0)["metadata"]
            wanted = identify(metadata["labels"], metadata["annotations"], {})
            assert wanted is not None
            if backend != "jobset" or count == 1:
                wanted = wanted._replace(replicas=None)
            if role == "server":
                wanted = wanted._replace(role="master", coordinator=True)
            if backend == "dask" or role == "launcher":
                wanted = wanted._replace(replica_index=None)
            if (backend, framework, index) == ("jobset", None, 0):
                wanted = wanted._replace(coordinator=True)
            there = pods.pop((wanted.role, index if backend == "dask" else wanted.replica_index))
            assert there == wanted
    assert not pods


def test_a_delegated_run_has_no_plan() -> None:
    """Commands that show pods say what shows them."""
    with pytest.raises(InvalidRun) as caught:
        plan(Engine().run)
    mentions(str(caught.value), "spec.backend", "kubeflow", "fairlead preview -o pods")


@pytest.mark.parametrize("key", ENGINES)
def test_each_engine_is_found_by_the_raw_spec(key: str) -> None:
    """Which is all that the cache of Runs reads."""
    backend, _, framework = key.partition("/")
    assert engine_key({"backend": backend, "framework": framework}) == key
    assert engine_key({"framework": framework}) == ""
