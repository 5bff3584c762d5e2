"""Merging of node fields: the corners that no random pod comes to often."""

from __future__ import annotations

from typing import Any

import pytest

from tests.laws.strategies import REQUIRED, document
from tests.laws.world import decided, patched, policy_set
from tests.objects import required_affinity
from tests.wording import mentions
from webhook import names

Json = dict[str, Any]


def pod(*terms: Json, **selector: str) -> Json:
    """A pod of a run with required terms and a nodeSelector."""
    spec: Json = {"containers": [], "nodeSelector": selector}
    if terms:
        spec["affinity"] = required_affinity(*terms)
    return {"metadata": {"labels": {names.RUN: "r"}}, "spec": spec}


def one_of(**values: str) -> Json:
    """A term in which each label has the value."""
    return {
        "matchExpressions": [
            {"key": key, "operator": "In", "values": [value]} for key, value in values.items()
        ]
    }


def policy(**spec: Any) -> Json:
    """The policy p."""
    return document("PlacementPolicy", "p", spec)


def test_a_required_key_of_another_value_rejects_a_pod_that_was_lost_before() -> None:
    """It is neither changed, which would widen the pod, nor kept."""
    lost = pod(one_of(pool="b"), pool="a")
    decision = decided(lost, policy_set([policy(requirements={"nodeSelector": {"pool": "b"}})]))
    assert not decision.allowed
    mentions(decision.reason, "nodeSelector[pool]", "'b'", "'a'")


@pytest.mark.parametrize(
    "overrides",
    [
        {"nodeSelector": {"zone": "b"}},
        {"capacity": [{"class": "zone-b", "mode": "Constrain"}]},
    ],
)
def test_an_override_does_not_set_a_pod_free_that_contradicts_itself(overrides: Json) -> None:
    """It changes the word by which the pod contradicts itself: the requirement must hold then."""
    zone_b = document("CapacityClass", "zone-b", {"nodes": [{"labels": {"zone": "b"}}]})
    spec = {"overrides": overrides, "requirements": {"nodeSelector": {"pool": "a"}}}
    compiled = policy_set([policy(**spec)], [zone_b])
    decision = decided(pod(one_of(zone="b"), zone="a", pool="b"), compiled)
    assert not decision.allowed
    mentions(decision.reason, "nodeSelector[pool]", "'a'", "'b'")


def test_the_reason_of_a_rejection_is_reported_once() -> None:
    """By the requirement that rejects it."""
    compiled = policy_set([policy(requirements={"nodeSelector": {"pool": "b"}})])
    decision = decided(pod(pool="a"), compiled)
    (entry,) = decision.trace
    assert (decision.allowed, entry.outcome) == (False, "rejected")


def test_a_default_looks_at_the_terms_that_pruning_leaves() -> None:
    """The second call sees only those, and has to decide the same."""
    a_and_b = [*one_of(pool="a")["matchExpressions"], *one_of(pool="b")["matchExpressions"]]
    what = pod(one_of(zone="a"), {"matchExpressions": a_and_b})
    compiled = policy_set([policy(defaults={"nodeSelector": {"pool": "a", "gen": "1"}})])
    decision = decided(what, compiled)
    after = patched(what, decision)
    assert after["spec"]["nodeSelector"] == {"pool": "a", "gen": "1"}
    terms = after["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert terms == [one_of(zone="a")]
    assert not decided(after, compiled).patch


def test_a_default_that_leaves_no_node_stands_back_and_the_next_one_is_tried() -> None:
    """Each by itself, in the order of the fold."""
    what = pod(one_of(zone="c", spot="true"))
    settings = [{"class": "pool-b", "mode": "Constrain"}]
    compiled = policy_set([policy(defaults={"capacity": settings, "nodeSelector": {"pool": "a"}})])
    decision = decided(what, compiled)
    after = patched(what, decision)
    assert after["spec"]["nodeSelector"] == {"pool": "a"}
    assert not any(w for w in decision.warnings if "nodeSelector" in w)
    assert not decided(after, compiled).patch


def test_a_pod_with_more_terms_than_can_be_computed_is_refused_with_the_count() -> None:
    """As it comes, it may have as many terms as are computed; what is ANDed multiplies them."""
    what = pod(*(one_of(zone=f"z{at}") for at in range(600)))
    setting = {"capacity": [{"class": "pool-b", "mode": "Constrain"}]}
    decision = decided(what, policy_set([policy(overrides=setting)]))
    assert not decision.allowed
    assert "1200 terms, over 1024" in decision.reason
    assert decided(what, policy_set([policy(overrides={"labels": {"a": "b"}})])).allowed


def test_a_pod_whose_values_come_to_more_than_can_be_computed_is_refused() -> None:
    """Before they are multiplied."""
    names = [f"node-{at}" for at in range(40_000)]
    term = {"matchExpressions": [{"key": "host", "operator": "In", "values": names}]}
    setting = {"capacity": [{"class": "pool-b", "mode": "Constrain"}]}
    decision = decided(pod(term), policy_set([policy(overrides=setting)]))
    assert not decision.allowed
    assert "values, over 65536" in decision.reason


def test_a_default_with_which_there_would_be_too_many_terms_stands_back() -> None:
    """It rejects nobody; the other defaults still apply, and a second call decides the same."""
    what = pod(*(one_of(gen=f"{at}") for at in range(600)))
    settings = [{"class": "pool-b", "mode": "Constrain"}]
    spec = {"defaults": {"capacity": settings, "nodeSelector": {"rack": "r1"}}}
    compiled = policy_set([policy(**spec)])
    decision = decided(what, compiled)
    after = patched(what, decision)
    assert after["spec"]["nodeSelector"] == {"rack": "r1"}
    assert any("capacity[pool-b]: yields" in warning for warning in decision.warnings)
    assert not decided(after, compiled).patch
