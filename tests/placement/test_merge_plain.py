"""Merging of fields that stand for themselves: the corners that the golden cases leave out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.laws.strategies import document
from tests.laws.world import decided, patched, policy_set
from webhook import names

Json = dict[str, Any]
BOTH = {"runAsUser": 1000, "runAsNonRoot": True, "windowsOptions": {"runAsUserName": "me"}}


@pytest.mark.parametrize("part", ["defaults", "overrides", "requirements"])
@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ("windows", {"runAsNonRoot", "windowsOptions"}),
        ("linux", {"runAsNonRoot", "runAsUser"}),
        ("", set(BOTH)),
    ],
)
def test_a_security_context_of_another_system_is_skipped(
    part: str, system: str, expected: set[str]
) -> None:
    """The API server would refuse the pod for it, and the trace says that it was skipped."""
    spec: Json = {"containers": []} | ({"os": {"name": system}} if system else {})
    pod: Json = {"metadata": {"labels": {names.RUN: "r"}}, "spec": spec}
    compiled = policy_set([document("PlacementPolicy", "p", {part: {"securityContext": BOTH}})])
    decision = decided(pod, compiled)
    assert set(patched(pod, decision)["spec"]["securityContext"]) == expected
    skipped = {e.field for e in decision.trace if e.outcome == "skipped"}
    assert skipped == {f"securityContext[{key}]" for key in BOTH.keys() - expected}


def test_every_maximum_is_reported_with_the_pods_value() -> None:
    """The lowest is set, the pod is within the others, and a setting above one has lost."""
    field = "terminationGracePeriodSeconds"
    policies = [
        document("PlacementPolicy", "wide", {"priority": 2, "requirements": {field: 20}}),
        document("PlacementPolicy", "low", {"requirements": {field: 10}}),
        document("PlacementPolicy", "over", {"overrides": {field: 15}}),
    ]
    pod: Json = {"metadata": {"labels": {names.RUN: "r"}}, "spec": {"containers": []}}
    decision = decided(pod, policy_set(policies))
    assert patched(pod, decision)["spec"][field] == 10
    assert {(e.policy, e.outcome) for e in decision.trace} == {
        ("wide", "kept"),
        ("low", "set"),
        ("over", "lost"),
    }


SPREAD: Json = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    ]
}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NEAR: Json = {
    "affinity": {
        "podAffinity": {PREFERRED: [{"weight": 5, "podAffinityTerm": {"topologyKey": "zone"}}]}
    }
}


@pytest.mark.parametrize("setting", [SPREAD, NEAR])
def test_an_entry_is_added_once_and_reported(setting: Json) -> None:
    """Set where the pod lacks it, and kept where the pod has it already."""
    compiled = policy_set([document("PlacementPolicy", "p", {"overrides": setting})])
    pod: Json = {"metadata": {"labels": {names.RUN: "r"}}, "spec": {"containers": []}}
    decision = decided(pod, compiled)
    placed = patched(pod, decision)
    assert {key: placed["spec"][key] for key in setting} == setting
    (credited,) = json.loads(placed["metadata"]["annotations"][names.PLACEMENT])["policies"]["p"]
    assert credited.startswith(next(iter(setting)))
    assert [e.outcome for e in decision.trace] == ["set"]
    pod = {**pod, "spec": {"containers": [], **setting}}
    decision = decided(pod, compiled)
    assert patched(pod, decision)["spec"] == pod["spec"]
    assert [e.outcome for e in decision.trace] == ["kept"]
