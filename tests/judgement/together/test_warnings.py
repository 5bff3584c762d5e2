"""What policies mean beside each other: said where it is certain, and true of every pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.judgement.test_cluster_objects import objects
from tests.laws.strategies import CLASSES, document, pods, policy_lists
from tests.laws.world import decided, policy_set
from tests.wording import Wording, mentions
from webhook import names
from webhook.admission.decision import Decision
from webhook.judgement.set_judgement import Objects
from webhook.judgement.together.policy_view import Policy
from webhook.judgement.together.shadowed import Shadows
from webhook.judgement.together.warnings import Memory, Prepared, of_policy, warnings
from webhook.placement.split import Replica
from webhook.policy.findings import Finding, Kind, path_text
from webhook.policy.load import judge_documents
from webhook.policy.policy_set import PolicySet

Json = dict[str, Any]
thorough = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def prepared(documents: list[Json]) -> Prepared:
    """The policies made ready, beside the classes of the laws."""
    read = Objects().documents(objects(*documents, *CLASSES))
    classes, found = judge_documents(read)
    assert not [each for each in found if each.severity == "error"]
    return Memory().prepare(read.documents, classes, {})


def policies_of(documents: list[Json]) -> Sequence[Policy]:
    """The policies alone."""
    return prepared(documents).policies


def told(*documents: Json) -> list[str]:
    """The warnings of a set, as printed."""
    return [str(each) for each in warnings(prepared(list(documents)), None)]


def policy(name: str, **spec: Any) -> Json:
    """A policy's document."""
    return document("PlacementPolicy", name, spec)


def pool(value: str) -> Json:
    """A placement in a pool."""
    return {"nodeSelector": {"pool": value}}


def grace(seconds: int) -> Json:
    """A placement with a termination grace period."""
    return {"terminationGracePeriodSeconds": seconds}


def spot(mode: str) -> Json:
    """A placement by capacity."""
    return {"capacity": [{"class": "spot", "mode": mode}]}


def without(policies: PolicySet, name: str, path: str, documents: Sequence[Policy]) -> PolicySet:
    """The same set without what one policy says at a path."""
    ready = [each for each in documents if each.document.model.name == name]
    located = [one for each in ready for one in each.settings if path_text(one.path) == path]
    said = [replace(each.setting, policy=name) for each in located]
    at = next(at for at, each in enumerate(policies.policies) if each.name == name)
    before = policies.policies[at]
    kept = [tuple(each for each in settings if each not in said) for settings in before.variants]
    assert sum(map(len, kept)) < sum(map(len, before.variants))
    changed = list(policies.policies)
    changed[at] = replace(before, settings=kept[0], variants=tuple(kept))
    policies.policies = tuple(changed)
    return policies


def outcome(decision: Decision) -> object:
    """What becomes of a pod, but for its stamp."""
    placement = decision.placement
    if placement is not None:
        stamped = {k: v for k, v in placement.annotations.items() if k != names.PLACEMENT}
        placement = placement._replace(annotations=stamped)
    return decision.result, decision.reason, placement


@thorough
@given(policy_lists(most=4), st.lists(pods(), min_size=1, max_size=3), st.booleans())
def test_a_setting_that_is_called_dead_never_reaches_a_pod(
    documents: list[Json], some: list[Json], kueue: bool
) -> None:
    """Whatever else matches: without the setting every pod comes out the same."""
    ready = prepared(documents)
    never = (Kind.NEVER_APPLIED, Kind.IMPOSSIBLE_SETTING)
    dead = [each for each in warnings(ready, None) if each.kind in never]
    event(f"dead: {bool(dead)}")
    for finding in dead:
        name = finding.file.partition("/")[2]
        reduced = without(policy_set(documents), name, finding.path, ready.policies)
        for pod in some:
            full = decided(pod, policy_set(documents), kueue=kueue)
            assert outcome(full) == outcome(decided(pod, reduced, kueue=kueue)), finding


def in_shares(decision: Decision, policies: PolicySet, shares: Mapping[str, str]) -> bool:
    """Whether the pod is in these shares, by policy: ends of texts such as split[0]."""
    identity = decision.identity
    assert identity is not None
    replica = Replica(identity.replica_index, identity.replicas)
    return all(
        f"split[{policy.variant(replica)}]" in shares[policy.name] or not shares[policy.name]
        for policy in policies.policies
    )


@thorough
@given(policy_lists(("requirements",), most=3), st.lists(pods(), min_size=1, max_size=4))
def test_a_pod_that_both_match_is_rejected_where_two_contradict(
    documents: list[Json], some: list[Json]
) -> None:
    """Were there only the two, and both enforced."""
    for finding in warnings(prepared(documents), None):
        if finding.kind is Kind.SOME_PODS_REJECTED and finding.about == finding.kind:
            other, _, share = finding.message.split("'")[1].partition(" ")
            name, own = finding.file.partition("/")[2], finding.path
            shares = {name: own if ".split" in own else "", other: share}
            both = policy_set([d for d in documents if d["metadata"]["name"] in shares])
            for pod in some:
                decision = decided(pod, both)
                if len(decision.policies) == 2 and in_shares(decision, both, shares):
                    event("a pod that both match")
                    assert decision.result == "rejected", finding


@thorough
@given(policy_lists(most=4))
def test_findings_of_one_policy_are_among_those_of_the_set(documents: list[Json]) -> None:
    """Nothing is lost if all are chosen in turn, and nothing new is said of what may live."""
    ready = prepared(documents)
    whole = {_stem(each) for each in warnings(ready, None)}
    written = {each.document.model.name for each in ready.policies}
    one_by_one = {_stem(found) for each in written for found in of_policy(ready, each, None)}
    assert whole <= one_by_one
    # Why another policy's setting is dead for a third one's sake, the first may tell.
    dead = {(file, path) for file, path, kind in whole if kind is Kind.NEVER_APPLIED}
    assert all((file, path) in dead for file, path, _ in one_by_one - whole)


def _stem(finding: Finding) -> tuple[str, str, Kind]:
    """What it is about, without the names of the others."""
    return finding.file, finding.path, finding.kind


@pytest.mark.parametrize(
    ("documents", "line"),
    [
        (
            [policy("a", priority=9, overrides=pool("a")), policy("b", overrides=pool("b"))],
            ("placementpolicies/b", "spec.overrides.nodeSelector.pool", "policy 'a': overrides"),
        ),
        (
            [policy("a", requirements=pool("a")), policy("b", priority=9, overrides=pool("b"))],
            ("placementpolicies/b", "spec.overrides.nodeSelector.pool", "policy 'a': requirements"),
        ),
        (
            [policy("a", requirements=pool("a"), defaults=pool("b"))],
            ("placementpolicies/a", "spec.defaults.nodeSelector.pool", "own requirements"),
        ),
        (
            [
                policy("a", match={"namespaces": ["ml-*"]}, requirements=spot("Prefer")),
                policy("b", match={"namespaces": ["ml-a"]}, overrides=spot("Prevent")),
            ],
            ("placementpolicies/b", "spec.overrides.capacity[0]", "policy 'a': requirements"),
        ),
        (
            [policy("a", requirements={"nodeSelector": {"pool": "a"}, **spot("Constrain")},
                    defaults={"nodeSelector": {"spot": "false"}})],
            None,
        ),
        (
            [policy("a", requirements=grace(60), defaults=grace(90))],
            (
                "placementpolicies/a",
                "spec.defaults.terminationGracePeriodSeconds",
                "own requirements",
            ),
        ),
        (
            [policy("a", requirements=grace(60), defaults=grace(60)),
             policy("b", requirements=grace(90))],
            None,
        ),
        (
            [policy("a", overrides=grace(60)), policy("b", defaults=grace(20)),
             policy("c", match={"roles": ["worker"]}, requirements=grace(30))],
            None,
        ),
    ],
)  # fmt: skip
def test_a_setting_that_no_pod_can_get_is_reported_with_the_deciding_policy(
    documents: list[Json], line: tuple[str, str, str] | None, wording: Wording
) -> None:
    """By the policy's own stronger part, or by another policy for all of its pods."""
    found = [each for each in told(*documents) if "no pod gets it: p" in each or "own" in each]
    assert len(found) == bool(line)
    for each in found:
        assert line
        place, path, decider = line
        assert each.startswith(f"{place}: warning: {path}: no pod gets it: ")
        mentions(each, decider)
        wording(each)


@pytest.mark.parametrize(
    "first",
    [
        {"exclude": [{"namespaces": ["ml-a"]}]},
        {"rollout": {"namespaces": ["ml-a"]}},
        {"enforcement": "Audit"},
        {"match": {"roles": ["worker"]}},
        {"overrides": {"nodeSelector": {"zone": "a"}}},
        {"overrides": pool("b")},
    ],
)
def test_nothing_is_called_dead_that_some_pod_may_get(first: Json) -> None:
    """An earlier policy that is not for all, not enforced everywhere, or of another mind."""
    one = {"priority": 1, "overrides": pool("a"), **first}
    found = told(policy("a", **one), policy("b", overrides=pool("b")))
    assert not [each for each in found if "no pod gets it" in each]


@pytest.mark.parametrize(
    ("documents", "line"),
    [
        (
            [
                policy("a", match={"roles": ["worker"]}, requirements=pool("a")),
                policy("b", match={"kinds": ["job"]}, requirements=pool("b")),
            ],
            ("placementpolicies/b", "spec.requirements.nodeSelector.pool",
             "contradicts", "policy 'a'", "both match", "rejected"),
        ),
        (
            [
                policy("a", priority=1, match={"roles": ["worker"]}, overrides=spot("Constrain")),
                policy("b", overrides={"nodeSelector": {"spot": "false"}}),
            ],
            ("placementpolicies/b", "spec.overrides.nodeSelector.spot",
             "dropped", "policy 'a'", "no node"),
        ),
        (
            [
                policy("a", match={"roles": ["worker"]}, overrides=pool("a")),
                policy("b", overrides=pool("b")),
            ],
            ("placementpolicies/b", "spec.overrides.nodeSelector.pool",
             "policy 'a'", "equal priority"),
        ),
        (
            [policy("a", requirements=pool("a"), overrides=spot("Constrain"),
                    defaults={"nodeSelector": {"zone": "b"}})],
            None,
        ),
        (
            [policy("a", requirements={"nodeSelector": {"spot": "false"}},
                    overrides=spot("Constrain"))],
            ("placementpolicies/a", "spec.overrides.capacity[0]", "no node", "own requirements"),
        ),
    ],
)  # fmt: skip
def test_contradicting_policies_are_reported(
    documents: list[Json], line: tuple[str, ...] | None, wording: Wording
) -> None:
    """At the one that comes off worse, with the name of the other."""
    found = told(*documents)
    assert len(found) == bool(line)
    for each in found:
        assert line
        place, path, *facts = line
        assert each.startswith(f"{place}: warning: {path}: ")
        mentions(each, *facts)
        wording(each)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"match": {"namespaces": ["a"]}}, {"match": {"namespaces": ["b"]}}),
        ({"match": {"roles": ["worker"]}}, {"exclude": [{"roles": ["worker"]}]}),
        ({"requirements": pool("b")}, {}),
    ],
)
def test_policies_that_share_no_pod_or_agree_are_left_in_peace(one: Json, two: Json) -> None:
    """Whoever makes an exclude of a contradiction has mended it."""
    first, second = {"requirements": pool("a"), **one}, {"requirements": pool("b"), **two}
    assert told(policy("a", **first), policy("b", **second)) == []


def test_a_setting_without_effect_is_reported_once() -> None:
    """Though the other policy has the same priority as well."""
    (line,) = told(policy("a", overrides=pool("a")), policy("b", overrides=pool("b")))
    assert "no pod gets it" in line


def test_effects_suspended_by_audit_are_reported_as_future(wording: Wording) -> None:
    """With who has to be enforced for it, apart from what is so today."""
    audited = {"enforcement": "Audit"}
    today, later = told(
        policy("a", match={"roles": ["worker"]}, requirements=pool("a")),
        policy("b", match={"roles": ["worker"]}, requirements=pool("a"), **audited),
        policy("c", match={"kinds": ["job"]}, requirements=pool("c")),
    )
    mentions(today, "contradicts", "policy 'a'", "rejected")
    assert "enforced" not in today
    mentions(later, "contradicts", "policy 'b'", "rejected", "'b' is enforced")
    wording(later)
    both = policy("d", **audited, requirements={**spot("Constrain"), "nodeSelector": {"spot": "x"}})
    (line,) = told(both)
    mentions(line, "every pod", "rejected", "'d' is enforced")
    wording(line)
    (line,) = told(
        policy("a", **audited, match={"roles": ["worker"]}, overrides=pool("a")),
        policy("b", **audited, overrides=pool("b")),
    )
    mentions(line, "equal priority", "'b', 'a' are enforced")
    wording(line)


def test_of_many_others_three_are_named(wording: Wording) -> None:
    """And the rest is counted."""
    workers, jobs = {"roles": ["worker"]}, {"kinds": ["job"]}
    others = [policy(f"a{at}", match=workers, requirements=pool("a")) for at in range(5)]
    (line,) = told(*others, policy("b", match=jobs, requirements=pool("b")))
    mentions(line, "contradicts", "policies 'a0', 'a1', 'a2' and 2 more")
    wording(line)


def test_a_memory_makes_only_what_changed_ready_again() -> None:
    """The others are the very same objects."""
    memory, reader = Memory(), Objects()
    first = objects(policy("a", overrides=pool("a")), policy("b", overrides=pool("b")))
    before = memory.prepare(reader.documents(first).documents, {}, {}).policies
    second = {**first, **objects(policy("b", overrides=pool("c")))}
    after = memory.prepare(reader.documents(second).documents, {}, {}).policies
    assert [one is two for one, two in zip(before, after, strict=True)] == [True, False]
    assert not list(Shadows(after).over(after[0]))


def test_a_policy_that_contradicts_itself_is_not_reported_as_without_effect() -> None:
    """Pods for which another policy decides the one setting get the other."""
    own = policy(
        "own",
        defaults={
            "nodeSelector": {"spot": "true"},
            "capacity": [{"class": "spot", "mode": "Prevent"}],
        },
    )
    documents = [own, policy("first", overrides={"nodeSelector": {"spot": "false"}})]
    kinds = {each.path: each.kind for each in warnings(prepared(documents), None)}
    assert kinds["spec.defaults.capacity[0]"] is Kind.CONTRADICTS_ITSELF
