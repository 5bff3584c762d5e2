"""A policy test compares with what the API server stores: with its defaults, as it writes them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster.manifests import Json, pod, policy_text
from tests.cluster.spaces import NewNamespace
from webhook.names import PLACEMENT
from webhook.placement.fields import OF_PODS
from webhook.placement.schema.placement import SETTABLE
from webhook.policy.load import load
from webhook.policy_tests.load_tests import read
from webhook.policy_tests.result import Verdict
from webhook.policy_tests.runner import run_tests

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("running")

POLICIES = policy_text(
    "much",
    "match: {namespaceSelector: {matchLabels: {test: much}}}",
    "overrides:",
    "  tolerations:",
    "  - {key: spot, operator: Exists, effect: NoSchedule}",
    "  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, "
    "tolerationSeconds: 30}",
    "  nodeSelector: {pool: large}",
    "  terminationGracePeriodSeconds: 20",
) + policy_text(
    "few",
    "match: {namespaceSelector: {matchLabels: {test: few}}}",
    "defaults: {labels: {team: a}, tolerations: [{key: spot, operator: Exists}], "
    "patchStrategy: IsNull}",
)
# What an author writes, and what the API server then stores of it.
SPECS: dict[str, Json] = {
    "nothing": {},
    "empty values": {
        "tolerations": [{"key": "a", "operator": "Exists", "value": "", "effect": ""}],
        "affinity": {"podAffinity": {}, "nodeAffinity": {}},
        "securityContext": {},
    },
    "a toleration of everything": {"tolerations": [{"operator": "Exists"}]},
    "a toleration of one default taint": {
        "tolerations": [
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
        ]
    },
    "seconds of all taints": {
        "tolerations": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]
    },
    "its own values": {"schedulerName": "own", "terminationGracePeriodSeconds": 0},
}


def run_one(policies: str, labels: dict[str, str], own: Json, expect: Json) -> Verdict:
    """The verdict of a test with one expectation of a pod in a namespace with these labels."""
    test = {"name": "it", "pod": own, "namespaceLabels": labels, "expect": expect}
    head = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "PolicyTest"}
    (document,) = read("t", json.dumps({**head, "tests": [test]}).encode()).sound()
    (verdict,) = run_tests(document, load({"p.yaml": policies.encode()}).policies)
    return verdict


def stored_fields(stored: Json) -> dict[str, Any]:
    """The placement fields of a stored pod, and an empty value for each that it does not have."""
    found = {
        each.name: stored[each.holder].get(each.name) for each in OF_PODS if each.name in SETTABLE
    }
    found["annotations"] = {k: v for k, v in found["annotations"].items() if k != PLACEMENT}
    empty: Json = {"runtimeClassName": "", "priorityClassName": "", "tolerations": []}
    empty |= {"topologySpreadConstraints": []}
    return {key: empty.get(key, {}) if value is None else value for key, value in found.items()}


@pytest.mark.parametrize("own", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("policy", ["much", "few"])
def test_what_a_test_takes_for_equal_is_stored(
    new_namespace: NewNamespace, policy: str, own: Json
) -> None:
    """Every field, and no other value of it."""
    labels = {"test": policy}
    manifest = pod("p", **own)
    stored = stored_fields(new_namespace(labels).create(manifest))
    written = {key: manifest[key] for key in ("metadata", "spec")}
    verdict = run_one(POLICIES, labels, written, {"equals": stored})
    assert verdict.passed, verdict.failures
    for each in stored["tolerations"]:
        assert not run_one(POLICIES, labels, written, {"lacks": {"tolerations": [each]}}).passed
    for field in ("tolerations", "schedulerName"):
        empty: Json = {"tolerations": [], "schedulerName": ""}
        assert not run_one(POLICIES, labels, written, {"equals": {field: empty[field]}}).passed
