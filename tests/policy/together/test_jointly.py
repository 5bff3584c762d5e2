"""Policies that only together leave no node: told where each pod of the last meets them all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.laws.strategies import pods
from tests.laws.world import decided, policy_set
from tests.policy.together.test_warnings import policies_of, policy, spot, thorough, told
from tests.wording import mentions
from webhook.policy.together.jointly import jointly
from webhook.policy.together.required import required
from webhook.policy.together.warnings import of_policy, warnings

Json = dict[str, Any]


def within(*pools: str) -> Json:
    """A placement in one of some pools."""
    expression = {"key": "pool", "operator": "In", "values": list(pools)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


AB, BC, AC = (within(*each) for each in ("ab", "bc", "ac"))
A = policy("a", requirements=AB)
B = policy("b", requirements=BC)
ML = {"namespaces": ["ml-*"]}


@pytest.mark.parametrize(
    ("documents", "line"),
    [
        (
            [A, B, policy("c", requirements=AC)],
            ("placementpolicies/c", "policies 'a', 'b'"),
        ),
        (
            [A, B, policy("c", priority=9, match=ML, requirements=AC)],
            ("placementpolicies/c", "policies 'a', 'b'"),
        ),
        ([A, B, policy("c", requirements=AC, enforcement="Audit")], None),
        ([policy("a", requirements=AB, rollout=ML), B, policy("c", requirements=AC)], None),
        ([policy("a", requirements=AB, match=ML), B, policy("c", requirements=AC)],
            ("placementpolicies/a", "policies 'b', 'c'")),
        ([policy("a", requirements=AB, exclude=[{"roles": ["ps"]}]),
          policy("b", requirements=BC, exclude=[{"kinds": ["job"]}]),
          policy("c", requirements=AC, match={"kinds": ["job"]})], None),
        ([A, B, policy("c", overrides=AC)], None),
    ],
)  # fmt: skip
def test_requirements_that_only_together_leave_no_node_are_told(
    documents: list[Json], line: tuple[str, str] | None
) -> None:
    """At the policy that is for the fewest pods, or the last of those that are for the same."""
    found = told(*documents)
    assert len(found) == bool(line)
    for each in found:
        assert line
        place, others = line
        assert each.startswith(f"{place}: warning: spec.requirements: ")
        mentions(each, others, "no node", "every pod", "rejected")


def test_a_requirement_that_may_give_way_is_not_counted() -> None:
    """Somebody's None of a class comes before Constrain, and then leaves it nothing to say."""
    crowd = [
        policy("a", requirements=spot("Constrain")),
        policy("b", requirements={"nodeSelector": {"pool": "b"}}),
        policy("c", requirements=_either({"pool": "c"}, {"spot": "false"})),
    ]
    (line,) = told(*crowd)
    assert "placementpolicies/c: " in line
    assert told(*crowd, policy("d", match=ML, requirements=spot("None"))) == []


def _either(*terms: dict[str, str]) -> Json:
    """A placement on nodes that have the labels of one of the terms."""
    listed = [
        {"matchExpressions": [{"key": k, "operator": "In", "values": [v]} for k, v in each.items()]}
        for each in terms
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}
    return {"affinity": {"nodeAffinity": required}}


def test_two_that_contradict_are_told_as_two() -> None:
    """Of them a third one is no part, though it requires something of the same label."""
    found = told(policy("a", requirements=within("a")), B, policy("c", requirements=within("c")))
    assert len(found) == 2
    assert all("contradicts what" in line for line in found)


def test_who_writes_any_of_them_is_told() -> None:
    """The policy at which it is said may be another one, which matches fewer pods."""
    ready = policies_of(
        [A, B, policy("c", match=ML, requirements=AC), policy("d", requirements=within(*"abc"))]
    )
    for name in "abc":
        (finding,) = of_policy(ready, name)
        assert finding.file == "placementpolicies/c"
    assert of_policy(ready, "d") == []


def test_no_more_is_asked_than_somebody_waits_for() -> None:
    """Each policy is held against all others that require something."""
    ready = policies_of([A, B, policy("c", requirements=AC)])
    assert [
        len(list(jointly(list(required(ready)), frozenset(ready), most))) for most in (2, 3)
    ] == [0, 1]


few_pools = st.lists(st.sampled_from("abcd"), min_size=2, max_size=3, unique=True)
matches = st.sampled_from([{}, {}, ML, {"kinds": ["job"]}, {"roles": ["worker"], **ML}])
crowds = st.lists(
    st.tuples(matches, st.builds(lambda pools: within(*pools), few_pools)), min_size=3, max_size=5
)


@thorough
@given(crowds, st.lists(pods(), min_size=1, max_size=3), st.booleans())
def test_every_pod_of_such_a_policy_is_rejected(
    crowd: list[tuple[Json, Json]], some: list[Json], kueue: bool
) -> None:
    """Whatever else matches: by the engine itself."""
    documents = [
        policy(f"p{at}", match=match, requirements=wanted)
        for at, (match, wanted) in enumerate(crowd)
    ]
    found = [each for each in warnings(policies_of(documents)) if each.about == "jointly"]
    event(f"told: {bool(found)}")
    for finding in found:
        for pod in some:
            decision = decided(pod, policy_set(documents), kueue=kueue)
            if finding.file.partition("/")[2] in decision.policies:
                event("a pod that it matches")
                assert decision.result == "rejected", finding
