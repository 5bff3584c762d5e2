"""Policies among themselves: who wins a key, what drops, and when the bundle contradicts itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests.laws.strategies import document
from tests.laws.world import policy_set
from tests.wording import Wording, mentions
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


def test_the_first_policy_wins_a_key_and_the_other_is_lost() -> None:
    """By priority; the trace names who decides."""
    bundle = folded({"overrides": selector("a")}, {"overrides": selector("b")})
    assert bundle.hard.selector == {"pool": "a"}
    assert outcomes(bundle) == [("b", "nodeSelector[pool]", "lost")]
    assert "policy a (overrides) sets it" in bundle.trace[0].reason
    assert not bundle.warnings


def test_a_requirement_comes_before_any_override_and_an_override_before_any_default() -> None:
    """Whatever their priorities."""
    bundle = folded(
        {"defaults": selector("a")}, {"overrides": selector("a")}, {"requirements": selector("b")}
    )
    assert bundle.hard.selector == {"pool": "b"}
    assert outcomes(bundle) == [
        ("b", "nodeSelector[pool]", "lost"),
        ("a", "nodeSelector[pool]", "lost"),
    ]


def test_two_requirements_that_contradict_each_other_are_both_named(wording: Wording) -> None:
    """Neither drops; every pod that both match is rejected."""
    bundle = folded({"requirements": selector("a")}, {"requirements": selector("b")})
    (message,) = bundle.contradictions
    mentions(message, "nodeSelector[pool]", "policy a requires 'a'", "policy b requires 'b'")
    wording(message)


def test_two_long_values_are_cut_so_that_they_differ() -> None:
    """Whoever reads it sees what is to be changed."""
    same = "x" * 100
    one, two = ({"annotations": {"note": f"{same}{end}"}} for end in "12")
    bundle = folded({"requirements": one}, {"requirements": two})
    for text in (bundle.contradictions[0], bundle.trace[0].reason):
        mentions(text, "xx1'", "xx2'")


def test_a_setting_that_leaves_no_node_with_an_earlier_one_drops_with_a_warning(
    wording: Wording,
) -> None:
    """Even where they are about different fields."""
    bundle = folded({"overrides": selector("a")}, {"overrides": capacity("pool-b", "Constrain")})
    # pool-b has a second shape, in zone c, that is still possible.
    assert not bundle.warnings
    bundle = folded(
        {"overrides": {"nodeSelector": {"pool": "a", "zone": "a"}}},
        {"overrides": capacity("pool-b", "Constrain")},
    )
    assert outcomes(bundle) == [("b", "capacity[pool-b]", "dropped")]
    (warning,) = bundle.warnings
    mentions(warning, "policy b: capacity[pool-b]", "dropped", "policy a")
    wording(warning)


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


def test_none_silences_later_policies_and_the_defaults() -> None:
    """It leaves the pod alone, whatever later policies say of the class."""
    bundle = folded(
        {"overrides": capacity("spot", "None")},
        {"overrides": capacity("spot", "Constrain")},
        {"defaults": capacity("spot", "Prefer")},
    )
    assert [w.mode for w in bundle.capacity] == ["None"]
    assert bundle.hard.terms is None


def test_tolerations_join_and_what_is_covered_is_not_repeated() -> None:
    """Coverage, not equality."""
    broad = {"key": "gpu", "operator": "Exists"}
    narrow = {"key": "gpu", "operator": "Equal", "value": "x", "effect": "NoSchedule"}
    bundle = folded(
        {"overrides": {"tolerations": [broad]}}, {"defaults": {"tolerations": [narrow]}}
    )
    assert [w.toleration for w in bundle.tolerations] == [broad]
    bundle = folded(
        {"overrides": {"tolerations": [narrow]}}, {"defaults": {"tolerations": [broad]}}
    )
    assert [w.toleration for w in bundle.tolerations] == [narrow, broad]


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
