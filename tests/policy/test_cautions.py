"""A policy that can match no pod is told so, at the condition that rules all pods out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.judgement.test_cluster_objects import objects
from tests.judgement.together.test_warnings import policy
from tests.policy.test_matched_pods import holds, match, matches, subjects
from tests.wording import Wording, mentions
from webhook.judgement.set_judgement import Objects
from webhook.policy.findings import Finding, Kind
from webhook.policy.matched_pods import unmatchable
from webhook.policy.subject import Subject

Json = dict[str, Any]
ROLE = "fairlead.dev/role"


def expressions(*several: Json) -> Json:
    """A selector."""
    return {"matchExpressions": list(several)}


def within(key: str, *values: str) -> Json:
    """One expression."""
    return {"key": key, "operator": "In", "values": list(values)}


def without(key: str, *values: str) -> Json:
    """Its opposite."""
    return {**within(key, *values), "operator": "NotIn"}


def found_in(**spec: Any) -> list[Finding]:
    """What is said of a policy with this spec."""
    read = Objects().documents(objects(policy("p", defaults={"schedulerName": "x"}, **spec)))
    return [each for each in read.findings if each.kind is Kind.MATCHES_NOTHING]


@pytest.mark.parametrize(
    ("spec", "path", "facts"),
    [
        (
            {"match": {"podSelector": expressions(within("a", "x"), without("a", "x"))}},
            "spec.match.podSelector",
            ("a In [x]", "a NotIn [x]"),
        ),
        (
            {"match": {"roles": ["worker"]}, "exclude": [{"roles": ["worker"]}]},
            "spec.exclude[0]",
            ("every pod",),
        ),
        (
            {"match": {"roles": ["worker"]}, "exclude": [{"roles": ["worker", "ps"]}]},
            "spec.exclude[0]",
            ("every pod",),
        ),
        (
            {"match": {"roles": ["worker", "ps"]},
             "exclude": [{"roles": ["worker"]}, {"roles": ["ps"]}]},
            "spec.exclude",
            ("together",),
        ),
        (
            {"match": {"kinds": ["job"]},
             "exclude": [{"coordinator": True}, {"coordinator": False}]},
            "spec.exclude",
            ("together",),
        ),
        (
            {"match": {"roles": ["master"]}, "exclude": [{"coordinator": True}]},
            "spec.exclude[0]",
            ("every pod",),
        ),
        (
            {"match": {"roles": ["master", "chief"], "coordinator": False}},
            "spec.match.coordinator",
            ("chief, master", "lead"),
        ),
        (
            {"match": {"namespaces": ["ml-*"], "namespaceSelector":
                       expressions(within("kubernetes.io/metadata.name", "web"))}},
            "spec.match.namespaceSelector",
            ("ml-*",),
        ),
        (
            {"match": {"roles": ["worker"], "podSelector": {"matchLabels": {ROLE: "master"}}}},
            "spec.match.podSelector",
            (ROLE, "roles: worker"),
        ),
        (
            {"match": {"replicaIndexes": [0],
                       "podSelector": {"matchLabels": {"fairlead.dev/replica-index": "1"}}}},
            "spec.match.podSelector",
            ("replica-index", "replicaIndexes: 0"),
        ),
        ({"match": {"namespaces": ["kube-system"]}}, "spec.match.namespaces", ("never reach",)),
        ({"match": {"namespaces": ["-*"]}}, "spec.match.namespaces", ("-*",)),
        (
            {"match": {"namespaces": ["ml"]}, "rollout": {"namespaces": ["web-*"]}},
            "spec.rollout.namespaces",
            ("enforced for no pod",),
        ),
        (
            {"match": {"kinds": ["job"]},
             "exclude": [{"roles": ["master"], "coordinator": False}]},
            "spec.exclude[0].coordinator",
            ("excludes no pod",),
        ),
        (
            {"match": {"serviceAccounts": ["-*"]}},
            "spec.match.serviceAccounts",
            ("service account", "-*"),
        ),
        (
            {"match": {"serviceAccounts": ["a", "b"]},
             "exclude": [{"serviceAccounts": ["a"]}, {"serviceAccounts": ["b*"]}]},
            "spec.exclude",
            ("together",),
        ),
    ],
)  # fmt: skip
def test_what_matches_nothing_is_warned_of(
    spec: Json, path: str, facts: tuple[str, ...], wording: Wording
) -> None:
    """With the condition and its value."""
    (finding,) = found_in(**spec)
    assert (finding.path, finding.severity) == (path, "warning")
    mentions(finding.message, *facts)
    wording(finding.message)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"match": {"roles": ["worker"], "coordinator": True}},
        {"match": {"roles": ["ps"], "coordinator": True}},
        {"match": {"roles": ["worker", "ps"]}, "exclude": [{"roles": ["worker"]}]},
        {"match": {"kinds": ["job"]}, "exclude": [{"kinds": ["job"], "roles": ["worker"]}]},
        {"match": {"namespaces": ["kube-*"]}},
        {"match": {"serviceAccounts": ["kube-system"]}},
        {"match": {"serviceAccounts": ["a*"]}, "exclude": [{"serviceAccounts": ["a.*"]}]},
        {"match": {"podSelector": {"matchLabels": {ROLE: "MASTER"}}, "roles": ["master"]}},
        {"match": {"podSelector": {"matchLabels": {ROLE: "odd"}}, "roles": ["master"]}},
        {"match": {"namespaces": ["ml-*"]}, "rollout": {"namespaces": ["*-a"]}},
    ],
)
def test_what_some_pod_meets_is_not(spec: Json) -> None:
    """A JobSet may name any pod as its coordinator; a word that is none counts as not said."""
    assert found_in(**spec) == []


@settings(max_examples=examples(200), deadline=None)
@given(matches, st.lists(matches, max_size=2), st.lists(subjects, min_size=1, max_size=5))
def test_a_reported_finding_holds_for_every_pod(
    written: Json, excludes: list[Json], some: list[Subject]
) -> None:
    """By the conditions themselves."""
    if unmatchable(match(written), [match(each) for each in excludes]):
        for subject in some:
            assert not holds(written, subject) or any(holds(each, subject) for each in excludes)


@pytest.mark.parametrize("field", ["match", "exclude"])
def test_a_policy_that_matches_by_the_volume_of_every_pod_gets_a_warning(
    field: str, wording: Wording
) -> None:
    """The API server adds one with a token; other types are the author's."""
    volumes = {"volumes": ["emptyDir", "projected"]}
    spec: Json = {field: volumes if field == "match" else [volumes]}
    read = Objects().documents(objects(policy("p", defaults={"schedulerName": "x"}, **spec)))
    (found,) = read.findings
    where = "spec.match" if field == "match" else "spec.exclude[0]"
    mentions(str(found), f"{where}.volumes[1]", "projected", "nearly every pod")
    wording(str(found))
