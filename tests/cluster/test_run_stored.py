"""A stored Run means what was written, and most of it stays what it was."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.causes import message_with, rule_message
from tests.cluster.live_runs import ALONE, LiveRun, StartInSpace
from tests.cluster.spaces import Space
from tests.policy.examples import GONE, changed
from tests.run.whole_runs import ALL, OTHERS, TENSORFLOW, a_run
from tests.run.written_defaults import AS_WRITTEN, STORED
from webhook import names
from webhook.frameworks.table import FRAMEWORKS
from webhook.run.crd import CHANGEABLE
from webhook.run.crd import FIXED as RULES
from webhook.run.model import Run, RunSpec
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl

pytest_plugins = ["tests.cluster.run_fixtures"]

Json = dict[str, Any]
FIXED = message_with("may not be changed", RULES)
ROLES = message_with("added or removed", RULES)
WORKERS = ("spec", "replicas", "worker")

NOTEBOOK = next(run for run in OTHERS if run["spec"].get("kind") == "notebook")
BY_FRAMEWORK = {run["spec"]["framework"]: run for run in ALL if "framework" in run["spec"]}
BARE = a_run()


class Stored:
    """Runs as they are stored, and what the API server says of a change to one."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._path = f"/apis/{names.API_VERSION}/namespaces/{namespace}/{names.RUNS}"
        self._runs: dict[str, Json] = {}

    def refused(self, run: Json, path: tuple[Any, ...], value: Any) -> list[tuple[str, str]]:
        """Field and message of each cause, for a value that is put, or taken away, at the path."""
        return self._put(changed(self._of(run), path, value))

    def refused_as(self, run: Json, other: Json) -> list[tuple[str, str]]:
        """The same for the spec of another Run, as `kubectl replace` puts it there."""
        return self._put({**other, "metadata": self._of(run)["metadata"]})

    def _put(self, update: Json) -> list[tuple[str, str]]:
        name = update["metadata"]["name"]
        where = f"{self._path}/{name}?dryRun=All&fieldValidation=Strict"
        status, answer = self._plane.api.call("PUT", where, update)
        if status == 200:
            return []
        causes = answer["details"]["causes"]
        return [(cause["field"], rule_message(cause["message"])) for cause in causes]

    def _of(self, run: Json) -> Json:
        key = json.dumps(run, sort_keys=True)
        if key not in self._runs:
            named = copy.deepcopy(run)
            named["metadata"]["name"] = f"run-{len(self._runs)}"
            self._runs[key] = self._plane.api.create(self._path, named)
        return self._runs[key]


@pytest.fixture(scope="module")
def stored(run_api: ControlPlane) -> Iterator[Stored]:
    """In a namespace of their own, gone before any controller looks."""
    run_api.create_namespace("run-fixed")
    yield Stored(run_api, "run-fixed")
    run_api.api.call("DELETE", "/api/v1/namespaces/run-fixed")


# For each field of the spec another value, and what it is to be changed in.
CHANGES: dict[str, tuple[Json, Any]] = {
    # Only a native Run may have `gang`.
    "backend": (
        changed(changed(TENSORFLOW, ("spec", "backend"), "kubeflow"), ("spec", "gang"), GONE),
        "native",
    ),
    "kind": (BARE, "build"),
    "framework": (BARE, "pytorch"),
    "environment": (TENSORFLOW, {"nodeSelector": {"pool": "other"}}),
    "template": (BARE, {"spec": {"containers": []}}),
    "mainContainer": (TENSORFLOW, "other"),
    "restartScope": (TENSORFLOW, "Run"),
    "gang": (TENSORFLOW, {"startWithin": "5m"}),
    "disruptionExitCodes": (TENSORFLOW, [85]),
    "ports": (NOTEBOOK, [{"port": 80}]),
    "maxAgeSeconds": (NOTEBOOK, 5),
    **{name: (BY_FRAMEWORK[name], {"port": 2}) for name in FRAMEWORKS},
}
LIMITS: Json = {
    "backoffLimit": 6,
    "disruptionLimit": 11,
    "activeDeadlineSeconds": 5,
    "cleanPodPolicy": "None",
}
# Fields that are always there, once the API server has filled in its defaults.
ALWAYS = ("kind", "template")


def test_every_field_is_here() -> None:
    """All but replicas, which have tests of their own, and those that may change."""
    assert {*CHANGES, *CHANGEABLE, "replicas"} == {*RunSpec.outer_names()}


@pytest.mark.parametrize("field", CHANGES)
def test_a_field_may_not_be_changed(stored: Stored, field: str) -> None:
    """The message says what to do instead."""
    run, value = CHANGES[field]

    assert stored.refused(run, ("spec", field), value) == [(f"spec.{field}", FIXED)]


@pytest.mark.parametrize("field", [field for field in CHANGES if field not in ALWAYS])
def test_a_field_may_not_be_added_or_taken_away(stored: Stored, field: str) -> None:
    """Absence is a value too."""
    run, value = CHANGES[field]
    without = changed(run, ("spec", field), GONE) if field in run["spec"] else run
    whole = changed(without, ("spec", field), run["spec"].get(field, value))
    said = (f"spec.{field}", FIXED)

    assert said in stored.refused(without, ("spec", field), whole["spec"][field])
    assert said in stored.refused(whole, ("spec", field), GONE)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*WORKERS, "count"), 8),
        ((*WORKERS, "resources", "limits", "memory"), "3Gi"),
        ((*WORKERS, "resources"), GONE),
        ((*WORKERS, "restartPolicy"), "Never"),
        ((*WORKERS, "byIndex", 0, "index"), 3),
        ((*WORKERS, "byIndex", 1), GONE),
        ((*WORKERS, "environment", "tolerations", 0, "tolerationSeconds"), 31),
        ((*WORKERS, "environment", "nodeSelector", "zone"), "z"),
        ((*WORKERS, "template", "spec", "containers", 0, "image"), "other"),
    ],
)
def test_replicas_may_not_be_changed(stored: Stored, path: tuple[Any, ...], value: Any) -> None:
    """Neither their number nor what they are."""
    assert stored.refused(TENSORFLOW, path, value) == [("spec.replicas", FIXED)]


@pytest.mark.parametrize(
    ("run", "path", "value"),
    [
        (TENSORFLOW, ("spec", "replicas", "evaluator"), {}),
        (TENSORFLOW, ("spec", "replicas", "ps"), GONE),
        (TENSORFLOW, ("spec", "replicas"), {"worker": {}}),
        (BARE, ("spec", "replicas"), {"master": {}}),
        (a_run(replicas={"master": {}}), ("spec", "replicas"), GONE),
        (a_run(replicas={"master": {}}), ("spec", "replicas"), {"worker": {}}),
    ],
)
def test_the_set_of_roles_never_changes(
    stored: Stored, run: Json, path: tuple[Any, ...], value: Any
) -> None:
    """It is said once, and not that the replicas changed as well."""
    assert stored.refused(run, path, value) == [("spec.replicas", ROLES)]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("metadata",), GONE),
        (("metadata", "labels"), {"vision": "team"}),
        (("metadata",), {"annotations": {"team": "vision"}, "labels": {"note": "any"}}),
        (("metadata",), {"labels": {"team": "vision"}, "finalizers": ["any"]}),
        (("spec",), {"containers": [], "activeDeadlineSeconds": 5}),
        (("spec", "containers", 0), {"name": "main", "command": ["x"], "env": []}),
        (("spec", "containers", 0, "env"), None),
        (("spec", "newer"), {"field": 1}),
    ],
)
def test_no_change_in_a_template_goes_unseen(
    stored: Stored, path: tuple[Any, ...], value: Any
) -> None:
    """Not even one key for another: the API server looks into what it has no schema for."""
    of_the_run = stored.refused(TENSORFLOW, ("spec", "template", *path), value)
    of_a_role = stored.refused(TENSORFLOW, (*WORKERS, "template", *path), value)

    assert of_the_run == [("spec.template", FIXED)]
    assert of_a_role == [("spec.replicas", FIXED)]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "suspend"), False),
        (("spec", "suspend"), GONE),
        (("spec", "ttlSecondsAfterFinished"), 5),
        (("spec", "ttlSecondsAfterFinished"), GONE),
        (("metadata", "labels"), {"a": "b"}),
        *((("spec", field), value) for field, value in LIMITS.items()),
        *((("spec", field), GONE) for field in LIMITS),
    ],
)
def test_what_may_change_may_change(stored: Stored, path: tuple[Any, ...], value: Any) -> None:
    """To rest, to be kept for a while, to be found, and to have other limits."""
    assert stored.refused(TENSORFLOW, path, value) == []


DELEGATED = a_run(
    backend="jobset", framework="jax", replicas={"worker": {"count": 2}}, backoffLimit=4
)


@pytest.mark.parametrize("field", ["suspend", "ttlSecondsAfterFinished", "activeDeadlineSeconds"])
def test_fairlead_enforces_these_on_any_backend(stored: Stored, field: str) -> None:
    """So the engine's object need not change."""
    run = changed(DELEGATED, ("spec", field), 60 if field != "suspend" else True)

    assert stored.refused(DELEGATED, ("spec", field), run["spec"][field]) == []
    assert stored.refused(run, ("spec", field), GONE) == []


def test_what_an_engine_counts_or_does_itself_may_not_be_changed(stored: Stored) -> None:
    """Its object has it, and is not changed."""
    unset = changed(DELEGATED, ("spec", "backoffLimit"), GONE)
    whole = changed(DELEGATED, ("spec", "restartScope"), "Run")
    limit = ("spec", "backoffLimit")
    why = message_with("the engine counts", RULES)

    assert stored.refused(DELEGATED, limit, 9) == []
    assert stored.refused(DELEGATED, limit, GONE) == [("spec.backoffLimit", why)]
    assert stored.refused(unset, limit, 9) == [("spec.backoffLimit", why)]
    assert stored.refused(whole, limit, 9) == [("spec.backoffLimit", why)]
    only = "may be changed on backend native only"
    for field in ("disruptionLimit", "cleanPodPolicy"):
        [(at, said)] = stored.refused(DELEGATED, ("spec", field), LIMITS[field])
        assert at == f"spec.{field}"
        assert said.startswith(only)


@pytest.mark.usefixtures("run_api")
def test_a_file_that_did_not_change_can_be_applied_again(kubectl: Kubectl) -> None:
    """With kubectl on its own side and on the server's; and `kubectl patch` suspends."""
    for run in (TENSORFLOW, BARE, NOTEBOOK):
        text = json.dumps(changed(run, ("metadata", "name"), f"a-{len(json.dumps(run))}"))
        assert "created" in kubectl("apply", "-f", "-", stdin=text)
        assert "unchanged" in kubectl("apply", "-f", "-", stdin=text)
        kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)
        patch = '{"spec": {"suspend": true, "ttlSecondsAfterFinished": 60}}'
        kubectl("patch", "--type=merge", "-p", patch, "-f", "-", stdin=text)


def test_the_file_that_made_a_run_of_an_earlier_version_can_replace_it(stored: Stored) -> None:
    """A field left out equals the default that was written; and the other way round."""
    assert stored.refused_as(STORED, AS_WRITTEN) == []
    assert stored.refused_as(AS_WRITTEN, STORED) == []


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("restartScope",), "Run", "restartScope"),
        (("replicas", "worker", "restartPolicy"), "Never", "replicas"),
        (("replicas", "worker", "count"), 3, "replicas"),
        (("mpi", "implementation"), "Intel", "mpi"),
        (("mpi", "slotsPerWorker"), 2, "mpi"),
    ],
)
def test_another_value_than_the_default_is_a_change(
    stored: Stored, path: tuple[str, ...], value: Any, field: str
) -> None:
    """Whether the stored Run has the default or not."""
    after = changed(AS_WRITTEN, ("spec", *path), value)
    for before in (STORED, AS_WRITTEN):
        assert stored.refused_as(before, after) == [(f"spec.{field}", FIXED)]


def test_the_controller_goes_on_with_a_run_of_an_earlier_version(
    bare_space: Space, start_in_space: StartInSpace
) -> None:
    """It runs, restarts its failed worker, is suspended and resumed, and succeeds."""
    start_in_space("of-stored", *ALONE)
    bare_space.create(copy.deepcopy(STORED))
    live = LiveRun(bare_space, "stored")
    pods = live.until_running("launcher-0", "worker-0", "worker-1")
    live.ends("worker-1", 1)
    live.until_replaced("worker-1", pods["worker-1"])
    live.set(suspend=True)
    live.until_phase("Suspended")
    live.set(suspend=False)
    live.until_running("launcher-0", "worker-0", "worker-1")
    live.ends("launcher-0", 0)

    assert live.until_phase("Succeeded")["restarts"] == 1
    kept = live.run()["spec"]
    assert (kept["backoffLimit"], kept["cleanPodPolicy"]) == (3, "Running")


@pytest.mark.usefixtures("run_api")
@pytest.mark.parametrize("run", ALL, ids=lambda run: run["spec"].get("framework", "none"))
def test_what_is_stored_is_the_same_run(kubectl: Kubectl, run: Json) -> None:
    """What the API server gives back means what was written."""
    written = Run.model_validate(run, by_alias=True, by_name=False)

    stored = kubectl.json("create", "-f", "-", stdin=json.dumps(run))
    assert Run.model_validate(stored, by_alias=True, by_name=False).spec == written.spec


@pytest.mark.usefixtures("run_api")
def test_only_what_was_written_is_stored(kubectl: Kubectl) -> None:
    """And three defaults that mean the same on every engine."""
    bare = a_run(framework="mpi", replicas={"launcher": {}}, mpi={})
    del bare["spec"]["template"]["metadata"]
    kubectl("create", "-f", "-", stdin=json.dumps(bare))

    spec = kubectl.json("get", "run", "mnist")["spec"]
    del spec["template"]
    assert spec == {
        "kind": "job",
        "framework": "mpi",
        "replicas": {"launcher": {"count": 1}},
        "suspend": False,
        "mpi": {},
    }


@pytest.mark.usefixtures("run_api")
def test_a_name_may_be_generated(kubectl: Kubectl) -> None:
    """As for any object that is created and not applied."""
    run = a_run()
    run["metadata"] = {"generateName": "mnist-"}

    stored = kubectl.json("create", "-f", "-", stdin=json.dumps(run))
    assert Run.model_validate(stored, by_alias=True, by_name=False).name.startswith("mnist-")


@pytest.mark.usefixtures("run_api")
def test_a_null_is_a_field_left_out(kubectl: Kubectl) -> None:
    """As the reader of files has it."""
    run = a_run(framework=None, disruptionLimit=None, kind=None, environment=None)
    run["spec"]["environment"] = {"nodeSelector": {"a": None, "b": "c"}}

    stored = kubectl.json("create", "-f", "-", stdin=json.dumps(run))
    assert stored["spec"]["kind"] == "job"
    assert stored["spec"]["environment"] == {"nodeSelector": {"b": "c"}}
