"""The policy set: order, hash, and an index that finds what trying each policy would find."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.strategies import document
from tests.laws.world import policy_set
from tests.policy.test_matched_pods import matches, subjects
from webhook.policy.model import PlacementPolicy
from webhook.policy.policy_set import Compiler, PolicySet
from webhook.policy.subject import Subject


@settings(deadline=None)
@given(st.lists(matches, min_size=1, max_size=8), subjects)
def test_the_index_finds_what_trying_each_policy_would_find(
    blocks: list[Any], subject: Subject
) -> None:
    """No policy is lost by not being tried, and the order is the set's."""
    compiled = policy_set(
        document("PlacementPolicy", f"p{at}", {"match": m, "defaults": {"labels": {"x": "y"}}})
        for at, m in enumerate(blocks)
    )
    expected = [at for at, p in enumerate(compiled.policies) if p.matches(subject)]
    assert list(compiled.matching(subject)) == expected
    for at, policy in enumerate(compiled.policies):
        reason = policy.failed(subject)
        assert (reason is None) == (at in expected), reason


@settings(deadline=None)
@given(
    st.lists(matches, min_size=1, max_size=8),
    st.lists(st.sets(st.integers(0, 7)), min_size=1, max_size=6),
    st.lists(subjects, min_size=1, max_size=3),
    st.integers(0, 8),
)
def test_an_index_of_another_set_finds_what_a_new_one_would_find(
    blocks: list[Any], sets: list[set[int]], pods: list[Subject], unindexed: int
) -> None:
    """Whatever has been added and taken away since it was made."""
    documents = [
        document(
            "PlacementPolicy",
            f"p{at}",
            {"priority": at % 3, "match": m, "defaults": {"labels": {"x": "y"}}},
        )
        for at, m in enumerate(blocks)
    ]
    models = [PlacementPolicy.model_validate(each) for each in documents]
    compiler = Compiler()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("webhook.policy.index.MOST_UNINDEXED", unindexed)
        for chosen in sets:
            some = [model for at, model in enumerate(models) if at in chosen]
            made, alone = PolicySet(some, {}, "", compiler=compiler), PolicySet(some, {}, "")
            for pod in pods:
                expected = [at for at, each in enumerate(alone.policies) if each.matches(pod)]
                assert list(made.matching(pod)) == list(alone.matching(pod)) == expected


def test_policies_go_by_priority_and_then_by_name() -> None:
    """Higher first."""
    made = policy_set(
        document("PlacementPolicy", name, {"priority": p, "defaults": {"labels": {"x": "y"}}})
        for name, p in (("b", 1), ("c", 9), ("a", 1), ("d", -4))
    )
    assert [p.name for p in made.policies] == ["c", "a", "b", "d"]


def test_the_hash_depends_only_on_the_content() -> None:
    """Another order gives the same hash, another word another one."""
    one = document("PlacementPolicy", "a", {"defaults": {"labels": {"x": "y"}}})
    two = document("PlacementPolicy", "b", {"defaults": {"labels": {"x": "y"}}})
    other = document("PlacementPolicy", "b", {"defaults": {"labels": {"x": "z"}}})
    assert policy_set([one, two]).hash == policy_set([two, one]).hash
    assert policy_set([one, two]).hash != policy_set([one, other]).hash
    assert len(policy_set([]).hash) == 64
