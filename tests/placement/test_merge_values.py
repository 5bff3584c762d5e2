"""Which values a pod's author may choose (requirements.values)."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import event, given

from tests.laws.strategies import allowed_values, document, pods, policy_lists
from tests.laws.world import decided, patched, policy_set
from tests.wording import Wording, mentions
from webhook import names
from webhook.decision.decision import Decision
from webhook.policy.policy_documents import parse

Json = dict[str, Any]
GPU: Json = {"field": "nodeSelector", "key": "gpu", "oneOf": ["a100", "h100"]}
LOW: Json = {"field": "priorityClassName", "oneOf": ["low"]}


def pod(**spec: Any) -> Json:
    metadata = {"name": "p", "labels": {names.RUN: "r"}}
    return {"metadata": metadata, "spec": {"containers": [], **spec}}


def affinity(*terms: Json) -> Json:
    required = {"nodeSelectorTerms": [{"matchExpressions": [each]} for each in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def listed(*values: str, key: str = "gpu", operator: str = "In") -> Json:
    return {"key": key, "operator": operator, "values": [*values]}


def decide(what: Json, *values: Json, **parts: Json) -> Decision:
    """The decision under a policy with these lists of values, beside one with these parts."""
    found = [document("PlacementPolicy", "few", {"requirements": {"values": [*values]}})]
    if parts:
        found.append(document("PlacementPolicy", "more", parts))
    return decided(what, policy_set(found))


@pytest.mark.parametrize("stated", [False, True])
@pytest.mark.parametrize(
    ("spec", "said", "allowed"),
    [
        ({"nodeSelector": {"gpu": "a100"}}, True, True),
        ({"nodeSelector": {"gpu": "l4"}}, True, False),
        ({"nodeSelector": {"zone": "l4"}}, False, True),
        ({"affinity": affinity(listed("a100", "h100"))}, True, True),
        ({"affinity": affinity(listed("a100", "l4"))}, True, False),
        ({"affinity": affinity(listed("l4"), listed("b", key="zone"))}, False, False),
        ({"affinity": affinity(listed("a100"), listed("b", key="zone"))}, False, True),
        ({"affinity": affinity(listed("l4", operator="NotIn"))}, False, True),
    ],
)
def test_an_author_chooses_among_the_values(
    spec: Json, said: bool, allowed: bool, stated: bool
) -> None:
    """By nodeSelector, or by affinity, each of whose terms has to say it."""
    found = decide(pod(**spec), {**GPU, "stated": stated})
    assert found.allowed == (allowed and (said or not stated)), found.reason


@pytest.mark.parametrize(
    ("spec", "values", "facts"),
    [
        ({"nodeSelector": {"gpu": "l4"}}, GPU, ("nodeSelector[gpu] is 'l4'", "a100, h100")),
        ({}, {**GPU, "stated": True}, ("says nothing about nodeSelector[gpu]", "a100, h100")),
        ({"affinity": affinity(listed("l4"))}, GPU, ("affinity allows gpu", "'l4'")),
        ({"priorityClassName": "high"}, LOW, ("priorityClassName is 'high'", "allowed: low")),
        ({}, {**LOW, "stated": True}, ("says nothing about priorityClassName", "allowed: low")),
    ],
)
def test_a_rejection_says_the_field_the_value_and_what_is_allowed(
    spec: Json, values: Json, facts: tuple[str, ...], wording: Wording
) -> None:
    found = decide(pod(**spec), values)
    mentions(found.reason, "policy few: requirements.values", *facts)
    wording(found.reason)


def test_what_a_policy_sets_is_allowed() -> None:
    """Else a pod that Fairlead has placed would be rejected when the API server sends it again."""
    for parts in (
        {"overrides": {"nodeSelector": {"gpu": "l4"}}},
        {"defaults": {"affinity": affinity(listed("l4"))}},
    ):
        first = decide(pod(), GPU, **parts)
        assert first.allowed
        assert decide(patched(pod(), first), GPU, **parts).allowed
    assert decide(pod(), LOW, defaults={"priorityClassName": "high"}).allowed


def test_two_policies_must_both_allow_a_value() -> None:
    other = {"requirements": {"values": [{**GPU, "oneOf": ["h100"]}]}}
    assert decide(pod(nodeSelector={"gpu": "h100"}), GPU, **other).allowed
    assert not decide(pod(nodeSelector={"gpu": "a100"}), GPU, **other).allowed


@given(pods(), allowed_values(), policy_lists())
def test_a_pod_that_is_admitted_is_admitted_again(
    given_pod: Json, values: Json, policies: list[Json]
) -> None:
    """And without a change: the author's word was judged, and it still stands."""
    few = document("PlacementPolicy", "few", {"requirements": {"values": [values]}})
    wanted = policy_set([*policies, few])
    first = decided(given_pod, wanted)
    event(first.result)
    if first.allowed:
        again = decided(patched(given_pod, first), wanted)
        assert again.allowed, again.reason
        assert not again.patch


@pytest.mark.parametrize(
    ("values", "facts"),
    [
        ([{**GPU, "key": ""}], ("values[0].key", "is required")),
        ([{**LOW, "key": "gpu"}], ("values[0].key", "priorityClassName has no keys")),
        ([GPU, GPU], ("values[1]", "already used by [0]")),
        ([{**GPU, "oneOf": []}], ("values[0].oneOf", "is empty")),
        ([{**GPU, "oneOf": ["a b"]}], ("values[0].oneOf[0]", "'a b'")),
        (
            [{"field": "nodeSelectors", "key": "a", "oneOf": ["a"]}],
            ("did you mean", "nodeSelector"),
        ),
    ],
)
def test_a_list_that_cannot_be_meant_is_an_error(
    values: list[Json], facts: tuple[str, ...], wording: Wording
) -> None:
    few = document("PlacementPolicy", "few", {"requirements": {"values": values}})
    text = "\n".join(map(str, parse({"p.json": orjson.dumps(few)}).errors))
    mentions(text, *facts)
    wording(text)
