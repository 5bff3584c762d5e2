"""Workloads of Runs in queues, where the API server says no; with Kueue: tests/operators."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.controller.runs import TEMPLATE, UID, Api, Json, owner_reference, raw_run, refused
from tests.wording import mentions
from webhook import names
from webhook.controller.observed_state import ObservedState
from webhook.controller.owned_objects import Objects
from webhook.controller.queues import Queues
from webhook.controller.stored_run import store
from webhook.errors import ClusterError
from webhook.kube.watches import Watches
from webhook.run.actions import CreateWorkload, DeleteWorkload, WriteWorkload
from webhook.run.observed import Refusal
from webhook.run.plan import plan
from webhook.run.queue_state import Queueing
from webhook.run.reading import read_run

NAME = f"run-mnist-{UID[:8]}"
SERVED: Json = {"resources": [{"name": "workloads"}]}


def raw_workload(version: int, **status: Any) -> Json:
    """The Run's Workload as the API server keeps it."""
    return {
        "metadata": {
            "name": NAME,
            "namespace": "lab",
            "uid": "w",
            "resourceVersion": str(version),
            "ownerReferences": [owner_reference(UID)],
        },
        "spec": {"queueName": "ml"},
        "status": status,
    }


class Stage:
    """A Run in a queue, and its Workload if one is given."""

    def __init__(self, *workloads: Json, **spec: Any) -> None:
        raw = raw_run(**spec)
        raw["metadata"]["labels"] = {names.KUEUE_QUEUE: "ml"}
        self.stored = store(raw)
        self.run = read_run(raw).valid_run()
        self.now = 100.0
        self.api, self.known = Api({("get", "v1beta2"): SERVED}), ObservedState()
        kept = {f"lab/{NAME}": self.known.workloads.keep(each) for each in workloads}
        self.known.workloads.replace({key: each for key, each in kept.items() if each}, "1")
        self.known.flavors.replace({}, "1")
        self.known.runs.replace({"lab/mnist": self.stored}, "1")
        objects = Objects(self.api.client, self.api.writer, self.known)
        self.queues = Queues(
            Watches(self.api.client), self.api.writer, self.known, objects, clock=lambda: self.now
        )

    def observe(self) -> Queueing:
        return asyncio.run(self.queues.observe(self.stored, plan(self.run)))

    def do(self, action: CreateWorkload | WriteWorkload) -> Refusal | None:
        return asyncio.run(self.queues.carry_out(self.run, plan(self.run), action))


def test_what_would_be_rejected_takes_no_quota() -> None:
    """The dry run of a pod is rejected, and no Workload is made."""
    stage = Stage()
    stage.api.answers["create", NAME] = refused(
        403, "Forbidden", "pods is forbidden: exceeded quota: x"
    )
    found = stage.do(CreateWorkload("ml"))
    assert found is not None
    assert (found.name, found.reason) == ("mnist-worker-0", "QuotaExceeded")
    assert len(stage.api.calls) == 1


def test_a_workload_has_a_priority_in_any_case() -> None:
    """Kueue's API of pending workloads reads it without a look (newPendingWorkload, 0.17.0)."""
    stage = Stage()
    assert stage.do(CreateWorkload("ml")) is None
    assert stage.api.bodies[-1]["spec"]["priority"] == 0


def test_more_sets_of_pods_than_kueue_takes_are_named() -> None:
    """Each replica with an override is one."""
    own = [{"index": at, "resources": {}} for at in range(8)]
    stage = Stage(replicas={"worker": {"count": 9, "byIndex": own}})
    found = stage.do(CreateWorkload("ml"))
    assert found is not None
    mentions(found.message, "8 sets of pods at most", "the run has 9", "worker-7", "byIndex")
    assert stage.api.calls == []


def test_what_has_changed_meanwhile_is_not_written() -> None:
    """It is a conflict, after which the newer one is known."""
    stage = Stage(raw_workload(7))
    stage.api.answers["get", NAME] = raw_workload(8)
    with pytest.raises(ClusterError) as raised:
        stage.do(WriteWorkload(NAME, "w", "7", ()))
    assert raised.value.status == 409
    assert stage.api.named("replace") == []
    known = stage.known.workload_of("lab", UID)
    assert known is not None
    assert known.version == "8"


def test_the_position_is_told_where_kueue_serves_it_and_asked_for_seldom() -> None:
    """Kueue counts from 0 (apis/visibility/v1beta2, PendingWorkload)."""
    stage = Stage(raw_workload(7))
    assert stage.observe().position is None
    stage.now += 11
    pending = {"metadata": {"name": NAME}, "positionInLocalQueue": 0, "positionInClusterQueue": 2}
    stage.api.answers["get", "pendingworkloads"] = {"items": [pending]}
    assert stage.observe().position == 3
    asked = len(stage.api.calls)
    assert stage.observe().position == 3
    assert len(stage.api.calls) == asked


def test_a_flavor_that_is_not_known_is_no_reason_to_make_pods_without_it() -> None:
    """It may have been created just now. Pods that run need it no more, and are looked after."""
    admitted = [{"type": "Admitted", "status": "True", "reason": "Admitted"}]
    assigned = [{"name": "worker", "flavors": {"cpu": "spot"}}]
    stage = Stage(raw_workload(7, conditions=admitted, admission={"podSetAssignments": assigned}))
    mentions(stage.observe().unknown, "ResourceFlavor spot")
    stage.stored = replace(stage.stored, phase="Running")
    found = stage.observe()
    assert not found.unknown
    mentions(found.withheld, "ResourceFlavor spot")


def test_a_workload_that_was_deleted_is_gone_before_the_watch_says_so() -> None:
    """A Run that is resumed has no quota by it; another Workload of the name gives some."""
    stage = Stage(raw_workload(7))
    assert stage.observe().workload is not None
    asyncio.run(stage.queues.carry_out(stage.run, None, DeleteWorkload(NAME, "w")))
    assert stage.observe() == Queueing()
    again = raw_workload(9)
    again["metadata"]["uid"] = "w2"
    stage.known.workloads.put(f"lab/{NAME}", stage.known.workloads.keep(again), "9")
    assert stage.observe().workload is not None
    stage.known.workloads.put(f"lab/{NAME}", stage.known.workloads.keep(raw_workload(11)), "11")
    assert stage.observe().workload is not None


def test_a_workload_that_is_gone_is_believed_after_a_while() -> None:
    """Kueue's definitions take it with them, and then the run goes on."""
    stage = Stage(status={"phase": "Running", "startTime": "2026-11-29T00:00:00Z"})
    mentions(stage.observe().unknown, "its Workload is gone")
    stage.now += 11
    assert stage.observe() == Queueing()
    stage.api.answers["get", "v1beta2"] = refused(404, "NotFound")
    found = stage.observe()
    assert not found.served
    mentions(found.unknown, "no Kueue")


def test_a_workload_that_lost_its_label_gets_it_again() -> None:
    """The watch says that it is gone: the pods stay, and it is not made a second time."""
    stage = Stage(status={"phase": "Running", "startTime": "2026-11-29T00:00:00Z"})
    stage.api.answers["get", NAME] = raw_workload(8)
    stage.api.answers["patch", NAME] = raw_workload(9)
    mentions(stage.observe().unknown, "its Workload is gone")
    stage.now += 11
    mentions(stage.observe().unknown, "lost its label")
    assert stage.api.bodies[-1]["metadata"]["labels"] == {names.MANAGED_BY: names.MANAGER}
    known = stage.observe().workload
    assert known is not None
    assert known.version == "9"


@pytest.mark.parametrize(
    ("owned", "uid", "deleted"), [(False, UID, [NAME]), (True, UID, []), (False, "another", [])]
)
def test_a_workload_that_its_run_left_behind_is_deleted(
    owned: bool, uid: str, deleted: list[str]
) -> None:
    """Unless the garbage collector does it, or it is another Run's."""
    stage = Stage()
    raw = raw_workload(8)
    raw["metadata"]["labels"] = {names.RUN_UID: uid}
    if not owned:
        del raw["metadata"]["ownerReferences"]
    stage.api.answers["get", NAME] = raw
    stage.api.answers["delete", NAME] = {}
    asyncio.run(stage.queues.release(stage.stored))
    assert stage.api.named("delete") == deleted


def test_a_label_on_the_pods_too_would_hold_each_of_them() -> None:
    """Kueue would make a Workload for every pod beside that of the Run."""
    template = {"metadata": {"labels": {names.KUEUE_QUEUE: "ml"}}, **TEMPLATE}
    mentions(Stage(template=template).observe().unknown, "the pod template has the label", "remove")
