"""Which values policies take from which namespaces, and what is wrong with them."""

from __future__ import annotations

from typing import Any

from tests.wording import Wording, mentions
from webhook.judgement.set_judgement import judge_set
from webhook.judgement.together.warnings import UNBOUNDED
from webhook.placement.nodes import Node
from webhook.policy.feasibility import feasibility
from webhook.policy.findings import Finding, Kind
from webhook.policy.load import load
from webhook.policy.namespace_values import namespace_values
from webhook.policy.policy_documents import parse

SPACES = {
    "vision": {"team-pool": "red", "env": "dev"},
    "nlp": {"env": "prod"},
    "speech": {"team-pool": "green", "env": "prod"},
    "blank": {"team-pool": "", "env": "prod"},
}
NODES = [Node("n1", {"pool": "red"}, []), Node("n2", {"pool": "blue"}, [])]


def document(spec: str) -> dict[str, bytes]:
    head = "apiVersion: fairlead.dev/v1alpha1\nkind: PlacementPolicy\nmetadata: {name: p}\n"
    return {"p.yaml": f"{head}spec: {{{spec}}}\n".encode()}


def rows(spec: str) -> list[tuple[str, str, bool]]:
    policies = load(document(spec)).policies.policies
    return [(row.namespace, row.value, row.rejects) for row in namespace_values(policies, SPACES)]


def findings(spec: str, **more: Any) -> list[Finding]:
    judged = judge_set(parse(document(spec)), UNBOUNDED, namespaces=SPACES, **more)
    return [finding for finding in judged.findings if finding.kind is not Kind.WEAKENS]


FROM = "nodeSelectorFrom: [{key: pool, namespaceLabel: team-pool}]"


def test_an_override_without_a_value_rejects_and_a_default_leaves_it_out() -> None:
    """A label without a value counts as missing."""
    spaces = [("blank", ""), ("nlp", ""), ("speech", "green"), ("vision", "red")]
    assert rows(f"overrides: {{{FROM}}}") == [(name, value, not value) for name, value in spaces]
    assert rows(f"defaults: {{{FROM}}}") == [(name, value, False) for name, value in spaces]


def test_the_default_takes_the_place_of_a_missing_value() -> None:
    with_default = FROM.replace("team-pool", "team-pool, default: shared")
    assert rows(f"overrides: {{{with_default}}}") == [
        ("blank", "shared", False),
        ("nlp", "shared", False),
        ("speech", "green", False),
        ("vision", "red", False),
    ]


def test_only_namespaces_that_the_policy_may_match_count() -> None:
    """By names and labels of namespaces; what else a block asks for is of the pod."""
    selector = "namespaceSelector: {matchLabels: {env: prod}}"
    overrides = f"overrides: {{{FROM}}}"
    assert [row[0] for row in rows(f"match: {{{selector}, roles: [worker]}}, {overrides}")] == [
        "blank",
        "nlp",
        "speech",
    ]
    assert [row[0] for row in rows(f"exclude: [{{{selector}}}], {overrides}")] == ["vision"]
    assert len(rows(f"exclude: [{{{selector}, roles: [worker]}}], {overrides}")) == len(SPACES)


def test_namespaces_that_give_no_value_are_a_warning(wording: Wording) -> None:
    """Where the entry is written, with the label that is missing."""
    (finding,) = findings(f"overrides: {{{FROM}}}")
    assert finding.path == "spec.overrides.nodeSelectorFrom[0]"
    assert (finding.severity, finding.kind) == ("warning", Kind.SOME_PODS_REJECTED)
    mentions(finding.message, "2 namespaces", "blank", "nlp", "team-pool")
    wording(finding.message)
    assert findings(f"defaults: {{{FROM}}}") == []


def test_a_value_that_no_node_has_is_a_warning(wording: Wording) -> None:
    (finding,) = findings(f"defaults: {{{FROM}}}", nodes=NODES)
    assert finding.path == "spec.defaults.nodeSelectorFrom[0]"
    assert (finding.severity, finding.kind) == ("warning", Kind.NO_NODE)
    mentions(finding.message, "speech", "team-pool=green", "pool=green", "2 nodes")
    wording(finding.message)


def test_without_namespaces_only_the_key_is_checked() -> None:
    """No value of it is on a node that does not have the label."""
    (concern,) = feasibility(
        load(document(f"defaults: {{{FROM}}}")).policies, [Node("n", {}, [])], {}
    ).concerns
    assert concern.path == ("spec", "defaults", "nodeSelectorFrom", 0)
    assert feasibility(load(document(f"defaults: {{{FROM}}}")).policies, NODES, {}).concerns == ()
    tolerating = f"{FROM}, tolerationsFrom: [{{key: team, effect: NoSchedule, namespaceLabel: t}}]"
    tainted = [Node("n", {"pool": "red"}, [{"key": "team", "value": "a", "effect": "NoSchedule"}])]
    policies = load(document(f"overrides: {{{tolerating}}}")).policies
    assert feasibility(policies, tainted, {}).concerns == ()


def test_a_trial_of_two_policies_does_not_guess_values() -> None:
    """Another policy's value may be the same."""
    other = document("overrides: {nodeSelector: {pool: red}}, priority: 5")
    second = {"q.yaml": other["p.yaml"].replace(b"name: p", b"name: q")}
    files = {**document(f"requirements: {{{FROM}}}"), **second}
    judged = judge_set(parse(files), UNBOUNDED)
    assert [f for f in judged.findings if f.kind is Kind.SOME_PODS_REJECTED] == []
