"""What a pod's author asks of capacity classes, against what policies say of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.laws.strategies import document
from tests.laws.world import decided, patched, policy_set
from tests.wording import Wording, mentions
from webhook import names
from webhook.admission.decision import Decision

Json = dict[str, Any]


def pod(asks: str = "", **spec: Any) -> Json:
    """A pod of a run that asks by annotation."""
    annotations = {names.CAPACITY: asks} if asks else {}
    metadata = {"labels": {names.RUN: "r"}, "annotations": annotations}
    return {"metadata": metadata, "spec": {"containers": [], **spec}}


def decide(what: Json, **parts: str) -> Decision:
    """The decision under one policy that wants modes of class spot, by part."""
    spec = {part: {"capacity": [{"class": "spot", "mode": m}]} for part, m in parts.items()}
    policies = [document("PlacementPolicy", "p", spec)] if parts else []
    return decided(what, policy_set(policies))


SPOT_TAINT = {"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}


def test_the_authors_request_is_applied_without_any_policy() -> None:
    """It is the pod's own word."""
    what = pod("spot=Constrain")
    spec = patched(what, decide(what))["spec"]
    assert spec["tolerations"] == [SPOT_TAINT]
    assert "affinity" in spec


@pytest.mark.parametrize("mode", ["Allow", "Prefer", "Constrain", "Prevent"])
def test_the_authors_request_wins_over_a_default(mode: str) -> None:
    """Whatever the default says, the result is that of the request alone."""
    what = pod(f"spot={mode}")
    alone = patched(what, decide(what))["spec"]
    for default in ("Allow", "Prefer", "Constrain", "Prevent"):
        assert patched(what, decide(what, defaults=default))["spec"] == alone


@pytest.mark.parametrize("mode", ["Allow", "Prefer", "Constrain", "Prevent", "None"])
def test_an_override_wins_over_the_authors_request(mode: str) -> None:
    """With a warning that names the policy, if they differ."""
    plain = patched(pod(), decide(pod(), overrides=mode))["spec"]
    for asked in ("Allow", "Constrain", "Prevent"):
        what = pod(f"spot={asked}")
        decision = decide(what, overrides=mode)
        assert patched(what, decision)["spec"] == plain
        said = any(f"policy p decides spot={mode}" in w for w in decision.warnings)
        assert said == (asked != mode)


@pytest.mark.parametrize(
    ("required", "asked", "allowed"),
    [
        ("Constrain", "Constrain", True),
        ("Constrain", "Allow", True),
        ("Allow", "Allow", True),
        ("Allow", "Constrain", True),
        ("Prevent", "Prevent", True),
        ("Constrain", "Prevent", False),
        ("Prevent", "Allow", False),
        ("Prevent", "Constrain", False),
    ],
)
def test_a_requirement_rejects_a_request_that_says_the_opposite(
    required: str, asked: str, allowed: bool
) -> None:
    """And joins one that can be meant at once."""
    decision = decide(pod(f"spot={asked}"), requirements=required)
    assert decision.allowed == allowed
    if not allowed:
        assert "requirements.capacity[spot]" in decision.reason
        assert f"spot={asked}" in decision.reason


@pytest.mark.parametrize(
    ("spec", "speaks"),
    [
        ({"nodeSelector": {"spot": "false"}}, True),
        ({"nodeSelector": {"zone": "a"}}, False),
        ({"tolerations": [SPOT_TAINT]}, False),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "spot", "operator": "Exists"}]}
                            ]
                        }
                    }
                }
            },
            True,
        ),
    ],
)
def test_a_default_stands_back_where_the_pod_speaks_of_the_class(spec: Json, speaks: bool) -> None:
    """By a selector or a required term on the class's keys; a toleration alone is no word."""
    decision = decide(pod(**spec), defaults="Prevent")
    kept = [e for e in decision.trace if e.field == "capacity[spot]" and e.outcome == "kept"]
    assert bool(kept) == speaks


def test_an_override_drops_the_pods_contradicting_selector_key_and_says_so(
    wording: Wording,
) -> None:
    """That very key alone: what else the pod says stays."""
    what = pod(nodeSelector={"spot": "false", "zone": "a"})
    decision = decide(what, overrides="Constrain")
    assert patched(what, decision)["spec"]["nodeSelector"] == {"zone": "a"}
    (warning,) = decision.warnings
    mentions(warning, "nodeSelector[spot]: 'false'", "policy p", "spot=Constrain")
    wording(warning)


def test_an_override_that_leaves_none_of_the_pods_terms_rejects(wording: Wording) -> None:
    """With the policy, the field and the pod's own word."""
    terms = [{"matchExpressions": [{"key": "spot", "operator": "DoesNotExist"}]}]
    node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    decision = decide(pod(affinity={"nodeAffinity": node}), overrides="Constrain")
    assert not decision.allowed
    mentions(decision.reason, "policy p: overrides.capacity[spot]: ", "no node")
    mentions(decision.reason, "required affinity spot DoesNotExist")
    wording(decision.reason)


def test_prevent_takes_away_the_tolerations_that_name_the_class_alone() -> None:
    """A wildcard stays: the labels keep the pod away whatever it tolerates."""
    wild = {"operator": "Exists"}
    other = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    what = pod(tolerations=[SPOT_TAINT, wild, other])
    decision = decided(
        what,
        policy_set(
            [
                document(
                    "PlacementPolicy",
                    "p",
                    {"overrides": {"capacity": [{"class": "spot", "mode": "Prevent"}]}},
                )
            ],
            # Without class "old", which has the same taint.
            [document("CapacityClass", "spot", SPOT_SPEC)],
        ),
    )
    assert patched(what, decision)["spec"]["tolerations"] == [wild, other]
    assert decision.warnings == ["tolerations[spot]: spot=Prevent"]


SPOT_SPEC = {
    "nodes": [
        {
            "labels": {"spot": "true"},
            "taints": [{"key": "spot", "value": "true", "effect": "NoSchedule"}],
        }
    ]
}


def test_prevent_leaves_a_toleration_of_a_taint_that_another_class_has_too() -> None:
    """Class "old" has the same taint, and the pod may be meant for it."""
    what = pod(tolerations=[SPOT_TAINT])
    decision = decide(what, overrides="Prevent")
    assert patched(what, decision)["spec"]["tolerations"] == [SPOT_TAINT]


@pytest.mark.parametrize("text", ["sopt=Allow", "spot=Alow", "spot", "spot=Allow,spot=Prevent"])
def test_a_request_that_cannot_be_read_rejects_and_lists_what_is_allowed(text: str) -> None:
    """An unknown class lists the classes, an unknown mode the modes."""
    decision = decide(pod(text))
    assert not decision.allowed
    assert names.CAPACITY in decision.reason
    if text == "sopt=Allow":
        mentions(decision.reason, "(classes: old, on-demand, pool-b, spot)")
