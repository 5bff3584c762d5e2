"""The Run as the API server serves it: kubectl explains, shows and keeps it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.spaces import forget_applied
from tests.cluster.tables import columns
from tests.fast_yaml import load_yaml
from tests.run.whole_runs import ALL, TENSORFLOW, a_run
from webhook import names
from webhook.run.crd import NAME
from webhook.run.model import Run, RunSpec, RunStatus
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl

pytest_plugins = ["tests.cluster.run_fixtures"]

Json = dict[str, Any]
CRD = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{NAME}"
MANIFEST = Path(__file__).parents[2] / "manifests/crds" / f"{NAME}.yaml"
NOW = "2026-01-02T03:04:05Z"
STATUS = RunStatus.model_validate(
    {
        "phase": "Restarting",
        "message": "worker 3 starts again",
        "observedGeneration": 1,
        "startTime": NOW,
        "completionTime": NOW,
        "duration": "5m10s",
        "replicasReady": "9/11",
        "restarts": 3,
        "disruptions": 1,
        "address": "http://mnist.research.svc",
        "replicas": {
            "worker": {
                "desired": 7,
                "active": 6,
                "succeededIndexes": "0-2",
                "countedUIDs": ("a", "b"),
                "recovering": ({"indexes": "3", "failures": 2, "since": NOW},),
            }
        },
        "lastFailure": {
            "replica": "mnist-worker-3",
            "exitCode": 137,
            "reason": "Killed",
            "time": NOW,
        },
        "conditions": ({"type": "Running", "status": "True", "lastTransitionTime": NOW},),
    }
)


def test_the_definition_is_established(run_api: ControlPlane) -> None:
    """Its names are accepted, its schema is structural, and the API server has no objection."""
    conditions = run_api.api.get(CRD)["status"]["conditions"]

    assert {condition["type"]: condition["status"] for condition in conditions} == {
        "NamesAccepted": "True",
        "Established": "True",
    }


@pytest.mark.usefixtures("run_api")
def test_kubectl_apply_takes_the_manifest(cluster_kubectl: Kubectl) -> None:
    """Client-side, with the whole of it in an annotation, and it is what the API server has."""
    assert cluster_kubectl("apply", "-f", str(MANIFEST)).endswith("configured\n")

    kept = cluster_kubectl.json("get", "crd", NAME)["metadata"]["annotations"]
    applied = json.loads(kept["kubectl.kubernetes.io/last-applied-configuration"])
    written = load_yaml(MANIFEST.read_text())
    written["metadata"]["annotations"] = {}
    assert applied == written
    assert cluster_kubectl("diff", "-f", str(MANIFEST)) == ""
    forget_applied(cluster_kubectl, "crd", "runs.fairlead.dev")


def test_kubectl_explain_tells_what_replicas_are(run_api: ControlPlane, kubectl: Kubectl) -> None:
    """Each field with our words, as they stand in the model."""
    said = " ".join(kubectl("explain", "run.spec.replicas").split())
    (version,) = load_yaml(MANIFEST.read_text())["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    replicas = spec["properties"]["replicas"]
    of_a_role = replicas["additionalProperties"]

    def words(node: Json) -> str:
        return " ".join(node["description"].split())

    of = {field: words(of_a_role["properties"][field]) for field in of_a_role["properties"]}
    head = f"GROUP: {names.GROUP} KIND: Run VERSION: v1alpha1 FIELD: replicas <map[string]Object>"
    description = f"DESCRIPTION: {words(replicas)} {words(of_a_role)}"
    fields = f"FIELDS: byIndex <[]Object> {of['byIndex']} count <integer> {of['count']}"
    assert said.startswith(f"{head} {description} {fields} ")
    policies = "Never, OnFailure, ExitCode"
    assert f"restartPolicy <string> enum: {policies} {of['restartPolicy']}" in said
    assert run_api.url


@pytest.mark.usefixtures("run_api")
@pytest.mark.parametrize("field", RunSpec.outer_names())
def test_kubectl_explain_tells_what_each_field_is(kubectl: Kubectl, field: str) -> None:
    """No field is left without words."""
    said = kubectl("explain", f"flrun.spec.{field}")

    words = said[said.index("DESCRIPTION:") + len("DESCRIPTION:") :].split("FIELDS:")[0]
    assert words.strip().endswith(".")


@pytest.fixture
def shown(run_api: ControlPlane, namespace: str) -> str:
    """A Run that has got somewhere, by name."""
    path = f"/apis/{names.API_VERSION}/namespaces/{namespace}/{names.RUNS}"
    stored = run_api.api.create(path, TENSORFLOW)
    stored["status"] = STATUS.model_dump(mode="json", by_alias=True, exclude_none=True)
    status, answer = run_api.api.call("PUT", f"{path}/mnist/status", stored)
    assert status == 200, answer
    return "mnist"


@pytest.mark.parametrize("asked", ["runs", "run", "flrun", "all", "fairlead"])
def test_kubectl_get_shows_what_is_asked_first(kubectl: Kubectl, shown: str, asked: str) -> None:
    """By plural, singular, short name and category."""
    (row,) = columns(kubectl("get", asked))

    assert row.pop("AGE")
    assert row.pop("NAME").endswith(shown)
    assert row == {
        "PHASE": "Restarting",
        "FRAMEWORK": "tensorflow",
        "REPLICAS": "9/11",
        "RESTARTS": "3",
    }


def test_kubectl_get_wide_shows_the_rest(kubectl: Kubectl, shown: str) -> None:
    """Kind, disruptions, duration and message, after what is always shown."""
    (row,) = columns(kubectl("get", "run", shown, "-o", "wide"))

    assert list(row) == [
        *("NAME", "PHASE", "FRAMEWORK", "REPLICAS", "RESTARTS", "AGE"),
        *("KIND", "DISRUPTIONS", "DURATION", "MESSAGE"),
    ]
    assert [row[name] for name in ("KIND", "DISRUPTIONS", "DURATION", "MESSAGE")] == [
        *("experiment", "1", "5m10s", "worker 3 starts again")
    ]


def test_a_status_is_kept_whole(kubectl: Kubectl, shown: str) -> None:
    """The controller reads back all that it has written, or it would count again."""
    stored = kubectl.json("get", "run", shown)

    assert Run.model_validate(stored, by_alias=True, by_name=False).status == STATUS


@pytest.mark.usefixtures("shown")
def test_a_status_cannot_be_written_together_with_the_spec(kubectl: Kubectl) -> None:
    """It has its own subresource, and so its own permission."""
    kubectl("patch", "run", "mnist", "--type=merge", "-p", '{"status": {"restarts": 99}}')

    assert kubectl.json("get", "run", "mnist")["status"]["restarts"] == 3


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
