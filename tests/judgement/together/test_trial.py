"""Policies that merely overlap and together leave no node: told with a pod that they all match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.judgement.test_cluster_objects import objects
from tests.judgement.together.test_everywhere import AB, AC, BC, within
from tests.judgement.together.test_warnings import policy, pool, prepared, thorough
from tests.judgement.together.test_witness import arrival, excluded
from tests.laws.world import CLUSTER, policy_set
from tests.wording import mentions
from webhook.decision.engine import decide
from webhook.evaluation.evaluation import Evaluation
from webhook.evaluation.plugins import UNREAD
from webhook.evaluation.world import World
from webhook.judgement.set_judgement import Objects
from webhook.judgement.together.conflicts import Conflict
from webhook.judgement.together.effort import Effort
from webhook.judgement.together.trial import Trial
from webhook.judgement.together.warnings import UNBOUNDED, Memory, Prepared, of_policy
from webhook.policy.findings import Kind

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


def test_every_author_of_an_overlap_gets_a_warning() -> None:
    """At the same policy, whichever it was."""
    ready = prepared([A, B, C, policy("d", requirements=within(*"abc"))])
    for name in "abc":
        (finding,) = of_policy(ready, name, None, UNBOUNDED)
        assert finding.file == "placementpolicies/c"
    assert of_policy(ready, "d", None, UNBOUNDED) == []


def test_of_many_that_require_the_same_a_few_are_tried() -> None:
    """They do not keep the others from being looked at."""
    alike = [
        policy(f"b{at}", match={"podSelector": {"matchLabels": {f"l{at}": "x"}}}, requirements=BC)
        for at in range(60)
    ]
    assert len(conflicts(prepared([A, *alike, C]), 100_000)) == 1


def test_no_pod_is_sought_for_two_policies_that_have_nothing_to_report() -> None:
    """Once one pair has shown that only the names of policies with equal priority would decide."""
    level, *others = (
        policy(
            f"p{at:02}",
            priority=at,
            match={"podSelector": {"matchLabels": {f"l{at}": "x"}}},
            overrides=pool("a"),
        )
        for at in range(60)
    )
    ready = prepared([level, *others, policy("q", match=WORKERS, overrides=pool("b"))])
    effort = Effort(600)
    (found,) = Trial(ready, None, effort).findings([ready.by_document["q"].policies[0]])
    assert found.kind is Kind.EQUAL_PRIORITY
    mentions(found.message, "'p00'")
    assert not effort.is_over


def test_a_policy_alone_is_evaluated_once_for_all_sets_and_costs_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A write to a thousand policies meets dozens of them, again and again."""
    evaluated: list[Sequence[str]] = []

    def evaluate(world: World, *given: Any, **more: Any) -> Evaluation:
        evaluated.append([each.name for each in world.policies.policies])
        return untouched(world, *given, **more)

    untouched = World.evaluate
    monkeypatch.setattr(World, "evaluate", evaluate)
    memory, reader, left = Memory(), Objects(), []
    a, b = (policy(n, match=m, overrides=pool(n)) for n, m in (("a", WORKERS), ("b", ML)))
    for at in range(3):
        new = policy(f"new-{at}", match=VISION, overrides=pool("new"))
        ready = memory.prepare(reader.documents(objects(a, b, new)).documents, {}, UNREAD)
        effort = Effort(400_000)
        kinds = {each.kind for each in Trial(ready, None, effort).findings(ready.policies)}
        assert kinds == {Kind.EQUAL_PRIORITY}
        left.append(effort.left)
    alone = sorted(name for names in evaluated if len(names) == 1 for name in names)
    assert alone == ["a", "b", "new-0", "new-1", "new-2"]
    assert len({*left}) == 1


def test_the_number_of_steps_is_limited() -> None:
    """And it is said that not all is checked."""
    ready = prepared([A, B, C])
    assert [len(conflicts(ready, steps)) for steps in (100, 10_000)] == [0, 1]
    found = list(Trial(ready, None, Effort(100)).findings(ready.policies))
    assert {each.kind for each in found} == {Kind.NOT_CHECKED}
    # The first is tried alone; what it does with the others is left out, too.
    assert sorted(each.file[-1] for each in found) == ["a", "b", "c"]


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
