"""Merging of node fields: what an author or a policy may multiply has a limit."""

from __future__ import annotations

from typing import Any

from tests.laws.strategies import document
from tests.laws.world import decided, patched, policy_set
from tests.objects import required_affinity
from tests.wording import mentions
from webhook import names
from webhook.placement.node_affinity import MOST_AVOIDED

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
    return document("PlacementPolicy", "p", spec)


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


def test_conditions_of_policies_that_would_explode_drop_with_the_reason() -> None:
    """Rather than being computed."""
    settings = [
        {"affinity": required_affinity(*(one_of(**{f"{key}{at}": "x"}) for at in range(40)))}
        for key in "ab"
    ]
    compiled = policy_set(
        document("PlacementPolicy", name, {"overrides": each})
        for name, each in zip("ab", settings, strict=True)
    )
    dropped = [each for each in compiled.bundle((0, 1)).trace if each.outcome == "dropped"]
    (entry,) = dropped
    assert (entry.policy, entry.field) == ("b", "affinity.nodeAffinity.required")
    assert "1600 terms, over 1024" in entry.reason


def test_the_number_of_nodes_to_avoid_is_bounded() -> None:
    """What would be too large is left out, with a warning; the pod is placed."""
    none = policy_set([])
    many = ",".join(f"n{number}" for number in range(3 * MOST_AVOIDED))
    for terms, left in ((0, MOST_AVOIDED), (500, 0)):
        what = pod(*(one_of(**{f"k{at}": "x"}) for at in range(terms)))
        what["metadata"]["annotations"] = {names.AVOID_NODES: many}
        found = decided(what, none)
        assert found.placement is not None
        avoided = [
            each for term in found.placement.required or () for each in term.get("matchFields", ())
        ]
        assert (found.allowed, len(avoided)) == (True, left)
        assert any(names.AVOID_NODES in each for each in found.warnings)


def test_keys_of_a_flavor_that_no_policy_names_cost_nothing() -> None:
    """A pod's author may write as many keys as a request holds: each would cost more than the last.

    Before, this took hours.
    """
    what = pod(pool="a", **{f"key-{at}": "a" for at in range(20_000)})
    what["metadata"]["labels"][names.KUEUE_PODSET] = "main"
    compiled = policy_set([policy(overrides={"nodeSelector": {"pool": "b"}})])
    (warning,) = decided(what, compiled, kueue=True).warnings
    mentions(warning, "policy p: nodeSelector[pool]: ", "wants 'b'", "kept 'a'", "Kueue")
