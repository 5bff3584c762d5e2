"""Policies whose nodes run another operating system than the pod's: only requirements hold."""

from __future__ import annotations

from typing import Any

import pytest

from tests.laws.strategies import document
from tests.laws.world import decided, patched, policy_set
from tests.wording import Wording, mentions
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


@pytest.mark.parametrize(
    "spec",
    [
        {"os": {"name": "windows"}, "nodeSelector": {"pool": "b"}},
        {"os": {"name": "windows"}},
        {"nodeSelector": {OS: "windows", "pool": "b"}},
        {"nodeSelector": {"pool": "b"}, "affinity": affinity("windows")},
    ],
)
@pytest.mark.parametrize("part", ["requirements", "overrides"])
def test_an_author_does_not_switch_off_a_requirement(spec: Json, part: str) -> None:
    """By naming another system than the policy does, in the requirement or beside it."""
    placement: Json = {"requirements": {"nodeSelector": {"pool": "a"}}, "overrides": {}}
    placement[part] = {"nodeSelector": {OS: "linux", **placement[part].get("nodeSelector", {})}}
    compiled = policy_set(
        [document("PlacementPolicy", "p", {k: v for k, v in placement.items() if v})]
    )
    decision = decided(pod(**spec), compiled)
    if spec == {"os": {"name": "windows"}} and part == "overrides":
        # A Windows pod is held to the pool, and not sent to Linux.
        assert patched(pod(**spec), decision)["spec"]["nodeSelector"] == {"pool": "a"}
    else:
        assert not decision.allowed
        mentions(decision.reason, "policy p: requirements.nodeSelector")


def test_a_required_class_of_another_system_rejects(wording: Wording) -> None:
    """Before a kubelet does, which a ReplicaSet would answer with the next pod at once."""
    linux = document("CapacityClass", "linux", {"nodes": [{"labels": {OS: "linux"}}]})
    spec = {"requirements": {"capacity": [{"class": "linux", "mode": "Constrain"}]}}
    compiled = policy_set([document("PlacementPolicy", "p", spec)], [linux])
    decision = decided(pod(os={"name": "windows"}), compiled)
    assert not decision.allowed
    mentions(decision.reason, "capacity[linux]", "'windows'")
    wording(decision.reason)
    assert decided(pod(os={"name": "linux"}), compiled).allowed


def test_requirements_of_two_systems_contradict_each_other() -> None:
    """Whatever the pod names, one of them does not hold."""
    policies = [
        document("PlacementPolicy", system, {"requirements": {"nodeSelector": {OS: system}}})
        for system in ("linux", "windows")
    ]
    for spec in ({}, {"nodeSelector": {OS: "windows"}}):
        assert not decided(pod(**spec), policy_set(policies)).allowed


def test_where_the_pod_says_nothing_the_first_policy_of_the_fold_decides() -> None:
    """And the second call, which sees what it decided, decides the same."""
    compiled = policy_set([policy("linux", "linux", priority=1), policy("windows", "windows")])
    decision = decided(pod(), compiled)
    assert decision.policies == ("linux",)
    assert not decided(patched(pod(), decision), compiled).patch
