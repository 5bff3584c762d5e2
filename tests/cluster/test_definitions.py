"""Every definition as the API server serves it: kubectl applies, explains and shows its objects."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.rule_cases import a_class, a_policy, path_of
from tests.cluster.spaces import forget_applied
from tests.cluster.tables import columns
from tests.crd.schemas import carried, nodes
from tests.run.whole_runs import TENSORFLOW
from tests.wording import mentions
from webhook import names
from webhook.crd.comparison import Comparison, compare
from webhook.policy.crd.definitions import RESOURCES, custom_resource_definitions
from webhook.policy.model import CapacityClassSpec, ExceptionSpec, PolicySpec
from webhook.policy.status_model import PolicyStatus
from webhook.run.crd import NAME, custom_resource_definition
from webhook.run.model import RunSpec, RunStatus
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl

pytest_plugins = ["tests.cluster.policy_fixtures", "tests.cluster.run_fixtures"]

Json = dict[str, Any]
MANIFESTS = Path(__file__).parents[2] / "manifests" / "crds"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# By name, with how many times the cost of its rules the API server has to take.
DEFINITIONS: dict[str, tuple[Json, int]] = {
    NAME: (custom_resource_definition(), 2),
    **{RESOURCES[kind]: (made, 3) for kind, made in custom_resource_definitions().items()},
}
NOW = "2026-01-02T03:04:05Z"
POLICY_STATUS = PolicyStatus.model_validate(
    {
        "observedGeneration": 1,
        "conditions": (
            {
                "type": "Accepted",
                "status": "True",
                "observedGeneration": 1,
                "lastTransitionTime": NOW,
                "reason": "Serving",
                "message": "every replica decides by it",
            },
        ),
        "servedHashes": ({"replica": "fairlead-webhook-1", "hash": "0123456789ab"},),
        "podsDecided": 1200,
        "podsRejected": 7,
        "since": NOW,
        "lastMatch": NOW,
    }
)
RUN_STATUS = RunStatus.model_validate(
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
        "gang": {
            "state": "Whole",
            "since": NOW,
            "tries": 2,
            "lacked": "1 of 7 replicas had a node",
            "waited": ({"role": "worker", "indexes": "3", "class": "spot", "since": NOW},),
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
pytestmark = pytest.mark.usefixtures("policy_api", "run_api")


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_definition_is_established(control_plane: ControlPlane, name: str) -> None:
    """Names are accepted, the schema is structural, and the API server has no objection."""
    conditions = control_plane.api.get(f"{CRDS}/{name}")["status"]["conditions"]
    assert {condition["type"]: condition["status"] for condition in conditions} == {
        "NamesAccepted": "True",
        "Established": "True",
    }


@pytest.mark.parametrize("name", DEFINITIONS)
def test_kubectl_apply_takes_the_manifest(cluster_kubectl: Kubectl, name: str) -> None:
    """Client-side, with the whole of it in an annotation, and it is what the API server has."""
    manifest = str(MANIFESTS / f"{name}.yaml")
    assert cluster_kubectl("apply", "-f", manifest).endswith("configured\n")
    assert cluster_kubectl("diff", "-f", manifest) == ""
    (kept,) = cluster_kubectl.json("get", "crd", name)["metadata"]["annotations"].values()
    # kubectl adds an empty mapping of annotations, and the end of the line.
    assert 0 <= len(kept.encode()) - carried(DEFINITIONS[name][0]) < 50
    forget_applied(cluster_kubectl, "crd", name)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_an_upgrade_from_longer_descriptions_is_no_difference_and_takes_them_away(
    control_plane: ControlPlane, cluster_kubectl: Kubectl, tmp_path: Path, name: str
) -> None:
    """Applied by either side; what the older version described otherwise is as it was."""
    own, _ = DEFINITIONS[name]
    older = copy.deepcopy(own)
    schema = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for path, node in nodes(schema):
        if not path.startswith(".metadata"):
            node["description"] = f"{node.get('description', '')} Said at length."
    (tmp_path / "older.json").write_text(json.dumps(older))
    for how in ((), ("--server-side", "--force-conflicts")):
        cluster_kubectl("apply", *how, "-f", str(tmp_path / "older.json"))
        served = control_plane.api.get(f"{CRDS}/{name}")
        assert "at length" in json.dumps(served["spec"])
        assert compare(own, served) == Comparison()
        cluster_kubectl("apply", *how, "-f", str(MANIFESTS / f"{name}.yaml"))
        assert "at length" not in json.dumps(control_plane.api.get(f"{CRDS}/{name}")["spec"])
        if not how:
            forget_applied(cluster_kubectl, "crd", name)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_rules_cost_a_part_of_what_the_api_server_allows(
    control_plane: ControlPlane, name: str
) -> None:
    """Of each rule's estimated budget and of the whole: it takes every rule several times over."""
    definition, times = DEFINITIONS[name]
    dear = copy.deepcopy(definition)
    dear["metadata"]["name"] = name.replace(".", ".dear.", 1)
    dear["spec"]["group"] = f"dear.{names.GROUP}"
    for _, node in nodes(dear["spec"]["versions"][0]["schema"]["openAPIV3Schema"]):
        for rule in node.get("x-kubernetes-validations", ()):
            rule["rule"] = " && ".join(f"({rule['rule']})" for _ in range(times))
    status, answer = control_plane.api.call("POST", f"{CRDS}?dryRun=All", dear)
    assert status == 201, answer["message"]
    control_plane.api.create(f"{CRDS}?dryRun=All&fieldValidation=Strict", dear)


def words(name: str, *fields: str) -> str:
    """Our words about a kind or a field of it, in one line, as its definition has them."""
    node = DEFINITIONS[name][0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for field in fields:
        node = node.get("items") or node.get("additionalProperties") or node
        node = node["properties"][field]
    return " ".join(node["description"].split())


PP, CC = RESOURCES[names.POLICY_KIND], RESOURCES[names.CLASS_KIND]
HEAD = f"GROUP: {names.GROUP} KIND: PlacementPolicy VERSION: v1alpha1 DESCRIPTION: {words(PP)} "


@pytest.mark.parametrize(
    ("asked", "facts"),
    [
        ("pp", [f"{HEAD}FIELDS: apiVersion <string>"]),
        (
            "placementpolicy.spec",
            [
                f"defaults <Object> {words(PP, 'spec', 'defaults')}",
                f"enforcement <string> enum: Enforce, Audit {words(PP, 'spec', 'enforcement')}",
            ],
        ),
        ("pp.spec.match", [f"kinds <[]string> {words(PP, 'spec', 'match', 'kinds')}"]),
        (
            "pp.spec.overrides.capacity",
            [f"class <string> -required- {words(PP, 'spec', 'overrides', 'capacity', 'class')}"],
        ),
        ("cc", [f"DESCRIPTION: {words(CC)}"]),
        (
            "capacityclass.spec.nodes.taints",
            [
                words(CC, "spec", "nodes", "taints"),
                "effect <string> -required- enum: NoSchedule, PreferNoSchedule, NoExecute",
            ],
        ),
        (
            "run.spec.replicas",
            [
                "FIELD: replicas <map[string]Object>",
                f"byIndex <[]Object> {words(NAME, 'spec', 'replicas', 'byIndex')}",
                f"count <integer> {words(NAME, 'spec', 'replicas', 'count')}",
                "restartPolicy <string> enum: Never, OnFailure, ExitCode",
            ],
        ),
    ],
)
def test_kubectl_explain_tells_what_a_kind_is(
    cluster_kubectl: Kubectl, asked: str, facts: list[str]
) -> None:
    """With our words, as they stand in the model."""
    mentions(cluster_kubectl("explain", asked), *facts)


@pytest.mark.parametrize(
    "field",
    [
        *(f"pp.spec.{field}" for field in PolicySpec.outer_names()),
        *(f"cc.spec.{field}" for field in CapacityClassSpec.outer_names()),
        *(f"pe.spec.{field}" for field in ExceptionSpec.outer_names()),
        *(f"flrun.spec.{field}" for field in RunSpec.outer_names()),
        *(f"pp.status.{field}" for field in POLICY_STATUS.model_dump(by_alias=True)),
    ],
)
def test_kubectl_explain_tells_what_each_field_is(cluster_kubectl: Kubectl, field: str) -> None:
    """No field is left without words."""
    said = cluster_kubectl("explain", field)
    described = said[said.index("DESCRIPTION:") + len("DESCRIPTION:") :].split("FIELDS:")[0]
    assert described.strip().endswith(".")


STORED = {
    "pp": (
        path_of(names.POLICY_KIND),
        a_policy(description="Workers may run on spot.", priority=100),
        POLICY_STATUS,
    ),
    "cc": (path_of(names.CLASS_KIND), a_class(complementOf="spot"), None),
    "run": (f"/apis/{names.API_VERSION}/namespaces/default/{names.RUNS}", TENSORFLOW, RUN_STATUS),
}


@pytest.fixture(scope="module")
def shown(
    control_plane: ControlPlane,
    policy_api: ControlPlane,  # noqa: ARG001  (it serves policies)
    cluster_kubectl: Kubectl,
) -> Iterator[Kubectl]:
    """kubectl where a policy and a Run with a status, and a class without one are."""
    api = control_plane.api
    for collection, manifest, status in STORED.values():
        stored = api.create(collection, manifest)
        if status is not None:
            stored["status"] = status.model_dump(mode="json", by_alias=True, exclude_none=True)
            path = f"{collection}/{manifest['metadata']['name']}/status"
            code, answer = api.call("PUT", path, stored)
            assert code == 200, answer
    yield cluster_kubectl.within("default")
    for collection, _, _ in STORED.values():
        api.call("DELETE", collection)


POLICY: Json = {
    "PRIORITY": "100",
    "ENFORCEMENT": "Enforce",
    "ROLLOUT": "",
    "PODS DECIDED": "1200",
    "ACCEPTED": "True",
    "IN FORCE": "",
}
RUN = {"PHASE": "Restarting", "FRAMEWORK": "tensorflow", "REPLICAS": "9/11", "RESTARTS": "3"}
MORE_OF_POLICY = {"REASON": "Serving", "DESCRIPTION": "Workers may run on spot.", "REJECTED": "7"}
MORE_OF_RUN = {
    "KIND": "experiment",
    "DISRUPTIONS": "1",
    "GANG": "Whole",
    "DURATION": "5m10s",
    "MESSAGE": "worker 3 starts again",
}


@pytest.mark.parametrize(
    ("asked", "first", "rest", "unknown"),
    [
        (
            ["placementpolicies", "placementpolicy", "pp"],
            POLICY,
            MORE_OF_POLICY,
            ["LAST MATCH", "SATISFIABLE"],
        ),
        (
            ["capacityclasses", "capacityclass", "cc"],
            {"COMPLEMENT OF": "spot", "ACCEPTED": ""},
            {},
            ["SATISFIABLE", "REASON", "NODES"],
        ),
        (["runs", "run", "flrun"], RUN, MORE_OF_RUN, ["REPEATED"]),
    ],
    ids=STORED,
)
def test_kubectl_get_shows_what_is_asked_first_and_with_wide_the_rest(
    shown: Kubectl, asked: list[str], first: Json, rest: Json, unknown: list[str]
) -> None:
    """By plural, singular and short name. What nobody has judged yet is not accepted."""
    for name in asked:
        (row,) = columns(shown("get", name))
        assert row.pop("NAME") in ("mine", "mnist")
        assert row.pop("AGE")
        assert row == first
    (wide,) = columns(shown("get", asked[0], "-o", "wide"))
    assert {*wide} == {"NAME", "AGE", *first, *rest, *unknown}
    assert first.items() | rest.items() <= wide.items()


def test_the_category_has_all_kinds(shown: Kubectl) -> None:
    """`kubectl get fairlead` shows all that is Fairlead's; `get all` means one namespace."""
    listed = shown("get", "fairlead", "-o", "name").split()
    ours = {f"placementpolicy.{names.GROUP}/mine", f"capacityclass.{names.GROUP}/mine"}
    run = f"run.{names.GROUP}/mnist"
    assert {*ours, run} <= {*listed}
    everything = shown("get", "all", "-o", "name").split()
    assert run in everything
    assert not ours & {*everything}


@pytest.mark.parametrize(
    ("kind", "name", "counted"), [("pp", "mine", "podsDecided"), ("run", "mnist", "restarts")]
)
def test_a_status_is_kept_whole_and_is_not_written_together_with_the_spec(
    shown: Kubectl, kind: str, name: str, counted: str
) -> None:
    """It has its own subresource, and so its own permission."""
    shown("patch", kind, name, "--type=merge", "-p", json.dumps({"status": {counted: 99}}))
    stored, status = shown.json("get", kind, name)["status"], STORED[kind][2]
    assert status is not None
    assert type(status).model_validate(stored, by_alias=True, by_name=False) == status


def test_a_status_is_open_for_a_newer_controller(shown: Kubectl) -> None:
    """Typed where we know it, open where it knows more."""
    before = shown.json("get", "pp", "mine")["status"]
    more = json.dumps({"status": {"nextField": {"a": 1}}})
    shown("patch", "pp", "mine", "--subresource=status", "--type=merge", "-p", more)
    assert shown.json("get", "pp", "mine")["status"] == {**before, "nextField": {"a": 1}}
    gone = json.dumps({"status": {"nextField": None}})
    shown("patch", "pp", "mine", "--subresource=status", "--type=merge", "-p", gone)


def test_what_counts_as_a_change_is_the_spec(shown: Kubectl) -> None:
    """observedGeneration can be compared: a status or a label makes no new generation."""
    shown("label", "pp", "mine", "a=b")
    assert shown.json("get", "pp", "mine")["metadata"]["generation"] == 1
    for generation, priority in ((2, 1), (3, 100)):
        change = json.dumps({"spec": {"priority": priority}})
        shown("patch", "pp", "mine", "--type=merge", "-p", change)
        assert shown.json("get", "pp", "mine")["metadata"]["generation"] == generation
