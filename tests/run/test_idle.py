"""What is kept of Runs that are suspended, wait or are over; what that decides: run/machine."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.run.whole_runs import ALL
from webhook import names
from webhook.run.actions import CreateService, DeletePod, Outcome
from webhook.run.idle import PLANNED, is_idle, needs_whole, reduce_run
from webhook.run.json_schema import schema
from webhook.run.model import Run, RunStatus

Json = dict[str, Any]
FIELDS = {
    f"{name}.{field}": about
    for name in ("RunSpec", "ReplicaSpec")
    for field, about in schema()["$defs"][name]["properties"].items()
    if field not in {*PLANNED, "replicas"}
}


def idle(phase: str, *, suspend: bool = False, queued: bool = False, **metadata: Any) -> bool:
    spec = {"suspend": suspend}
    raw: Json = {"metadata": metadata, "spec": spec, "status": {"phase": phase}}
    return is_idle(raw, queued=queued)


def test_a_run_is_idle_unless_pods_may_be_made_for_it() -> None:
    """One that was resumed is not, unless its queue has to admit it first."""
    assert idle("Succeeded")
    assert idle("Failed", suspend=True)
    assert idle("Suspended", suspend=True)
    assert idle("Suspended", queued=True)
    assert idle("Running", deletionTimestamp="2026-11-21T20:00:00Z")
    assert not idle("Suspended")
    assert not idle("Running", suspend=True)
    assert not idle("", queued=True)
    assert not is_idle({"metadata": {}, "status": "odd"}, queued=False)


@pytest.mark.parametrize("field", FIELDS)
def test_no_field_that_is_kept_can_be_long(field: str) -> None:
    """A field that is added, and has no limit, is one that only a plan reads."""
    about = FIELDS[field]
    name = about.get("$ref", "").rpartition("/")[2]
    limits = {"enum", "maxLength", "maxItems"}
    for each in schema()["$defs"][name]["properties"].values() if name else (about,):
        assert each["type"] in ("integer", "boolean") or limits & each.keys(), each


@pytest.mark.parametrize("run", ALL, ids=lambda run: run["spec"].get("framework", "none"))
def test_what_is_kept_of_a_large_run_is_small_and_still_a_run(run: Json) -> None:
    """Wherever its author put it."""
    many = {f"example.dev/{number}": "x" * 60 for number in range(3000)}
    own = {**many, names.FIRST_ATTEMPT: "0012"}
    metadata = {**run["metadata"], "labels": {**many, names.KUEUE_QUEUE: "ml"}, "annotations": own}
    spec = {**run["spec"], "template": {"metadata": {"annotations": many}, "spec": {}}}
    kept = reduce_run({**run, "metadata": metadata, "spec": spec, "status": {"phase": "Failed"}})
    assert len(orjson.dumps(kept)) < 2000
    before = Run.model_validate(run, by_alias=True, by_name=False)
    after = Run.model_validate(kept, by_alias=True, by_name=False)
    assert after.metadata.labels == {names.KUEUE_QUEUE: "ml"}
    assert after.metadata.annotations == {names.FIRST_ATTEMPT: "12"}
    assert [*after.spec.roles] == [*before.spec.roles]
    assert after.status.phase == "Failed"


def test_what_is_not_known_is_kept() -> None:
    """It holds the run, as it may say for how long it is kept."""
    spec = {"keep": 1, "template": {"spec": {}}, "replicas": {"worker": {"again": 1, "count": 2}}}
    assert reduce_run({"metadata": {}, "spec": spec})["spec"] == {
        "keep": 1,
        "template": {},
        "replicas": {"worker": {"again": 1, "count": 2}},
    }


def test_the_whole_run_decides_what_is_created_and_which_phase_is_next() -> None:
    """By what is kept, pods are deleted and the status is written."""
    suspended = RunStatus(phase="Suspended", message="new")
    assert not needs_whole("Suspended", Outcome(suspended, (DeletePod("a", "u"),)))
    assert needs_whole("Suspended", Outcome(suspended, (CreateService(),)))
    assert needs_whole("Suspended", Outcome(RunStatus(phase="Failed")))
