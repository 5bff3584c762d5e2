"""Policies among themselves: who wins a key, what drops, and when the bundle contradicts itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests.laws.strategies import document
from tests.laws.world import policy_set
from tests.wording import mentions
from webhook.placement.bundle import Bundle

Json = dict[str, Any]


def folded(*specs: Json) -> Bundle:
    """The bundle of policies a, b, c …, of falling priority."""
    made = policy_set(
        document("PlacementPolicy", "abcdef"[at], {"priority": 9 - at, **spec})
        for at, spec in enumerate(specs)
    )
    return made.bundle(tuple(range(len(specs))))


def outcomes(bundle: Bundle) -> list[tuple[str, str, str]]:
    """Policy, field and outcome of every line of the trace."""
    return [(e.policy, e.field, e.outcome) for e in bundle.trace]


def selector(value: str) -> Json:
    """A nodeSelector for the pool."""
    return {"nodeSelector": {"pool": value}}


def capacity(name: str, mode: str) -> Json:
    """One capacity setting."""
    return {"capacity": [{"class": name, "mode": mode}]}


def test_two_long_values_are_cut_so_that_they_differ() -> None:
    """Whoever reads it sees what is to be changed."""
    same = "x" * 100
    one, two = ({"annotations": {"note": f"{same}{end}"}} for end in "12")
    bundle = folded({"requirements": one}, {"requirements": two})
    for text in (bundle.contradictions[0], bundle.trace[0].reason):
        mentions(text, "xx1'", "xx2'")


def test_two_classes_that_leave_no_node_together_do_not_stand_together() -> None:
    """Spot and what is not spot."""
    settings = [{"overrides": capacity(name, "Constrain")} for name in ("spot", "on-demand")]
    bundle = folded(*settings)
    assert [w.capacity.name for w in bundle.capacity] == ["spot"]
    assert "conflicts with policy a (capacity[spot])" in bundle.trace[0].reason


@pytest.mark.parametrize(
    ("first", "second", "rejected"),
    [
        ("Allow", "Allow", False),
        ("Allow", "Constrain", False),
        ("Prefer", "Constrain", False),
        ("Prevent", "Prevent", False),
        ("Prevent", "Allow", True),
        ("Constrain", "Prevent", True),
        ("None", "Constrain", False),
        ("Prevent", "None", False),
    ],
)
def test_requirements_of_one_class_join_or_contradict(
    first: str, second: str, rejected: bool
) -> None:
    """Only Prevent agrees with nothing else; None contradicts nobody."""
    bundle = folded(
        {"requirements": capacity("spot", first)}, {"requirements": capacity("spot", second)}
    )
    assert bool(bundle.contradictions) == rejected


def test_required_affinity_of_overrides_is_anded_and_of_defaults_the_first_wins() -> None:
    """Defaults are taken whole or not at all."""

    def required(key: str) -> Json:
        terms = [{"matchExpressions": [{"key": key, "operator": "Exists"}]}]
        node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        return {"affinity": {"nodeAffinity": node}}

    hard = folded({"overrides": required("zone")}, {"overrides": required("gen")})
    assert hard.hard.terms == [
        {
            "matchExpressions": [
                {"key": "zone", "operator": "Exists"},
                {"key": "gen", "operator": "Exists"},
            ]
        }
    ]
    soft = folded({"defaults": required("zone")}, {"defaults": required("gen")})
    assert [w.policy for w in soft.required] == ["a"]


def test_equal_settings_of_two_policies_do_not_conflict() -> None:
    """The trace says that they agree."""
    bundle = folded({"overrides": selector("a")}, {"requirements": selector("a")})
    assert outcomes(bundle) == [("a", "nodeSelector[pool]", "kept")]
    assert not bundle.contradictions


def test_conditions_that_would_explode_drop_with_the_reason() -> None:
    """Rather than being computed."""

    def many(prefix: str) -> Json:
        terms = [
            {"matchExpressions": [{"key": f"{prefix}{at}", "operator": "Exists"}]}
            for at in range(40)
        ]
        node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        return {"affinity": {"nodeAffinity": node}}

    bundle = folded({"overrides": many("a")}, {"overrides": many("b")})
    assert outcomes(bundle) == [("b", "affinity.nodeAffinity.required", "dropped")]
    assert "1600 terms, over 1024" in bundle.trace[0].reason
