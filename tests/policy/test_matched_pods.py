"""What is proved of two blocks of conditions holds for every pod."""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from webhook.dns_names import is_label
from webhook.identity import Identity
from webhook.placement.quantity import NANOS
from webhook.policy import conditions
from webhook.policy.match_model import Match
from webhook.policy.matched_pods import MatchedPods, includes, overlap
from webhook.policy.subject import Subject

Json = dict[str, Any]
LABELS = ("a", "b")
VALUES = ("1", "2", "3")
NAMESPACES = ("ml", "ml-a", "ml-b", "web")


def several(*values: Any) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)


expressions = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        st.sampled_from(LABELS),
        st.sampled_from(["In", "NotIn"]),
        several(*VALUES),
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator},
        st.sampled_from(LABELS),
        st.sampled_from(["Exists", "DoesNotExist"]),
    ),
)
selectors = st.builds(
    lambda pairs, each: {"matchLabels": pairs, "matchExpressions": each},
    st.dictionaries(st.sampled_from(LABELS), st.sampled_from(VALUES), max_size=1),
    st.lists(expressions, max_size=2),
)
ranges = st.builds(
    lambda resource, bounds: {"resource": resource, **bounds},
    st.sampled_from(["cpu", "nvidia.com/gpu"]),
    st.sampled_from(
        [{"atLeast": 2}, {"atLeast": "500m"}, {"atMost": 2}, {"atLeast": 1, "atMost": "3"}]
    ),
)
matches = st.fixed_dictionaries(
    {},
    optional={
        "namespaces": several("ml", "ml-a", "ml-*", "*", "web", "m?"),
        "namespaceSelector": selectors,
        "podSelector": selectors,
        "annotationSelector": selectors,
        "kinds": several("job", "experiment"),
        "frameworks": several("pytorch", "mpi"),
        "roles": several("worker", "master"),
        "replicaIndexes": several(0, 1),
        "coordinator": st.booleans(),
        "resources": several("cpu", "nvidia.com/gpu", "nvidia.com/*", "*", "c?u"),
        "requests": st.lists(ranges, min_size=1, max_size=2),
        "resourceClaims": st.booleans(),
        "volumes": several("secret", "nfs"),
        "serviceAccounts": several("default", "train*", "a.b", "a?b", "*"),
    },
)
labels = st.dictionaries(st.sampled_from(LABELS), st.sampled_from(VALUES))
amounts = st.dictionaries(
    st.sampled_from(["cpu", "nvidia.com/gpu"]), st.sampled_from([1, 2, 3, 4]).map(NANOS.__mul__)
)
subjects = st.builds(
    lambda *parts: Subject(*parts)._replace(resources=frozenset(parts[-2])),
    st.sampled_from(NAMESPACES),
    labels,
    labels,
    st.builds(
        lambda run, kind, framework, role, index, source, leads: Identity(
            run, kind, framework, role, index, source, leads or role == "master"
        ),
        st.just("r"),
        st.sampled_from(["job", "experiment"]),
        st.sampled_from([None, "pytorch", "mpi"]),
        st.sampled_from([None, "worker", "master"]),
        st.sampled_from([None, 0, 1]),
        st.just("x"),
        st.booleans(),
    ),
    st.just(frozenset[str]()),
    st.frozensets(st.sampled_from(["secret", "nfs"])),
    st.sampled_from(["default", "trainer", "a.b", "axb"]),
    labels,
    amounts,
    st.booleans(),
)


def match(written: Json) -> Match:
    """The block as a document writes it."""
    return Match.model_validate(written)


def holds(written: Json, subject: Subject) -> bool:
    """Whether the pod meets the block."""
    return conditions.block(match(written)).holds(subject)


def covers(one: Json, two: Json) -> bool:
    """Whether the first block is proved to take in all of the second."""
    return MatchedPods(match(one)).covers(MatchedPods(match(two)))


def apart(one: Json, two: Json) -> bool:
    """Whether no pod meets both."""
    return MatchedPods(match(one)).is_disjoint(MatchedPods(match(two)))


@settings(max_examples=examples(200), deadline=None)
@given(matches, matches, st.lists(subjects, min_size=1, max_size=5))
def test_what_is_proved_holds_for_every_pod(one: Json, two: Json, pods: list[Subject]) -> None:
    """Who is covered is never met by a pod alone; those apart are never met by one pod."""
    narrowed = {**one, **two}
    for wide, narrow in ((one, two), (one, narrowed)):
        proved, never = covers(wide, narrow), apart(wide, narrow)
        assert never == apart(narrow, wide)
        for pod in pods:
            if holds(narrow, pod):
                assert not proved or holds(wide, pod)
                assert not never or not holds(wide, pod)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ({}, {"roles": ["worker"]}),
        ({"namespaces": ["*"]}, {}),
        ({"namespaces": ["ml-*"]}, {"namespaces": ["ml-a", "ml-b"]}),
        ({"namespaces": ["ml-*"]}, {"namespaces": ["ml-*"], "kinds": ["job"]}),
        ({"kinds": ["job", "experiment"]}, {"kinds": ["job"]}),
        ({"resources": ["cpu", "nvidia.com/gpu"]}, {"resources": ["cpu"]}),
        ({"serviceAccounts": ["train*"]}, {"serviceAccounts": ["trainer"]}),
        (
            {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
            {"podSelector": {"matchLabels": {"a": "1"}}},
        ),
        (
            {
                "podSelector": {
                    "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["2"]}]
                }
            },
            {"podSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}},
        ),
    ],
)
def test_a_wider_block_is_recognized(wide: Json, narrow: Json) -> None:
    """And the narrower one to be none."""
    assert covers(wide, narrow)
    if wide != {"namespaces": ["*"]}:
        assert not covers(narrow, wide)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"namespaces": ["ml-a"]}, {"namespaces": ["ml-b"]}),
        ({"namespaces": ["ml-*"]}, {"namespaces": ["web"]}),
        ({"roles": ["worker"]}, {"roles": ["master"]}),
        ({"coordinator": True}, {"coordinator": False}),
        ({"serviceAccounts": ["train*"]}, {"serviceAccounts": ["default"]}),
        (
            {"namespaceSelector": {"matchLabels": {"team": "a"}}},
            {"namespaceSelector": {"matchLabels": {"team": "b"}}},
        ),
        (
            {"namespaces": ["ml-a", "web"]},
            {
                "namespaceSelector": {
                    "matchExpressions": [
                        {
                            "key": "kubernetes.io/metadata.name",
                            "operator": "NotIn",
                            "values": ["ml-a", "ml-b", "web"],
                        }
                    ]
                }
            },
        ),
    ],
)
def test_blocks_without_a_common_pod_are_disjoint(one: Json, two: Json) -> None:
    """By each condition of which a pod has but one value."""
    assert apart(one, two)
    assert apart(two, one)


@pytest.mark.parametrize(
    ("one", "two", "common"),
    [
        ("lab-1-*", "lab-10-*", False),
        ("team-?", "team-1", True),
        ("ml-*", "*-dev", True),
        ("ml-*", "ml-a-*", True),
        ("a*b", "*c", False),
        ("a?", "a-", False),
        ("*-x-*", "y*", True),
        ("-*", "*", False),
        ("*-", "*", False),
        ("ab*", "a*bc*", True),
    ],
)
def test_two_globs_are_compared_by_the_names_they_share(one: str, two: str, common: bool) -> None:
    """Names that a namespace can have."""
    assert overlap(one, two) is overlap(two, one) is common
    assert apart({"namespaces": [one]}, {"namespaces": [two]}) is not common


globs = st.text("ab-*?", min_size=1, max_size=5)


@settings(max_examples=examples(200), deadline=None)
@given(globs, globs, st.lists(st.text("ab-", min_size=1, max_size=6), min_size=1, max_size=5))
def test_what_two_globs_share_is_never_missed(one: str, two: str, some: list[str]) -> None:
    """By fnmatch."""
    for name in some:
        in_one, in_two = (fnmatch.fnmatchcase(name, each) for each in (one, two))
        if in_two and includes(one, two):
            assert in_one
        if in_one and in_two and is_label(name):
            assert overlap(one, two)


def test_globs_of_many_stars_take_no_longer_than_others() -> None:
    """Anybody may post one, and each is held against all others: tried in turn, they take years."""
    stars, name = "*a" * 31, "a" * 62 + "b"
    for glob in (stars, stars.replace("a*a", "a*?", 7)):
        assert not includes(glob, name)
        assert not overlap(glob, name)
        assert not overlap(name, glob)
        assert conditions.globs([glob]).match(name) is None


def test_of_very_many_globs_nothing_is_proved() -> None:
    """To hold each against each takes too long."""
    one = {"namespaces": [f"a{at}-*" for at in range(100)]}
    two = {"namespaces": [f"b{at}-*" for at in range(100)]}
    assert not apart(one, two)
    assert not covers(one, {"namespaces": [f"a{at}-*-x" for at in range(100)]})
    assert covers(one, one)


def test_different_namespace_globs_are_not_reported_as_overlapping() -> None:
    """As eleven teams are written."""
    teams = [{"namespaces": [f"team-{at}", f"lab-{at}-*"]} for at in range(1, 12)]
    assert all(apart(one, two) for one in teams for two in teams if one is not two)


def test_a_role_that_leads_is_a_coordinators() -> None:
    """Whatever its framework."""
    assert covers({"coordinator": True}, {"roles": ["master", "chief"]})
    assert not covers({"coordinator": True}, {"roles": ["master", "worker"]})
    assert apart({"coordinator": False}, {"roles": ["head"]})
    assert not apart({"coordinator": True}, {"roles": ["worker"]})


def test_a_pod_may_ask_for_several_resources() -> None:
    """So other resources, or volumes, keep nobody apart."""
    assert not apart({"resources": ["cpu"]}, {"resources": ["nvidia.com/gpu"]})


def test_service_accounts_may_have_longer_names_than_namespaces() -> None:
    """What two globs have in common may be a name of over 63 characters, with dots."""
    one, two = f"{'a' * 50}*", f"*{'b' * 50}"
    assert not apart({"serviceAccounts": [one]}, {"serviceAccounts": [two]})
    assert not apart({"serviceAccounts": ["a.*"]}, {"serviceAccounts": ["*.b"]})
