"""Doing what was decided, on an API server that refuses."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from tests.controller.runs import UID, Api, Json, raw_pod, raw_run, refused, run
from tests.run import whole_runs
from webhook.controller.action_executor import WHILE_OTHERS_WAIT, ActionExecutor, Done
from webhook.controller.observed_state import ObservedState
from webhook.controller.owned_objects import Objects, created_for_runs
from webhook.controller.queues import Trials
from webhook.controller.refusals import Refusals
from webhook.controller.workload_executor import WorkloadExecutor
from webhook.errors import NotLeading
from webhook.run.actions import (
    Action,
    CreateConfigMap,
    CreateDeployment,
    CreateKeys,
    CreatePod,
    CreateService,
    DeleteDeployment,
    DeletePod,
    DeleteRun,
    ForceDeletePod,
    RestoreKeys,
    ScaleDeployment,
)
from webhook.run.observed import Observed, OwnedDeployment, Refusal
from webhook.run.plan import plan

QUOTA = refused(403, "Forbidden", "exceeded quota: small")
MPI: dict[str, Any] = {"framework": "mpi", "replicas": {"launcher": {}, "worker": {"count": 2}}}


class Counted:
    """Counts what is done."""

    def __init__(self) -> None:
        self.all: Counter[str] = Counter()

    def pod_created(self) -> None:
        self.all["created"] += 1

    def pod_deleted(self) -> None:
        self.all["deleted"] += 1

    def creation_refused(self, reason: str) -> None:
        self.all[reason] += 1


class Stage:
    """A doer whose clock stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 100.0
        self.api, self.known, self.counted = Api(), ObservedState(), Counted()
        self.refusals = Refusals(clock=lambda: self.now, random=Random(1))
        objects = Objects(self.api.client, self.api.writer, self.known)
        self.others: set[str] = set()
        self.doer = ActionExecutor(
            objects,
            self.refusals,
            self.known.memory,
            self.counted,
            WorkloadExecutor(
                self.api.client, self.api.writer, self.known, objects, Trials(self.known)
            ),
            others_wait=lambda namespace: bool(self.others - {namespace}),
        )

    def do(self, *actions: Action, over: bool = False, **spec: Any) -> Done:
        whole = run(**spec)
        observed = Observed(deployment=OwnedDeployment("d", 1, 1, 1, 1, 1))
        planned = None if over else plan(whole)
        done = asyncio.run(self.doer.carry_out(whole, planned, observed, actions))
        self.refusals.note(UID, done.made, done.refused)
        return done


def workers(count: int) -> Sequence[CreatePod]:
    return [CreatePod("worker", index, 0) for index in range(count)]


def test_what_pods_need_is_there_before_the_first_of_them() -> None:
    """Whatever the order in which the actions come."""
    stage = Stage()
    pod = CreatePod("worker", 0, 0)
    done = stage.do(pod, CreateKeys(), CreateConfigMap(), CreateService(), **MPI)
    assert stage.api.named("create") == [
        done.ssh_secret,
        "mnist-rendezvous",
        "mnist",
        "mnist-worker-0",
    ]
    assert (done.error, done.refused, done.left, done.acted) == (None, [], None, True)
    assert len(done.made) == 4
    assert stage.counted.all == {"created": 1}


@pytest.mark.parametrize("raw", whole_runs.ALL, ids=lambda raw: key_of(raw["spec"]))
def test_an_author_is_asked_for_exactly_what_the_run_becomes(raw: Json) -> None:
    """No right too few, and none that other frameworks need."""
    stage, spec = Stage(), {"framework": None, "replicas": None, **raw["spec"]}
    role = next(iter(spec.get("replicas") or {}), "")
    serves = spec.get("kind") == "notebook"
    last = CreateDeployment() if serves else CreatePod(role or "master", 0, 0)
    keys = [CreateKeys()] if plan(run(**spec)).needs.keys else []
    stage.do(*keys, CreateConfigMap(), CreateService(), last, **spec)
    created = {f"{body['kind'].lower()}s" for body in stage.api.bodies}
    assert created == {resource for _, resource in created_for_runs()[key_of(spec)]}


def key_of(spec: Json) -> str:
    """The key of a Run in the guard's table."""
    return f"{spec.get('backend', 'native')}/{spec.get('framework') or spec.get('kind', '')}"


@pytest.mark.parametrize("others", [set(), {"lab"}])
def test_a_large_run_is_done_at_once_while_no_other_namespace_waits(others: set[str]) -> None:
    """Runs of its own namespace come after it."""
    stage = Stage()
    stage.others = others
    done = stage.do(*workers(2 * WHILE_OTHERS_WAIT))
    assert (len(done.made), done.cut) == (2 * WHILE_OTHERS_WAIT, False)


def test_while_other_namespaces_wait_a_part_is_done() -> None:
    """The rest is for the next look, and pods are created once all that go have gone."""
    stage = Stage()
    stage.others = {"small"}
    done = stage.do(*workers(2 * WHILE_OTHERS_WAIT))
    assert (len(done.made), done.cut, done.error) == (WHILE_OTHERS_WAIT, True, None)
    gone = [DeletePod(f"mnist-worker-{n}", f"uid-{n}") for n in range(2 * WHILE_OTHERS_WAIT)]
    done = stage.do(*gone, *workers(1))
    assert (len(stage.api.named("delete")), done.made) == (WHILE_OTHERS_WAIT, set())
    assert done.cut


def test_after_a_refusal_nothing_more_is_begun() -> None:
    """It would meet the next pod too; one was under way, for the first is tried alone."""
    stage = Stage()
    stage.api.answers["create", "*"] = QUOTA
    done = stage.do(*workers(50))
    assert len(stage.api.calls) == len(done.refused) == 1
    assert stage.counted.all == {"QuotaExceeded": 1}


def test_keys_that_others_made_are_not_used() -> None:
    """Each attempt has a name that was never used, and only one that succeeds is told."""
    stage = Stage()
    stage.api.answers["create", "*"] = refused(409, "AlreadyExists")
    for _ in range(3):
        done = stage.do(CreateKeys(), CreateConfigMap(), **MPI)
        assert done.ssh_secret is None
        stage.now += 1000.0
    taken = stage.api.named("create")
    assert len(set(taken)) == len(taken) == 3
    (refusal,) = stage.refusals.refusals_of(UID)
    assert (refusal.name, refusal.reason) == ("mnist-ssh-", "NameTaken")
    del stage.api.answers["create", "*"]
    done = stage.do(CreateKeys(), **MPI)
    assert done.ssh_secret not in (None, *taken)
    assert stage.refusals.refusals_of(UID) == ()


def test_refused_keys_are_one_refusal_however_often_they_are_tried() -> None:
    """Their name is another one each time, and is in the API server's words."""
    stage = Stage()
    for _ in range(3):
        stage.api.answers["create", "*"] = QUOTA
        done = stage.do(CreateKeys(), **MPI)
        assert done.refused == [Refusal("mnist-ssh-", "QuotaExceeded", "exceeded quota: small")]
        assert stage.do(CreateKeys(), **MPI).left is not None
        stage.now += 1000.0
    assert len(stage.refusals.refusals_of(UID)) == 1


@pytest.mark.parametrize("answer", [None, refused(409, "AlreadyExists"), QUOTA])
def test_pods_do_not_wait_for_restored_keys(answer: Exception | None) -> None:
    """A full quota refuses the Secret although it is there; and it says nothing about the pods."""
    stage = Stage()
    secret = plan(run(**MPI)).keys_secret
    assert secret
    if answer:
        stage.api.answers["create", secret] = answer
    done = stage.do(RestoreKeys(), *workers(1), **MPI)
    assert stage.api.named("create") == [secret, "mnist-worker-0"]
    assert (done.made, done.refused, done.error) == ({"mnist-worker-0"}, [], None)
    assert stage.refusals.refusals_of(UID) == ()


def test_restored_keys_end_no_pause() -> None:
    """That they are there says nothing about pods, which were refused."""
    stage = Stage()
    stage.api.answers["create", "mnist-worker-0"] = QUOTA
    stage.do(*workers(1), **MPI)
    done = stage.do(RestoreKeys(), *workers(1), **MPI)
    assert [one.name for one in stage.refusals.refusals_of(UID)] == ["mnist-worker-0"]
    assert done.left is not None


def test_pods_are_created_more_and_more_at_once() -> None:
    """As long as all goes well; a refusal on the way costs what was under way, and no more."""
    stage = Stage()
    stage.api.answers["create", "mnist-worker-20"] = QUOTA
    done = stage.do(*workers(100))
    assert len(done.refused) == 1
    assert 20 <= len(done.made) < 60
    assert stage.counted.all["created"] == len(done.made)


def test_a_name_that_is_taken_stops_no_other() -> None:
    """It is waited for by itself."""
    stage = Stage()
    stage.api.answers["create", "mnist-worker-1"] = refused(409, "AlreadyExists")
    stage.api.answers["get", "mnist-worker-1"] = raw_pod(1, run_uid="other")
    done = stage.do(*workers(10))
    assert [one.reason for one in done.refused] == ["NameTaken"]
    assert len(done.made) == 9
    again = stage.do(*workers(10))
    assert stage.api.named("create").count("mnist-worker-1") == 1
    assert again.left is not None
    assert len(again.made) == 9


def test_while_creations_are_held_back_the_rest_is_done() -> None:
    """A deletion may be what frees the quota."""
    stage = Stage()
    stage.api.answers["create", "*"] = QUOTA
    stage.do(*workers(1))
    stage.api.answers["delete", "*"] = raw_pod(5)
    done = stage.do(DeletePod("mnist-worker-5", "uid-5"), CreateService(), *workers(1))
    assert stage.api.calls[1:] == [("delete", "mnist-worker-5")]
    assert done.left is not None
    assert done.left > 0
    assert stage.counted.all["deleted"] == 1
    stage.now += 60
    del stage.api.answers["create", "*"]
    assert stage.do(CreateService(), *workers(1)).made == {"mnist", "mnist-worker-0"}


def test_without_its_service_a_run_gets_no_pods() -> None:
    """Nor the Service without what comes before it."""
    stage = Stage()
    stage.api.answers["create", "mnist-rendezvous"] = QUOTA
    done = stage.do(CreateConfigMap(), CreateService(), CreatePod("worker", 0, 0), **MPI)
    assert stage.api.named("create") == ["mnist-rendezvous"]
    assert [one.name for one in done.refused] == ["mnist-rendezvous"]


@pytest.mark.parametrize("trouble", [refused(503), refused(None, "Timeout"), NotLeading("lost")])
def test_an_error_is_reported_and_nothing_else_is_started(trouble: Exception) -> None:
    """What was made by then is made."""
    stage = Stage()
    stage.api.answers["create", "mnist-worker-1"] = trouble
    done = stage.do(CreateService(), *workers(60))
    assert done.error is trouble
    assert {"mnist", "mnist-worker-0"} <= done.made
    assert len(done.made) < 40
    stage.api.answers["create", "mnist"] = trouble
    calls = len(stage.api.calls)
    assert stage.do(CreateService(), *workers(60)).error is trouble
    assert len(stage.api.calls) == calls + 1


def test_deletions_run_concurrently_and_a_missing_pod_is_not_an_error() -> None:
    """All of a run's at once, when it is suspended."""
    stage = Stage()
    for index in range(30):
        stage.api.answers["delete", f"mnist-worker-{index}"] = raw_pod(index)
    actions = [DeletePod(f"mnist-worker-{index}", f"uid-{index}") for index in range(40)]
    done = stage.do(*actions)
    assert done.error is None
    assert len(stage.api.named("delete")) == 40
    assert stage.counted.all == {"deleted": 30}


def test_a_pod_whose_machine_is_off_is_deleted_without_its_kubelet() -> None:
    """Its kubelet would never say that the pod has ended."""
    stage = Stage()
    stage.api.answers["delete", "mnist-worker-0"] = raw_pod(0)
    stage.do(ForceDeletePod("mnist-worker-0", "uid-0"))
    [options] = stage.api.bodies
    assert (options["gracePeriodSeconds"], options["preconditions"]) == (0, {"uid": "uid-0"})
    assert stage.counted.all == {"deleted": 1}


def test_a_deployment_is_made_scaled_and_deleted() -> None:
    """It has the run's name."""
    stage = Stage()
    spec: Json = {"framework": None, "replicas": None, "kind": "notebook", "ports": [{"port": 80}]}
    stage.api.answers["patch", "mnist"] = {**raw_run(), "spec": {"replicas": 0}}
    stage.api.answers["delete", "mnist"] = {"kind": "Status"}
    stage.do(CreateService(), CreateDeployment(), ScaleDeployment(0), DeleteDeployment(), **spec)
    verbs = [verb for verb, name in stage.api.calls if name == "mnist"]
    assert verbs == ["create", "create", "patch", "delete"]
    assert stage.api.bodies[2] == {"metadata": {"uid": "d"}, "spec": {"replicas": 0}}
    assert stage.api.bodies[3]["preconditions"] == {"uid": "d"}


def test_of_a_run_that_is_over_nothing_is_made() -> None:
    """It has no plan any more; it can be cleaned away and deleted."""
    stage = Stage()
    stage.api.answers["delete", "*"] = {"kind": "Status"}
    stage.do(CreateService(), *workers(2), DeleteRun(), over=True)
    assert stage.api.calls == [("delete", "mnist")]
