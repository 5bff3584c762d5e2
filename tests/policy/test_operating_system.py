"""A policy whose nodes run another operating system than the pod's takes no part."""

from __future__ import annotations

from typing import Any

import pytest

from tests.laws.strategies import document
from tests.laws.world import decided, patched, policy_set
from webhook import names

Json = dict[str, Any]
OS = names.OS_LABEL


def policy(name: str, system: str, **spec: Any) -> Json:
    """A policy that sends pods to nodes of an operating system, and labels them."""
    placement = {"nodeSelector": {OS: system}, "labels": {f"by-{name}": "yes"}}
    return document("PlacementPolicy", name, {"defaults": placement, **spec})


def pod(**spec: Any) -> Json:
    """A pod of a run."""
    return {"metadata": {"labels": {names.RUN: "r"}}, "spec": {"containers": [], **spec}}


def affinity(system: str) -> Json:
    """Required affinity for an operating system."""
    terms = [{"matchExpressions": [{"key": OS, "operator": "In", "values": [system]}]}]
    node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": node}


@pytest.mark.parametrize(
    "spec",
    [
        {"os": {"name": "windows"}},
        {"nodeSelector": {OS: "windows"}},
        {"affinity": affinity("windows")},
    ],
)
def test_a_pod_bound_for_another_system_keeps_its_placement(spec: Json) -> None:
    """Whether it says so by os, nodeSelector or affinity; the stamp has the reason."""
    decision = decided(pod(**spec), policy_set([policy("linux", "linux")]))
    assert decision.result == "left-alone"
    assert "operating system" in decision.reason
    after = patched(pod(**spec), decision)
    assert after["spec"] == pod(**spec)["spec"]
    assert "leftAlone" in after["metadata"]["annotations"][names.PLACEMENT]


def test_policies_that_name_no_system_still_apply() -> None:
    """Only those of another system take no part."""
    anywhere = document("PlacementPolicy", "any", {"defaults": {"labels": {"team": "x"}}})
    compiled = policy_set([policy("linux", "linux"), anywhere])
    decision = decided(pod(os={"name": "windows"}), compiled)
    assert decision.policies == ("any",)


def test_where_the_pod_says_nothing_the_first_policy_of_the_fold_decides() -> None:
    """And the second call, which sees what it decided, decides the same."""
    compiled = policy_set([policy("linux", "linux", priority=1), policy("windows", "windows")])
    decision = decided(pod(), compiled)
    assert decision.policies == ("linux",)
    assert not decided(patched(pod(), decision), compiled).patch
