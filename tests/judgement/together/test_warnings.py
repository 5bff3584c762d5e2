"""What policies mean beside each other: said where it is certain, and true of every pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.judgement.test_cluster_objects import objects
from tests.laws.strategies import CLASSES, document, pods, policy_lists
from tests.laws.world import decided, policy_set
from webhook import names
from webhook.decision.decision import Decision
from webhook.evaluation.plugins import UNREAD
from webhook.judgement.set_judgement import Objects
from webhook.judgement.together.policy_view import Policy
from webhook.judgement.together.shadowed import Shadows
from webhook.judgement.together.warnings import UNBOUNDED, Memory, Prepared, of_policy, warnings
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
    return Memory().prepare(read.documents, classes, UNREAD)


def policies_of(documents: list[Json]) -> Sequence[Policy]:
    return prepared(documents).policies


def policy(name: str, **spec: Any) -> Json:
    return document("PlacementPolicy", name, spec)


def pool(value: str) -> Json:
    return {"nodeSelector": {"pool": value}}


def spot(mode: str) -> Json:
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
    dead = [each for each in warnings(ready, None, UNBOUNDED) if each.kind in never]
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
    for finding in warnings(prepared(documents), None, UNBOUNDED):
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
    whole = {_stem(each) for each in warnings(ready, None, UNBOUNDED)}
    written = {each.document.model.name for each in ready.policies}
    one_by_one = {
        _stem(found) for each in written for found in of_policy(ready, each, None, UNBOUNDED)
    }
    assert whole <= one_by_one
    # Why another policy's setting is dead for a third one's sake, the first may tell.
    dead = {(file, path) for file, path, kind in whole if kind is Kind.NEVER_APPLIED}
    assert all((file, path) in dead for file, path, _ in one_by_one - whole)


def _stem(finding: Finding) -> tuple[str, str, Kind]:
    """What it is about, without the names of the others."""
    return finding.file, finding.path, finding.kind


def test_a_memory_makes_only_what_changed_ready_again() -> None:
    """The others are the very same objects."""
    memory, reader = Memory(), Objects()
    first = objects(policy("a", overrides=pool("a")), policy("b", overrides=pool("b")))
    before = memory.prepare(reader.documents(first).documents, {}, UNREAD).policies
    second = {**first, **objects(policy("b", overrides=pool("c")))}
    after = memory.prepare(reader.documents(second).documents, {}, UNREAD).policies
    assert [one is two for one, two in zip(before, after, strict=True)] == [True, False]
    assert not list(Shadows(after).findings_about(after[0]))
