"""Policies that merely overlap and together leave no node: told with a pod that they all match."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.judgement.together.test_everywhere import AB, AC, BC, within
from tests.judgement.together.test_warnings import policy, prepared, thorough, told
from tests.judgement.together.test_witness import arrival, excluded
from tests.laws.world import CLUSTER, policy_set
from tests.wording import Wording, mentions
from webhook.admission.engine import decide
from webhook.judgement.together.alone import Conflict
from webhook.judgement.together.policy_view import Effort
from webhook.judgement.together.trial import Trial
from webhook.judgement.together.warnings import Prepared, of_policy
from webhook.policy.findings import Kind

Json = dict[str, Any]
WORKERS, ML, VISION = (
    {"roles": ["worker"]},
    {"namespaces": ["ml-*"]},
    {"podSelector": {"matchLabels": {"team": "vision"}}},
)
A = policy("a", match=WORKERS, requirements=AB)
B = policy("b", match=ML, requirements=BC)
C = policy("c", match=VISION, requirements=AC)


def conflicts(ready: Prepared, steps: int = 400_000) -> list[Conflict]:
    """What pods are rejected for, of all policies."""
    found = Trial(ready, None, Effort(steps)).conflicts(ready.policies)
    return [each for each in found if each.kind is Kind.SOME_PODS_REJECTED]


def test_three_overlapping_policies_are_reported_with_a_pod(wording: Wording) -> None:
    """At the last of them, though each is for pods that the others are not for."""
    (line,) = told(A, B, C)
    mentions(line, "placementpolicies/c: warning: spec.requirements:", "policies 'a', 'b'")
    mentions(line, "rejected", "namespace ml-x", "fairlead.dev/role=worker, team=vision")
    wording(line)


@pytest.mark.parametrize(
    "other",
    [
        {"requirements": within("b", "c")},
        {"overrides": AC},
        {"requirements": AC, "match": {"roles": ["master"]}},
        {"requirements": AC, "match": {"coordinator": True, "roles": ["worker"],
                                       "frameworks": ["mpi"]}},
        {"requirements": AC, "exclude": [{"namespaces": ["ml-*"]}]},
        {"requirements": AC, "match": {"namespaces": ["web"]}},
    ],
)  # fmt: skip
def test_overlaps_that_leave_a_node_for_every_pod_are_not_reported(other: Json) -> None:
    """Somebody leaves a node, is not enforced for sure, or has pods apart from one of the others.

    Nor where a pod is found for each two of them alone.
    """
    assert told(A, B, policy("c", **{"match": VISION, **other})) == []


@pytest.mark.parametrize(
    ("more", "when"),
    [
        ({"enforcement": "Audit"}, ", once 'c' is enforced"),
        ({"rollout": {"namespaces": ["x"]}}, ""),
    ],
)
def test_what_is_not_enforced_yet_is_reported_too(more: Json, when: str) -> None:
    """As of two policies: with who has to be enforced for it."""
    (line,) = told(A, B, policy("c", match=VISION, requirements=AC, **more))
    mentions(line, f"is rejected{when}, such as")


def test_an_overlap_for_all_pods_of_a_policy_is_reported_as_such(wording: Wording) -> None:
    """Once, and of every pod: that says more."""
    (line,) = told(policy("a", requirements=AB), policy("b", requirements=BC), C)
    mentions(line, "placementpolicies/c:", "policy a", "policy b", "every pod", "rejected")
    wording(line)


def test_two_that_contradict_need_no_third() -> None:
    """Though a pod matches all of them."""
    lines = told(policy("a", match=WORKERS, requirements=within("a")), B, C)
    assert len(lines) == 1
    mentions(lines[0], "contradicts", "policy 'a'")


def test_four_that_leave_no_node_are_reported() -> None:
    """Of which no three do."""
    crowd = [
        policy(f"p{at}", match=match, requirements=within(*"abcd".replace(left_out, "")))
        for at, (left_out, match) in enumerate(
            zip("abcd", ({"kinds": ["job"]}, WORKERS, ML, VISION), strict=True)
        )
    ]
    (conflict,) = conflicts(prepared(crowd))
    assert [each.name for each in (*conflict.others, conflict.policy)] == ["p0", "p1", "p2", "p3"]
    assert conflicts(prepared(crowd[:3])) == []


def test_every_author_of_an_overlap_gets_a_warning() -> None:
    """At the same policy, whichever it was."""
    ready = prepared([A, B, C, policy("d", requirements=within(*"abc"))])
    for name in "abc":
        (finding,) = of_policy(ready, name, None)
        assert finding.file == "placementpolicies/c"
    assert of_policy(ready, "d", None) == []


def test_of_those_that_require_the_same_one_with_a_pod_is_named() -> None:
    """Others of them may be for other pods."""
    elsewhere = policy("b0", match={"namespaces": ["web"]}, requirements=BC)
    (line,) = told(A, elsewhere, B, policy("c", match={**ML, **VISION}, requirements=AC))
    mentions(line, "policies 'a', 'b'")


def test_of_many_that_require_the_same_a_few_are_tried() -> None:
    """They do not keep the others from being looked at."""
    alike = [
        policy(f"b{at}", match={"podSelector": {"matchLabels": {f"l{at}": "x"}}}, requirements=BC)
        for at in range(60)
    ]
    assert len(conflicts(prepared([A, *alike, C]), 100_000)) == 1


def test_the_number_of_steps_is_limited() -> None:
    """And it is said that not all is checked."""
    ready = prepared([A, B, C])
    assert [len(conflicts(ready, steps)) for steps in (100, 10_000)] == [0, 1]
    found = Trial(ready, None, Effort(100)).findings(ready.policies)
    assert [each.kind for each in found] == [Kind.NOT_CHECKED]


def test_a_pod_that_the_api_server_refuses_is_reported_with_the_setting() -> None:
    """By the rules of the pod schema, to which the evaluation holds each pod."""
    cost = {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "high"}}
    ready = prepared([policy("cost", match=WORKERS, defaults=cost)])
    found = Trial(ready, None, Effort(10_000)).findings(ready.policies)
    (finding,) = found
    assert (finding.severity, finding.kind) == ("error", Kind.REFUSED_PODS)
    mentions(finding.message, "fairlead.dev/role=worker", "pod-deletion-cost", "policy cost sets")


narrow = st.sampled_from(
    [
        {},
        WORKERS,
        ML,
        VISION,
        {"kinds": ["job", "service"]},
        {"frameworks": ["jax"]},
        {"replicaIndexes": [0, 1]},
        {"coordinator": False},
        {"coordinator": True},
        {"resources": ["cpu", "nvidia.com/gpu"]},
        {"volumes": ["nfs"], "namespaces": ["*-a", "web"]},
        {"namespaceSelector": {"matchLabels": {"a": "1"}}},
    ]
)
wanted = st.one_of(
    *(st.sampled_from([AB, BC, AC]) for _ in range(4)),
    st.lists(st.sampled_from("abcd"), min_size=3, max_size=3, unique=True).map(
        lambda pools: within(*pools)
    ),
    st.sampled_from(
        [
            {"capacity": [{"class": "pool-b", "mode": "Constrain"}]},
            {"capacity": [{"class": "pool-b", "mode": "Prevent"}]},
            {"capacity": [{"class": "old", "mode": "Constrain"}]},
            {"nodeSelector": {"zone": "c"}},
            {"nodeSelector": {"kubernetes.io/os": "windows"}},
        ]
    ),
)
excludes = st.fixed_dictionaries({}, optional={"exclude": st.lists(excluded, max_size=1)})
crowds = st.lists(st.tuples(narrow, wanted, excludes), min_size=4, max_size=6)


@thorough
@given(crowds)
def test_what_a_trial_reports_is_so_by_the_engine(crowd: list[Any]) -> None:
    """All of the policies take part, and without any one of them the pod would be let in."""
    documents = [
        policy(f"p{at}", match=match, requirements=required_of_nodes, **more)
        for at, (match, required_of_nodes, more) in enumerate(crowd)
    ]
    found = conflicts(prepared(documents))
    event(f"told: {bool(found)}, of three: {any(len(each.others) > 1 for each in found)}")
    for conflict in found:
        named = {each.name for each in (conflict.policy, *conflict.others)}
        pod = arrival(conflict.pod)
        decision = decide(pod, policy_set(documents), CLUSTER)
        assert (decision.result, named <= set(decision.policies)) == ("rejected", True), conflict
        for left_out in named:
            few_of = [each for each in documents if each["metadata"]["name"] in named - {left_out}]
            assert decide(pod, policy_set(few_of), CLUSTER).result != "rejected", conflict


def test_a_share_that_contradicts_another_policy_is_reported(wording: Wording) -> None:
    """With a replica of that share, and no other."""
    split = [{"class": "on-demand", "count": 2}, {"class": "spot", "count": 3}, {"class": "old"}]
    (line,) = told(
        policy("mostly-spot", match=WORKERS, requirements={"split": split}),
        policy(
            "steady", match=ML, requirements={"capacity": [{"class": "spot", "mode": "Prevent"}]}
        ),
    )
    mentions(line, "placementpolicies/", "mostly-spot split[1]", "replica-index=2")
    wording(line)


def test_what_a_fallback_leads_to_is_tried_too() -> None:
    """Both require spot nodes, until one of them excludes them: then pods are rejected."""
    gives_up = {"afterDisruptions": 3, "then": "Prevent"}
    (line,) = told(
        policy(
            "until-lost",
            requirements={
                "capacity": [{"class": "spot", "mode": "Constrain", "fallback": gives_up}]
            },
        ),
        policy("always", requirements={"capacity": [{"class": "spot", "mode": "Constrain"}]}),
    )
    mentions(line, "until-lost", "always", "rejected")


def test_a_setting_that_one_share_overrides_is_not_dead() -> None:
    """Other shares leave it its effect."""
    split = [{"class": "spot", "count": 2}, {"class": "on-demand", "mode": "None"}]
    assert (
        told(policy("p", requirements={"split": split}, defaults={"nodeSelector": {"spot": "no"}}))
        == []
    )
