"""The policy set: order, hash, and an index that finds what trying each policy would find."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.strategies import document
from tests.laws.world import policy_set
from webhook.identity import Identity
from webhook.policy.subject import Subject

words = st.sampled_from(["a", "b", "ml-a", "ml-b"])
label_maps = st.dictionaries(words, words, max_size=3)


def lists(*choices: Any) -> st.SearchStrategy[list[Any]]:
    """One or two of the choices."""
    return st.lists(st.sampled_from(choices), min_size=1, max_size=2, unique=True)


selectors = st.fixed_dictionaries(
    {},
    optional={
        "matchLabels": st.dictionaries(words, words, min_size=1, max_size=2),
        "matchExpressions": st.lists(
            st.builds(
                lambda k, o: {"key": k, "operator": o},
                words,
                st.sampled_from(["Exists", "DoesNotExist"]),
            )
            | st.builds(
                lambda k, o, v: {"key": k, "operator": o, "values": v},
                words,
                st.sampled_from(["In", "NotIn"]),
                st.lists(words, min_size=1, max_size=2),
            ),
            min_size=1,
            max_size=2,
        ),
    },
)
matches = st.fixed_dictionaries(
    {},
    optional={
        "namespaces": lists("a", "ml-*", "b", "ml-?"),
        "namespaceSelector": selectors,
        "podSelector": selectors,
        "kinds": lists("job", "experiment"),
        "frameworks": lists("pytorch", "jax"),
        "roles": lists("worker", "master"),
        "replicaIndexes": lists(0, 1),
        "coordinator": st.booleans(),
        "resources": lists("nvidia.com/gpu", "cpu"),
        "volumes": lists("persistentVolumeClaim", "emptyDir"),
        "serviceAccounts": lists("default", "train*", "a.b", "a?b"),
    },
)
subjects = st.builds(
    Subject,
    words,
    label_maps,
    label_maps,
    st.builds(
        Identity,
        run=st.just("r"),
        kind=st.sampled_from(["job", "experiment", "core"]),
        framework=st.sampled_from(["pytorch", "jax", None]),
        role=st.sampled_from(["worker", "master", None]),
        replica_index=st.sampled_from([0, 1, 2, None]),
        source=st.just("fairlead"),
        coordinator=st.booleans(),
    ),
    st.frozensets(st.sampled_from(["cpu", "nvidia.com/gpu"])),
    st.frozensets(st.sampled_from(["persistentVolumeClaim", "emptyDir", "secret"])),
    st.sampled_from(["default", "trainer", "a.b", "a-b"]),
)


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
