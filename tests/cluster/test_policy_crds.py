"""Policies and classes as the API server serves them: kubectl applies, explains and shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.policy_rule_cases import a_class, a_policy, path_of
from tests.cluster.spaces import forget_applied
from tests.cluster.tables import columns
from tests.fast_yaml import load_all_yaml
from tests.wording import mentions
from webhook import names
from webhook.policy.crd.definitions import RESOURCES, custom_resource_definitions
from webhook.policy.model import CapacityClassSpec, ExceptionSpec, PolicySpec
from webhook.policy.policy_documents import KNOWN
from webhook.policy.status_model import PolicyStatus
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl
from webhook.server.folder import is_test_file

pytest_plugins = ["tests.cluster.policy_fixtures"]

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
SHIPPED = sorted(
    path for path in (ROOT / "policies").rglob("*.yaml") if not is_test_file(path.name)
)
DEFAULTS: Json = {"enforcement": "Enforce", "priority": 0}
NOW = "2026-01-02T03:04:05Z"
ACCEPTED: Json = {
    "type": "Accepted",
    "status": "True",
    "observedGeneration": 1,
    "lastTransitionTime": NOW,
    "reason": "Serving",
    "message": "every replica decides by it",
}
STATUS: Json = {
    "observedGeneration": 1,
    "conditions": [ACCEPTED],
    "servedHashes": [{"replica": "fairlead-webhook-1", "hash": "0123456789ab"}],
    "podsDecided": 1200,
    "podsRejected": 7,
    "since": NOW,
    "lastMatch": NOW,
}
DESCRIPTION = "Workers may run on spot."


@pytest.fixture
def bare(policy_api: ControlPlane, cluster_kubectl: Kubectl) -> Iterator[Kubectl]:
    """kubectl in a cluster without policies; those that a test makes go with it."""
    yield cluster_kubectl
    for kind in RESOURCES:
        policy_api.api.call("DELETE", path_of(kind))


@pytest.mark.parametrize("kind", RESOURCES)
def test_the_definitions_are_established(policy_api: ControlPlane, kind: str) -> None:
    """Names are accepted, schemas are structural, and the API server has no objection."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{RESOURCES[kind]}"
    conditions = policy_api.api.get(path)["status"]["conditions"]

    assert {condition["type"]: condition["status"] for condition in conditions} == {
        "NamesAccepted": "True",
        "Established": "True",
    }


@pytest.mark.usefixtures("policy_api")
@pytest.mark.parametrize("kind", RESOURCES)
def test_kubectl_apply_takes_the_manifest(cluster_kubectl: Kubectl, kind: str) -> None:
    """Client-side, with the whole of it in an annotation, and it is what the API server has."""
    manifest = ROOT / "manifests/crds" / f"{RESOURCES[kind]}.yaml"

    assert cluster_kubectl("apply", "-f", str(manifest)).endswith("configured\n")
    assert cluster_kubectl("diff", "-f", str(manifest)) == ""
    forget_applied(cluster_kubectl, "crd", RESOURCES[kind])


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_file_that_ships_is_read_back_unchanged(bare: Kubectl, path: Path) -> None:
    """What the file says and nothing else, but for what holds where it says nothing."""
    written = list(load_all_yaml(path.read_text()))
    bare("apply", "--validate=strict", "-f", str(path))

    for document in written:
        stored = bare.json("get", document["kind"], document["metadata"]["name"])
        filled = DEFAULTS if document["kind"] == names.POLICY_KIND else {}
        assert stored["spec"] == {**filled, **document["spec"]}
        model = KNOWN[document["kind"]]
        assert model.model_validate(stored).spec == model.model_validate(document).spec
    assert bare("diff", "-f", str(path)) == ""


def test_policies_ship() -> None:
    """So that the test above has something to do."""
    assert len(SHIPPED) > 10


def description(kind: str, *fields: str) -> str:
    """Our words about a kind or a field of it, in one line, as its definition has them."""
    node = custom_resource_definitions()[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for field in fields:
        node = node.get("items", node)["properties"][field]
    return " ".join(node["description"].split())


def explained(kubectl: Kubectl, field: str) -> str:
    """What `kubectl explain` says of a field, in one line."""
    return " ".join(kubectl("explain", field).split())


@pytest.mark.usefixtures("policy_api")
def test_kubectl_explain_tells_what_a_policy_is(cluster_kubectl: Kubectl) -> None:
    """With our words, as they stand in the model."""
    kind = names.POLICY_KIND
    said = explained(cluster_kubectl, "pp")
    assert said.startswith(f"GROUP: {names.GROUP} KIND: {kind} VERSION: v1alpha1 DESCRIPTION: ")
    mentions(said, f"DESCRIPTION: {description(kind)} FIELDS: apiVersion <string>")
    said = explained(cluster_kubectl, "placementpolicy.spec")
    mentions(said, f"defaults <Object> {description(kind, 'spec', 'defaults')}")
    words = description(kind, "spec", "enforcement")
    mentions(said, f"enforcement <string> enum: Enforce, Audit {words}")
    words = description(kind, "spec", "match", "kinds")
    mentions(explained(cluster_kubectl, "pp.spec.match"), f"kinds <[]string> {words}")
    words = description(kind, "spec", "overrides", "capacity", "class")
    said = explained(cluster_kubectl, "pp.spec.overrides.capacity")
    mentions(said, f"class <string> -required- {words}")


@pytest.mark.usefixtures("policy_api")
def test_kubectl_explain_tells_what_a_class_is(cluster_kubectl: Kubectl) -> None:
    """Down to what a taint is."""
    kind = names.CLASS_KIND
    mentions(explained(cluster_kubectl, "cc"), f"DESCRIPTION: {description(kind)}")
    said = explained(cluster_kubectl, "capacityclass.spec.nodes.taints")
    mentions(said, description(kind, "spec", "nodes", "taints"))
    effects = "NoSchedule, PreferNoSchedule, NoExecute"
    mentions(said, f"effect <string> -required- enum: {effects}")


@pytest.mark.usefixtures("policy_api")
@pytest.mark.parametrize(
    "field",
    [
        *(f"pp.spec.{field}" for field in PolicySpec.outer_names()),
        *(f"cc.spec.{field}" for field in CapacityClassSpec.outer_names()),
        *(f"pe.spec.{field}" for field in ExceptionSpec.outer_names()),
        *(f"pp.status.{field}" for field in STATUS),
    ],
)
def test_kubectl_explain_tells_what_each_field_is(cluster_kubectl: Kubectl, field: str) -> None:
    """No field is left without words."""
    said = cluster_kubectl("explain", field)

    words = said[said.index("DESCRIPTION:") + len("DESCRIPTION:") :].split("FIELDS:")[0]
    assert words.strip().endswith(".")


@pytest.fixture
def shown(policy_api: ControlPlane, bare: Kubectl) -> Kubectl:
    """kubectl where a policy with a status and a class without one are."""
    policy = policy_api.api.create(
        path_of(names.POLICY_KIND), a_policy(description=DESCRIPTION, priority=100)
    )
    policy["status"] = STATUS
    path = f"{path_of(names.POLICY_KIND)}/mine/status"
    status, answer = policy_api.api.call("PUT", path, policy)
    assert status == 200, answer
    policy_api.api.create(path_of(names.CLASS_KIND), a_class(complementOf="spot"))
    return bare


@pytest.mark.parametrize("asked", ["placementpolicies", "placementpolicy", "pp"])
def test_kubectl_get_shows_what_is_asked_first(shown: Kubectl, asked: str) -> None:
    """By plural, singular and short name."""
    (row,) = columns(shown("get", asked))

    assert row.pop("AGE")
    assert row == {
        "NAME": "mine",
        "PRIORITY": "100",
        "ENFORCEMENT": "Enforce",
        "ROLLOUT": "",
        "PODS DECIDED": "1200",
        "ACCEPTED": "True",
    }


def test_kubectl_get_wide_shows_the_rest(shown: Kubectl) -> None:
    """After what is always shown."""
    (row,) = columns(shown("get", "pp", "-o", "wide"))

    assert list(row) == [
        *("NAME", "PRIORITY", "ENFORCEMENT", "ROLLOUT", "PODS DECIDED", "ACCEPTED", "AGE"),
        *("REJECTED", "LAST MATCH", "SATISFIABLE", "REASON", "DESCRIPTION"),
    ]
    assert row["REJECTED"] == "7"
    assert row["LAST MATCH"]
    assert (row["REASON"], row["DESCRIPTION"]) == ("Serving", DESCRIPTION)


@pytest.mark.parametrize("asked", ["capacityclasses", "capacityclass", "cc"])
def test_kubectl_get_shows_classes(shown: Kubectl, asked: str) -> None:
    """What nobody has judged yet has nothing under ACCEPTED."""
    (row,) = columns(shown("get", asked))

    assert row.pop("AGE")
    assert row == {"NAME": "mine", "COMPLEMENT OF": "spot", "ACCEPTED": ""}
    (wide,) = columns(shown("get", asked, "-o", "wide"))
    assert list(wide)[-2:] == ["REASON", "NODES"]


def test_the_category_has_both(shown: Kubectl) -> None:
    """`kubectl get fairlead` shows all that is Fairlead's; `get all` means one namespace."""
    listed = shown("get", "fairlead", "-o", "name").split()

    assert {f"placementpolicy.{names.GROUP}/mine", f"capacityclass.{names.GROUP}/mine"} <= {*listed}
    assert "mine" not in shown("get", "all", "-o", "name")


def test_a_status_is_kept_whole(shown: Kubectl) -> None:
    """Typed where we know it, open where a newer controller knows more."""
    stored = shown.json("get", "pp", "mine")["status"]

    assert stored == STATUS
    assert PolicyStatus.model_validate(stored).pods_decided == 1200
    more = json.dumps({"status": {"nextField": {"a": 1}}})
    shown("patch", "pp", "mine", "--subresource=status", "--type=merge", "-p", more)
    assert shown.json("get", "pp", "mine")["status"] == {**STATUS, "nextField": {"a": 1}}


def test_a_status_cannot_be_written_together_with_the_spec(shown: Kubectl) -> None:
    """It has its own subresource, and so its own permission."""
    shown("patch", "pp", "mine", "--type=merge", "-p", '{"status": {"podsDecided": 1}}')

    assert shown.json("get", "pp", "mine")["status"]["podsDecided"] == 1200


def test_what_counts_as_a_change_is_the_spec(shown: Kubectl) -> None:
    """observedGeneration can be compared: a status or a label makes no new generation."""
    shown("label", "pp", "mine", "a=b")
    assert shown.json("get", "pp", "mine")["metadata"]["generation"] == 1
    shown("patch", "pp", "mine", "--type=merge", "-p", '{"spec": {"priority": 1}}')
    assert shown.json("get", "pp", "mine")["metadata"]["generation"] == 2


def test_kubectl_says_the_rule_and_the_cure(bare: Kubectl) -> None:
    """What a person sees who applies a wrong file: field, value, message."""
    wrong = a_policy(overrides={"labels": {"fairlead.dev/run": "x"}})

    done = bare.run("apply", "-f", "-", stdin=json.dumps(wrong))
    assert done.returncode == 1
    head = 'The PlacementPolicy "mine" is invalid: spec.overrides.labels: Invalid value: '
    said = done.stderr.partition(head)[2]
    mentions(said, "labels under fairlead.dev/", "remove them")
