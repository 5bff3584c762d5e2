"""Runs that are suspended, wait in a queue, are over or deleted: by what is kept of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bench.stored_runs import measure
from tests.controller.runs import TEMPLATE, Json, raw_run, stored_run
from tests.controller.test_queues import NAME, SERVED, raw_workload
from tests.controller.test_reconciler import Stage
from tests.wording import mentions
from webhook import names
from webhook.controller.stored_run import StoredRun
from webhook.run.queue import LASTING_PAUSE_SECONDS

LONG = "x" * 100_000
LARGE: Json = {**TEMPLATE, "metadata": {"annotations": {"long": LONG}}}
SUSPENDED: Json = {"phase": "Suspended"}
DONE: Json = {"phase": "Succeeded", "completionTime": "2026-11-21T20:00:00Z"}


def in_queue(stage: Stage, *workloads: Json, **spec: Any) -> Json:
    """The Run waits in a queue, whose Workloads these are; the whole Run."""
    raw = raw_run(status=SUSPENDED, template=LARGE, **spec)
    raw["metadata"]["labels"] = {names.KUEUE_QUEUE: "ml"}
    stage.api.answers["get", "v1beta2"] = SERVED
    stage.api.answers["list", "runs"] = {"items": [raw]}
    stage.known.runs.put("lab/mnist", stage.known.runs.keep(raw))
    for each in workloads:
        name = each["metadata"]["name"]
        stage.known.workloads.put(f"lab/{name}", stage.known.workloads.keep(each))
    stage.known.workloads.replace(stage.known.workloads.items(), "1")
    stage.known.flavors.replace({}, "1")
    return raw


def settled(stage: Stage) -> StoredRun:
    """The Run once nothing changes any more."""
    for _ in range(3):
        stage.look()
    stage.api.calls.clear()
    stage.look()
    found = stage.known.runs.get("lab/mnist")
    assert found is not None
    return found


@pytest.mark.parametrize("status", [DONE, SUSPENDED], ids=["over", "suspended"])
@pytest.mark.parametrize("engine", [{}, {"backend": "kubeflow"}], ids=["native", "kubeflow"])
def test_nothing_is_read_of_a_run_that_stays_idle(status: Json, engine: Json) -> None:
    """A controller that starts beside ten thousand asks for none of them."""
    stage = Stage(status=status, suspend=True, template=LARGE, **engine)
    assert len(settled(stage).text) < 1500
    assert stage.api.calls == []
    assert stage.status["phase"] == status["phase"]


def test_a_run_that_is_over_is_deleted_in_time() -> None:
    """The time may be changed at its end."""
    stage = Stage(status=DONE, template=LARGE)
    stage.look()
    raw = raw_run(status=DONE, template=LARGE, version=150, ttlSecondsAfterFinished=1200)
    stage.known.runs.put("lab/mnist", stage.known.runs.keep(raw))
    stage.look()
    assert stage.look() == 300
    raw = raw_run(status=DONE, template=LARGE, version=160, ttlSecondsAfterFinished=0)
    stage.known.runs.put("lab/mnist", stage.known.runs.keep(raw))
    stage.api.answers["delete", "*"] = {"kind": "Status"}
    stage.look()
    assert stage.api.named("delete") == ["mnist"]
    assert stage.api.named("list") == []


def test_a_run_that_is_resumed_is_whole_at_once() -> None:
    """The watch delivers all of it with the change."""
    stage = Stage(status=SUSPENDED, suspend=True, template=LARGE)
    raw = raw_run(status=SUSPENDED, template=LARGE, version=150)
    stage.known.runs.put("lab/mnist", stage.known.runs.keep(raw))
    stage.look()
    assert stage.api.named("list") == []
    assert stage.status["phase"] == "Pending"


def test_a_run_that_waits_is_read_when_it_is_put_into_its_queue_and_when_it_is_admitted() -> None:
    """Not while it waits. Its pods have all that its author wrote."""
    stage = Stage()
    in_queue(stage)
    stage.look()
    assert stage.api.named("list") == ["runs"]
    tried = [body for body in stage.api.bodies if body and body.get("kind") == "Pod"]
    assert [each["metadata"]["annotations"]["long"] for each in tried] == [LONG] * len(tried)
    assert tried
    in_queue(stage, raw_workload(7))
    settled(stage)
    assert "list" not in {verb for verb, _ in stage.api.calls}
    admitted = [{"type": "Admitted", "status": "True", "reason": "Admitted"}]
    in_queue(stage, raw_workload(8, conditions=admitted))
    stage.api.answers["get", NAME] = raw_workload(8, conditions=admitted)
    for _ in range(2):
        # Its pods are tried with its quota first.
        stage.look()
    assert stage.api.named("list") == ["runs"] * 2
    assert stage.status["phase"] == "Pending"


def test_a_run_that_is_suspended_when_it_is_admitted_has_no_pods() -> None:
    """What is read is newer than what the watch has delivered."""
    stage = Stage()
    admitted = [{"type": "Admitted", "status": "True", "reason": "Admitted"}]
    in_queue(stage, raw_workload(8, conditions=admitted))
    raw = raw_run(status=SUSPENDED, template=LARGE, suspend=True, version=90)
    stage.api.answers["list", "runs"] = {"items": [raw]}
    stage.api.answers["delete", "*"] = {"kind": "Status"}
    stage.look()
    assert stage.api.named("create") == []
    assert stage.status["phase"] == "Suspended"


@pytest.mark.parametrize("there", [[], [raw_run(name="mnist") | {"spec": {}}]])
def test_a_run_that_is_gone_when_it_is_admitted_is_left_alone(there: list[Json]) -> None:
    """Another one may have its name."""
    stage = Stage()
    in_queue(stage)
    for each in there:
        each["metadata"]["uid"] = "another"
    stage.api.answers["list", "runs"] = {"items": there}
    assert stage.look() is None
    assert {verb for verb, _ in stage.api.calls} == {"get", "list"}


def test_what_only_a_change_can_help_is_looked_at_seldom() -> None:
    """Each look reads the whole Run."""
    stage = Stage()
    in_queue(stage, environment={"labels": {names.KUEUE_QUEUE: "other"}})
    stage.look()
    assert stage.look() == LASTING_PAUSE_SECONDS
    mentions(stage.status["message"], "Kueue would hold each pod by itself")


def test_the_service_of_a_suspended_notebook_is_made_again() -> None:
    """By the whole Run, and the address stays."""
    changes: Json = {"framework": None, "replicas": None, "kind": "notebook", "suspend": True}
    changes["ports"] = [{"port": 8888}]
    status = {**SUSPENDED, "address": "http://mnist.lab.svc:8888"}
    stage = Stage(status=status, template=LARGE, **changes)
    raw = raw_run(status=status, template=LARGE, **changes)
    stage.api.answers["list", "runs"] = {"items": [raw]}
    stage.look()
    assert stage.api.calls[:2] == [("list", "runs"), ("create", "mnist")]
    assert stage.status["phase"] == "Suspended"


def test_a_run_that_is_not_understood_is_kept_whole() -> None:
    """What this version does not know may be where it keeps nothing."""
    condition = {"type": "Understood", "status": "False", "reason": "UnknownSpec", "message": ""}
    stored = stored_run(status={**DONE, "conditions": [condition]}, template=LARGE)
    assert not stored.reduced
    assert LONG.encode() in stored.text


def test_a_run_that_failed_because_of_its_template_is_deleted_in_time() -> None:
    """Like any other that is over."""
    status = {**DONE, "phase": "Failed"}
    stage = Stage(status=status, template={"spec": 7}, ttlSecondsAfterFinished=0)
    stage.api.answers["delete", "*"] = {"kind": "Status"}
    stage.look()
    assert stage.api.named("delete") == ["mnist"]


def test_idle_runs_take_no_memory() -> None:
    """However long the texts are that their author gave them."""
    for phase in ("Suspended", "Succeeded"):
        found = measure(250_000, 150, phase)
        assert found.held - found.before < 15
