"""What a pod's author asks of capacity classes, against what policies say of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.laws.strategies import document
from tests.laws.world import decided, patched, policy_set
from webhook import names
from webhook.decision.decision import Decision

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


def test_prevent_leaves_a_toleration_of_a_taint_that_another_class_has_too() -> None:
    """Class "old" has the same taint, and the pod may be meant for it."""
    what = pod(tolerations=[SPOT_TAINT])
    decision = decide(what, overrides="Prevent")
    assert patched(what, decision)["spec"]["tolerations"] == [SPOT_TAINT]
