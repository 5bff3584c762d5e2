"""The toleration algebra against every taint of a small world."""

from __future__ import annotations

import itertools
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from tests.laws import scheduler, strategies
from webhook.placement.shapes import Taint, Toleration
from webhook.placement.tolerations import (
    covers,
    joined,
    meeting_points,
    normal,
    overlaps,
    tolerates,
    untolerated,
    with_seconds,
    within,
)

KEYS = (*strategies.TAINT_KEYS, "node.kubernetes.io/not-ready", "never-named")
TAINTS: list[Taint] = [
    {"key": key, "value": value, "effect": effect}
    for key, value, effect in itertools.product(
        KEYS, ("true", "false", "9", ""), strategies.EFFECTS
    )
]
tolerations = cast("st.SearchStrategy[Toleration]", strategies.tolerations())
lists = st.lists(tolerations, max_size=4)


def admitted(toleration: Toleration) -> list[Taint]:
    """Every taint of the world that the toleration admits, by the independent model."""
    pod = {"spec": {"tolerations": [toleration]}}
    return [t for t in TAINTS if scheduler.tolerated(pod, cast("dict[str, str]", t))]


@given(tolerations)
def test_a_toleration_admits_what_the_scheduler_says(toleration: Toleration) -> None:
    """Equal and Exists, with and without key, value and effect."""
    assert [t for t in TAINTS if tolerates(toleration, t)] == admitted(toleration)


@given(tolerations, tolerations)
def test_one_covers_another_if_it_admits_all_that_the_other_does(
    one: Toleration, other: Toleration
) -> None:
    """Coverage, not equality; how long a taint is tolerated does not count."""
    inside = all(taint in admitted(one) for taint in admitted(other))
    assert covers(one, other) == inside


@given(tolerations, tolerations)
def test_two_overlap_if_some_taint_is_admitted_by_both(one: Toleration, other: Toleration) -> None:
    """Which is where the order of the two counts for eviction."""
    common = [taint for taint in admitted(one) if taint in admitted(other)]
    assert overlaps(one, other) == bool(common)


@given(tolerations, tolerations)
def test_two_meet_if_they_overlap(one: Toleration, other: Toleration) -> None:
    """So one pass over two lists finds what comparing all pairs would; either may look."""
    found, wanted = meeting_points(one)
    other_found, other_wanted = meeting_points(other)
    assert bool({*found} & {*other_wanted}) == overlaps(one, other)
    assert bool({*other_found} & {*wanted}) == overlaps(one, other)


@given(lists, lists)
def test_joined_admits_what_either_does_and_repeats_nothing(
    first: list[Toleration], then: list[Toleration]
) -> None:
    """The first list stays as it is, and joining again adds nothing."""
    result = joined(first, then)
    pods = [{"spec": {"tolerations": part}} for part in (first, then, result)]
    for taint in cast("list[dict[str, str]]", TAINTS):
        either = scheduler.tolerated(pods[0], taint) or scheduler.tolerated(pods[1], taint)
        assert scheduler.tolerated(pods[2], taint) == either
    assert result[: len(first)] == first
    assert joined(result, then) == result


def seconds_by_eviction(tolerations: list[Toleration], taint: Taint) -> Any:
    """What eviction reads: the seconds of the first toleration that matches."""
    for toleration in tolerations:
        if tolerates(toleration, taint):
            return ("tolerated for", toleration.get("tolerationSeconds"))
    return "evicted"


no_execute = strategies.tolerations(everything=False).map(
    lambda t: cast("Toleration", {**t, "effect": "NoExecute"})
)


@given(lists, st.lists(no_execute, max_size=3))
def test_specific_seconds_win_over_whatever_tolerates_the_same_taint(
    own: list[Toleration], specific: list[Toleration]
) -> None:
    """The earlier of the specific ones decides, then the pod's own; doing it twice is once."""
    result = with_seconds(own, specific)
    for taint in TAINTS:
        if taint["effect"] == "NoExecute":
            assert seconds_by_eviction(result, taint) == seconds_by_eviction(
                [*specific, *own], taint
            )
    assert with_seconds(result, specific) == result


def test_an_operator_that_is_not_known_is_never_interpreted() -> None:
    """It covers its like and admits nothing that we could tell."""
    greater: Toleration = {"key": "gen", "operator": "Gt", "value": "5"}
    assert covers(greater, greater.copy())
    assert not covers({"key": "gen", "operator": "Exists", "effect": "NoSchedule"}, greater)
    assert not tolerates(greater, {"key": "gen", "value": "9", "effect": "NoSchedule"})
    assert joined([], [greater]) == [greater]


def test_the_normal_form_writes_defaults_out() -> None:
    """Two tolerations that Kubernetes cannot tell apart are equal in normal form."""
    assert normal({"key": "a"}) == normal({"key": "a", "operator": "Equal", "value": ""})
    assert normal({"key": "a", "operator": "Exists"}) != normal({"key": "a"})


def test_a_preference_keeps_no_pod_off_a_node() -> None:
    """PreferNoSchedule needs no toleration."""
    soft: Taint = {"key": "a", "effect": "PreferNoSchedule"}
    hard: Taint = {"key": "b", "effect": "NoExecute"}
    assert untolerated([soft, hard], []) == hard
    assert untolerated([soft], []) is None


def test_a_toleration_is_within_a_broader_one_for_the_same_time() -> None:
    """A longer time, or none, is another thing to whoever is evicted."""
    broad: Toleration = {"operator": "Exists", "tolerationSeconds": 300}
    narrow: Toleration = {"key": "a", "operator": "Exists", "tolerationSeconds": 300}
    assert within(narrow, broad)
    assert not within(broad, narrow)
    assert not within({**narrow, "tolerationSeconds": 30}, broad)
    assert not within(narrow, {"operator": "Exists"})
