"""Warnings for the person at kubectl: what is said, and how much of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.admission.reviews import Json, Webhook, pod, policy_set, review
from webhook import names
from webhook.decision.advice import MAX_CHARACTERS, warnings
from webhook.decision.decision import Decision
from webhook.identity import identify
from webhook.names import LAST_APPLIED

IDENTITY = identify({names.RUN: "r"}, {}, {})
POLICY = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: p}
spec:
  overrides:
    nodeSelector: {pool: large}
    tolerations: [{key: spot, operator: Exists, effect: NoSchedule}]
    labels: {team: x}
"""
OWN = [{"key": "gpu", "operator": "Exists"}]


def test_a_label_that_could_not_be_read_is_reported() -> None:
    """A slip in a label that refines is no reason to stop a pod, and nobody would find it."""
    sent = pod(labels={names.RUN: "r", names.KIND: "expriment"})
    (warning,) = Webhook(policy_set()).post(review(sent)).response["warnings"]
    assert "unknown kind 'expriment'" in warning


def test_a_pod_without_a_run_is_warned_about_unknown_keys_only() -> None:
    """A value that no policy reads is no reason for a warning; a misspelt run label is."""
    sent = pod(labels={names.KIND: "expriment"})
    assert "warnings" not in Webhook(policy_set()).post(review(sent)).response
    sent = pod(labels={"fairlead.dev/Run": "a", "app": "x"})
    (warning,) = Webhook(policy_set()).post(review(sent)).response["warnings"]
    assert "pod p: label fairlead.dev/Run:" in warning
    assert "did you mean fairlead.dev/run?" in warning


def test_the_engine_s_warnings_come_first() -> None:
    sent = pod(labels={names.RUN: "r", names.ROLE: "boss"})
    said = warnings(sent, Decision("unchanged", warnings=("first",), identity=IDENTITY))
    assert said[0] == "first"
    assert "unknown role 'boss'" in said[1]


def test_warnings_that_do_not_fit_are_counted() -> None:
    """The API server would cut them anywhere: so the last one says how many there are more."""
    many = tuple(f"{number:0119}" for number in range(60))
    said = warnings(pod(), Decision("unchanged", warnings=many, identity=IDENTITY))
    assert sum(len(f"fairlead: {text}") for text in said) <= MAX_CHARACTERS
    kept = len(said) - 1
    assert tuple(said[:-1]) == many[:kept]
    assert kept > 28
    assert said[-1].startswith(f"and {60 - kept} more warnings")


def test_the_warning_without_a_node_comes_first_and_the_others_are_counted() -> None:
    many = tuple(f"{number:0119}" for number in range(60))
    decision = Decision("unchanged", warnings=many, identity=IDENTITY)
    first, *kept, last = warnings(pod(), decision, "0 of 5 nodes: " + "x" * 150)
    assert first.startswith("0 of 5 nodes: ")
    assert last.startswith(f"and {60 - len(kept)} more warnings")


def test_warnings_that_just_fit_are_all_there() -> None:
    """Nothing is cut that need not be: 32 times 128 characters, those who says it among them."""
    many = tuple(f"{number:0118}" for number in range(32))
    assert warnings(pod(), Decision("unchanged", warnings=many, identity=IDENTITY)) == list(many)


def test_a_name_that_cannot_be_printed_is_left_out() -> None:
    """A header with a control character would not reach the user (RFC 9110, section 5.5)."""
    decision = Decision("unchanged", warnings=("first",), identity=IDENTITY)
    sent = pod()
    for name, title in (("p", "pod p: "), ("p\x00", ""), ("p\r\nq", "")):
        sent["metadata"]["name"] = name
        assert warnings(sent, decision, titled=True) == [f"{title}first"]


def told(sent: Json) -> list[str]:
    response = Webhook(policy_set(POLICY)).post(review(sent)).response
    assert response["allowed"]
    return [text for text in response.get("warnings", ()) if "applying this pod again" in text]


def by_client(spec: dict[str, Any], sent: Json) -> Json:
    """The pod as `kubectl apply` creates it from a file with this spec."""
    sent["metadata"]["annotations"] = {LAST_APPLIED: json.dumps({"kind": "Pod", "spec": spec})}
    return sent


def by_server(fields: dict[str, Any], sent: Json) -> Json:
    """The pod as `kubectl apply --server-side` creates it from a file with these fields."""
    sent["metadata"]["managedFields"] = [
        {"manager": "m", "operation": "Update", "fieldsV1": {"f:spec": {"f:tolerations": {}}}},
        {"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": fields}},
    ]
    return sent


def test_a_pod_that_is_only_created_is_not_warned() -> None:
    """Nobody will apply it again."""
    assert told(pod(nodeSelector={"pool": "small"}, tolerations=OWN)) == []


def test_a_file_that_says_nothing_of_what_changed_can_be_applied_again() -> None:
    """kubectl sends only what its file names, and leaves alone what others added."""
    assert told(by_client({"containers": [{"name": "main"}]}, pod())) == []
    assert told(by_server({"f:containers": {"k:{}": {}}}, pod())) == []


def test_a_selector_key_that_was_overridden_stands_in_the_way() -> None:
    """One that was added does not: with kubectl's own merge, maps go key by key."""
    sent = by_client({"nodeSelector": {"pool": "small"}}, pod(nodeSelector={"pool": "small"}))
    (text,) = told(sent)
    assert "spec.nodeSelector" in text
    assert len(text) < 120
    assert told(by_client({"nodeSelector": {"a": "b"}}, pod(nodeSelector={"a": "b"}))) == []


def test_tolerations_of_the_file_stand_in_the_way() -> None:
    """The list goes as a whole, and a pod's tolerations cannot be taken away."""
    (text,) = told(by_client({"tolerations": OWN}, pod(tolerations=OWN)))
    assert "spec.tolerations" in text


@pytest.mark.parametrize(
    ("fields", "warned"),
    [
        ({"f:tolerations": {}}, True),
        ({"f:nodeSelector": {}}, True),
        ({"f:schedulerName": {}}, False),
        ({"f:tolerations": None}, True),
        ({"f:tolerations": "odd"}, True),
        ({}, False),
    ],
)
def test_with_server_side_apply_the_fields_that_it_names_count(
    fields: dict[str, Any], warned: bool
) -> None:
    """A selector goes as a whole there. What another manager's entry names does not count."""
    sent = pod(tolerations=OWN, nodeSelector={"a": "b"})
    assert bool(told(by_server(fields, sent))) == warned


def test_a_pod_with_an_owner_is_not_warned() -> None:
    """Its controller makes it again."""
    sent = by_client({"tolerations": OWN}, pod(tolerations=OWN))
    sent["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j"}]
    assert told(sent) == []


@pytest.mark.parametrize("text", ["", "nonsense", "[]", "null", '{"spec": 5}', '{"spec": null}'])
def test_an_annotation_without_a_manifest_is_ignored(text: str) -> None:
    """Anybody may write it."""
    sent = pod(tolerations=OWN)
    sent["metadata"]["annotations"] = {LAST_APPLIED: text}
    assert told(sent) == []


@pytest.mark.parametrize("entries", ["odd", [5], [{}], [{"operation": "Apply"}], None])
def test_managed_fields_of_another_shape_say_nothing(entries: object) -> None:
    """The API server never sends them, and nothing is decided by them."""
    sent = pod(tolerations=OWN)
    sent["metadata"]["managedFields"] = entries
    assert told(sent) == []
