"""An upgrade and a rollback of the definitions under a controller that stays: no run ends."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.live_runs import ALONE, LiveRun, StartInSpace, create_run
from tests.cluster.spaces import Space
from tests.eventually import eventually
from webhook import names
from webhook.run.crd import custom_resource_definition
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.run_fixtures"]

Json = dict[str, Any]
Apply = Callable[[Json], None]
WORKERS: Json = {"worker": {"count": 2}}
BOTH = ("worker-0", "worker-1")
LATER: Json = {"of": ["a", {"later": True}]}
_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def with_later_fields(schema: Json) -> Json:
    """The schema of a later version: each object has one more field."""
    whole = copy.deepcopy(schema)
    todo = [whole["properties"][part] for part in ("spec", "status")]
    while todo:
        node = todo.pop()
        inner = node.get("properties", {})
        todo += [*inner.values()]
        todo += [node[key] for key in ("items", "additionalProperties") if key in node]
        if inner:
            inner["later"] = {"x-kubernetes-preserve-unknown-fields": True}
    return whole


@pytest.fixture
def apply(run_api: ControlPlane, bare_space: Space) -> Iterator[Apply]:
    """Serve Runs by another schema, and by that of this version again after the test."""
    own = custom_resource_definition()
    runs = f"/apis/{names.API_VERSION}/namespaces/{bare_space.name}/{names.RUNS}"

    def apply_schema(schema: Json) -> None:
        versions = copy.deepcopy(own["spec"]["versions"])
        versions[0]["schema"]["openAPIV3Schema"] = schema
        run_api.api.patch(f"{_PATH}/{own['metadata']['name']}", {"spec": {"versions": versions}})
        later = "later" in schema["properties"]["spec"]["properties"]
        probe = {
            "apiVersion": names.API_VERSION,
            "kind": names.RUN_KIND,
            "metadata": {"name": "probe"},
            "spec": {"template": {"spec": {"containers": []}}, "later": True},
        }
        where = f"{runs}?dryRun=All&fieldValidation=Strict"
        eventually(
            "the schema is served",
            lambda: (run_api.api.call("POST", where, probe)[0] == 201) == later,
        )

    yield apply_schema
    apply_schema(own["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


def of_this_version() -> Json:
    """The schema of a Run."""
    schema: Json = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def uids(live: LiveRun) -> dict[str, str]:
    """Its pods."""
    return {name: each["metadata"]["uid"] for name, each in live.pods().items()}


def patch_status(live: LiveRun, change: Callable[[Json], Json]) -> None:
    """Write to the status, as another version's controller would."""
    patch = {"status": change(copy.deepcopy(live.status))}
    live.space.patch(names.RUNS, f"{live.name}/status", patch)


def later_status(status: Json) -> Json:
    """The status as the next version wrote it."""
    incident = {
        "cause": "Maintenance",
        "reason": "NodeDrained",
        "replica": "kept-worker-0",
        "began": "2026-11-21T20:00:00.000000Z",
        "secondsLost": 1,
        "later": LATER,
    }
    condition = {
        "type": "Ganged",
        "status": "Forming",
        "lastTransitionTime": "2026-11-21T20:00:00Z",
        "reason": "Later",
        "message": "",
        "later": LATER,
    }
    status["replicas"]["worker"]["later"] = LATER
    conditions = [*status["conditions"], condition]
    return {
        **status,
        "phase": "Draining",
        "later": LATER,
        "incidents": [*status.get("incidents", ()), incident],
        "conditions": conditions,
    }


def test_what_a_later_version_wrote_is_kept_until_its_definition_is_rolled_back(
    bare_space: Space, start_in_space: StartInSpace, apply: Apply
) -> None:
    """An unknown phase, cause, condition and field: the run goes on, restarts, and ends itself."""
    live = create_run(bare_space, "kept", framework="jax", replicas=WORKERS)
    start_in_space("before-the-upgrade", *ALONE)
    live.until_whole(2)
    bare_space.plane.stop_component("before-the-upgrade")
    before = uids(live)
    apply(with_later_fields(of_this_version()))
    patch_status(live, later_status)
    start_in_space("after-the-rollback", *ALONE)
    live.until("it is reported", lambda: live.condition("Understood").get("status") == "False")
    assert "status.incidents[0].cause" in live.condition("Understood")["message"]
    live.until_whole(2)
    assert uids(live) == before
    live.ends("worker-1", 1)
    live.until("its restart is counted", lambda: live.status["restarts"] == 1)
    live.until_whole(2)
    status = live.status
    assert status["later"] == status["replicas"]["worker"]["later"] == LATER
    assert (status["incidents"][0]["cause"], status["incidents"][0]["later"]) == (
        "Maintenance",
        LATER,
    )
    assert (live.condition("Ganged")["status"], live.condition("Ganged")["later"]) == (
        "Forming",
        LATER,
    )
    apply(of_this_version())
    for replica in BOTH:
        live.ends(replica, 0)
    status = live.until_phase("Succeeded")
    assert status["restarts"] == 1
    assert "later" not in status


def test_a_spec_of_a_later_version_holds_the_run_until_its_definition_is_rolled_back(
    bare_space: Space, start_in_space: StartInSpace, apply: Apply
) -> None:
    """Its pods go on, none is replaced, its counts stay; and a new one waits without pods."""
    live = create_run(bare_space, "held", framework="jax", replicas=WORKERS)
    start_in_space("before-the-field", *ALONE)
    live.until_whole(2)
    bare_space.plane.stop_component("before-the-field")
    before = uids(live)
    apply(with_later_fields(of_this_version()))
    live.set(later=LATER)
    start_in_space("after-the-field", *ALONE)
    live.until("it is held", lambda: live.condition("Understood").get("status") == "False")
    assert "spec.later" in live.condition("Understood")["message"]
    live.ends("worker-0", 1)
    new = create_run(bare_space, "new", framework="jax", replicas=WORKERS, later=LATER)
    # The pod's end came before this Run, whose condition so shows that both were looked at.
    new.until("it is held", lambda: new.condition("Understood").get("status") == "False")
    assert new.pods() == {}
    assert uids(live) == before
    assert (live.status["phase"], live.status["restarts"]) == ("Running", 0)
    live.until("an Event says so", lambda: "NotUnderstood" in {e["reason"] for e in live.events()})

    apply(of_this_version())
    live.until("its restart is counted", lambda: live.status["restarts"] == 1, budget=90)
    live.until_whole(2)
    assert uids(live)["worker-1"] == before["worker-1"]
    assert live.condition("Understood")["status"] == "True"
    new.until("it runs", lambda: new.status.get("phase") == "Running", budget=90)


def test_a_status_that_cannot_be_read_is_written_again_as_it_is(
    bare_space: Space, start_in_space: StartInSpace
) -> None:
    """Until somebody corrects the value; then the run goes on."""
    # A controller of all namespaces would write to the Runs of the other tests here.
    start_in_space("all-the-time", *ALONE)
    live = create_run(bare_space, "odd", framework="jax", replicas=WORKERS)
    live.until_whole(2)
    before = live.status

    def garble(status: Json) -> Json:
        status["replicas"]["worker"]["activeIndexes"] = "0-3000000"
        return {**status, "startTime": "2026-11-21T20:00:00"}

    patch_status(live, garble)
    live.until("it is held", lambda: live.condition("Understood").get("status") == "False")
    for path in ("status.startTime", "status.replicas.worker.activeIndexes"):
        assert path in live.condition("Understood")["message"]
    kept = live.status
    assert kept["replicas"]["worker"]["activeIndexes"] == "0-3000000"
    assert (kept["phase"], live.condition("Ready")["status"]) == ("Running", "Unknown")

    def correct(status: Json) -> Json:
        return {**status, "startTime": before["startTime"], "replicas": before["replicas"]}

    patch_status(live, correct)
    live.until("it is understood", lambda: live.condition("Understood").get("status") == "True")
    assert live.status["restarts"] == 0
