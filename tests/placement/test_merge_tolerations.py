"""Which tolerations pods may have of their own (requirements.allowedTolerations)."""

from __future__ import annotations

from itertools import chain, product
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.laws import scheduler
from tests.laws.strategies import (
    EFFECTS,
    TAINT_KEYS,
    document,
    some,
    toleration_patterns,
    tolerations,
)
from tests.laws.world import decided, patched, policy_set
from tests.wording import mentions
from webhook import names
from webhook.decision.decision import Decision
from webhook.placement.tolerations import Pattern

Json = dict[str, Any]
GPU: Json = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
TEAM_A: Json = {"key": "team", "value": "a", "effect": "NoSchedule"}
EVERY: Json = {"operator": "Exists"}
NOT_READY: Json = {
    "key": names.TAINT_NOT_READY,
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 300,
}


def pod(*own: Json, asks: str = "", **spec: Any) -> Json:
    """A pod of a run with tolerations of its own."""
    annotations = {names.CAPACITY: asks} if asks else {}
    metadata = {"labels": {names.RUN: "r"}, "annotations": annotations}
    return {"metadata": metadata, "spec": {"containers": [], "tolerations": [*own], **spec}}


def decide(what: Json, *patterns: Json, remove: bool = False, **parts: Json) -> Decision:
    """The decision under a policy that allows these, beside one with these parts."""
    allowed = {"allowedTolerations": {"patterns": [*patterns], "remove": remove}}
    found = [document("PlacementPolicy", "few", {"requirements": allowed})]
    if parts:
        found.append(document("PlacementPolicy", "more", parts))
    return decided(what, policy_set(found))


@pytest.mark.parametrize(
    ("pattern", "toleration", "allows"),
    [
        (Pattern("nvidia.com/gpu"), GPU, True),
        (Pattern("nvidia.com/*"), GPU, True),
        (Pattern("nvidia.com/gpu", effect="NoExecute"), GPU, False),
        (Pattern("nvidia.com/gpu", "a"), GPU, False),
        (Pattern("team"), TEAM_A, True),
        (Pattern("team", "a"), TEAM_A, True),
        (Pattern("team", "b"), TEAM_A, False),
        (Pattern("tea"), TEAM_A, False),
        (Pattern("*"), EVERY, True),
        (Pattern("*", effect="NoSchedule"), EVERY, False),
        (Pattern("t*"), EVERY, False),
        (Pattern("team"), {"key": "team", "operator": "Lt", "value": "3"}, False),
        (Pattern("team", ""), {"key": "team"}, True),
    ],
)
def test_a_pattern_covers_whole_tolerations(
    pattern: Pattern, toleration: Json, allows: bool
) -> None:
    """What is broader than it is not allowed by it."""
    assert pattern.allows(toleration) == allows  # type: ignore[arg-type]


def test_another_toleration_rejects_the_pod_with_the_list() -> None:
    """The whole answer: which one, and what is allowed."""
    decision = decide(pod(GPU, EVERY), {"key": "nvidia.com/gpu"}, TEAM_A)
    assert decision.result == "rejected"
    mentions(
        decision.reason,
        "policy few: requirements.allowedTolerations",
        "the pod tolerates *: remove it",
        "allowed are nvidia.com/gpu, team=a:NoSchedule",
    )


def test_remove_takes_it_away_with_a_warning() -> None:
    """The rest stays as it was."""
    what = pod(GPU, EVERY)
    decision = decide(what, {"key": "nvidia.com/*"}, remove=True)
    assert patched(what, decision)["spec"]["tolerations"] == [GPU]
    mentions(" ".join(decision.warnings), "policy few: allowedTolerations", "takes away *")


def test_a_pod_that_names_its_node_is_rejected_in_any_case() -> None:
    """Its tolerations are not changed, and would keep it on a tainted node."""
    assert decide(pod(EVERY, nodeName="n"), remove=True).result == "rejected"


@pytest.mark.parametrize(
    ("own", "parts"),
    [
        ([NOT_READY], {}),
        ([TEAM_A], {"defaults": {"tolerations": [TEAM_A]}}),
        (
            [{"key": "spot", "value": "true", "effect": "NoSchedule"}],
            {"overrides": {"capacity": [{"class": "spot", "mode": "Constrain"}]}},
        ),
    ],
)
def test_what_the_api_server_and_policies_add_is_allowed(own: list[Json], parts: Json) -> None:
    """Also if the pod has it already, as one that they have placed before."""
    assert decide(pod(*own), **parts).allowed
    assert decide(pod(), **parts).allowed


@pytest.mark.parametrize(
    ("resources", "toleration", "allows"),
    [
        ({"requests": {"nvidia.com/gpu": "1"}}, GPU, True),
        ({"limits": {"nvidia.com/gpu": 1}}, GPU, True),
        ({"requests": {"nvidia.com/gpu": "0"}}, GPU, False),
        ({"requests": {"amd.com/gpu": "1"}}, GPU, False),
        ({"requests": {"nvidia.com/gpu": "1"}}, {**GPU, "effect": "NoExecute"}, False),
        ({"requests": {"x.kubernetes.io/y": "1"}}, {**GPU, "key": "x.kubernetes.io/y"}, False),
    ],
)
def test_a_resource_that_is_requested_is_tolerated(
    resources: Json, toleration: Json, allows: bool
) -> None:
    """The API server may add it (plugin ExtendedResourceToleration); nobody asks for nothing."""
    own = pod(toleration, containers=[{"name": "main", "resources": resources}])
    assert decide(own).allowed == allows


def test_each_of_several_policies_has_to_allow_it() -> None:
    """They narrow each other."""
    wide: Json = {"requirements": {"allowedTolerations": {"patterns": [{"key": "*"}]}}}
    assert decide(pod(GPU), TEAM_A, **wide).result == "rejected"
    assert decide(pod(TEAM_A), TEAM_A, **wide).allowed


def test_a_class_that_the_author_asks_for_needs_to_be_allowed() -> None:
    """The annotation is another way to write a toleration."""
    asking = pod(asks="spot=Constrain")
    rejected = decide(asking, TEAM_A, remove=True)
    assert rejected.result == "rejected"
    mentions(rejected.reason, "annotation spot=Constrain adds", "spot=true")
    assert decide(asking, {"key": "spot"}).allowed


TAINTS = [
    {"key": key, "value": value, "effect": effect}
    for key, value, effect in product((*TAINT_KEYS, "other"), ("true", "false"), EFFECTS)
]


@pytest.mark.property
@given(
    st.lists(tolerations(), min_size=1, max_size=3),
    st.lists(toleration_patterns(), max_size=3),
    some(tolerations()),
    st.booleans(),
)
def test_an_admitted_pod_tolerates_only_what_is_allowed_or_added(
    own: list[Json], patterns: list[Json], added: list[Json], remove: bool
) -> None:
    """By Kubernetes' rule of what tolerates which taint; a pod sent again is the same."""
    what, parts = pod(*own), {"overrides": {"tolerations": added}}
    decision = decide(what, *patterns, remove=remove, **parts)
    assume(decision.allowed)
    after = patched(what, decision)
    covers = [*chain(*map(_tolerations, patterns)), *added, NOT_READY]
    for taint in TAINTS:
        if scheduler.tolerated(after, taint):
            assert scheduler.tolerated({"spec": {"tolerations": covers}}, taint), taint


def _tolerations(pattern: Json) -> list[Json]:
    """Tolerations of all that the pattern is about, of the keys that are tried."""
    begin = pattern["key"].rstrip("*")
    exact = "*" not in pattern["key"]
    keys = [key for key in (*TAINT_KEYS, "other") if key == begin or not exact]
    value = {"value": pattern["value"]} if "value" in pattern else {"operator": "Exists"}
    effect = {"effect": pattern["effect"]} if "effect" in pattern else {}
    return [{"key": key, **value, **effect} for key in keys if key.startswith(begin)]
