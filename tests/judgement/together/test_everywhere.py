"""Requirements that reject every pod of a run, a policy, a kind, a role or a namespace."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.judgement.together.test_warnings import (
    policy,
    pool,
    prepared,
    spot,
    thorough,
)
from tests.laws.strategies import pods
from tests.laws.world import decided, policy_set
from tests.wording import Wording, mentions
from webhook import names
from webhook.admission.arrival import Arrival, Cluster
from webhook.admission.engine import decide
from webhook.judgement.together.everywhere import rejecting
from webhook.judgement.together.policy_view import Effort
from webhook.judgement.together.warnings import of_policy, warnings
from webhook.policy.findings import Kind

Json = dict[str, Any]


def within(*pools: str) -> Json:
    """A placement in one of some pools."""
    expression = {"key": "pool", "operator": "In", "values": list(pools)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def any_of(key: str, terms: int, values: int = 1) -> Json:
    """A placement of many terms, all about one label."""
    listed = [
        {"matchExpressions": [
            {"key": key, "operator": "In", "values": [f"v{at}-{more}" for more in range(values)]}
        ]}
        for at in range(terms)
    ]  # fmt: skip
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}
    return {"affinity": {"nodeAffinity": required}}


AB, BC, AC = (within(*each) for each in ("ab", "bc", "ac"))
A = policy("a", requirements=AB)
B = policy("b", requirements=BC)
ML = {"namespaces": ["ml-*"]}


WORKERS = {"roles": ["worker"]}


def for_seconds(seconds: int) -> Json:
    """A placement that tolerates a taint for some time."""
    one = {"key": "x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
    return {"tolerations": [one]}


def found_in(*documents: Json) -> list[tuple[str, str, str]]:
    """File, severity and kind of each finding."""
    found = warnings(prepared(list(documents)), None)
    return [(each.file.partition("/")[2], each.severity, each.kind) for each in found]


@pytest.mark.parametrize(
    ("documents", "facts"),
    [
        ([policy("a", requirements=pool("a")), policy("b", requirements=pool("b"))],
         ("/b: spec.requirements.nodeSelector.pool", "of every run",
          "policy a requires 'a'", "policy b requires 'b'", "narrow its match")),
        ([policy("a", requirements={"schedulerName": "x"}),
          policy("b", requirements={"schedulerName": "y"})],
         ("/b: spec.requirements.schedulerName", "'x'", "'y'")),
        ([policy("a", requirements=spot("Constrain")), policy("b", requirements=spot("Prevent"))],
         ("/b: spec.requirements.capacity[0]", "Constrain", "Prevent")),
        # Neither policy is for all pods of the other.
        ([policy("a", match={"roles": ["worker", "ps"]}, requirements=pool("a")),
          policy("b", match={"roles": ["worker", "master"]}, requirements=pool("b"))],
         ("/b", "every pod of role worker is rejected")),
        ([policy("a", match={"kinds": ["job", "build"]}, requirements=pool("a")),
          policy("b", match={"kinds": ["notebook", "job"]}, requirements=pool("b"))],
         ("/b", "every pod of kind job is rejected")),
        ([policy("a", match={"namespaces": ["ml-*"]}, requirements=pool("a")),
          policy("b", match={"namespaces": ["ml-a", "web"]}, requirements=pool("b"))],
         ("/b", "every pod of namespace ml-a is rejected")),
        ([policy("a", requirements=pool("a"), exclude=[{"roles": ["master"]}]),
          policy("b", match={"roles": ["worker"]}, requirements=pool("b"))],
         ("/b", "every pod of role worker is rejected")),
        ([policy("a", requirements=pool("a"), rollout={"namespaces": ["ml-*"]}),
          policy("b", requirements=pool("b"))],
         ("/b", "every pod of namespace ml-* is rejected")),
        # Where the second one is enforced, all of its pods are rejected.
        ([policy("a", requirements=pool("a")),
          policy("b", match={"frameworks": ["pytorch"]}, requirements=pool("b"),
                 rollout={"namespaces": ["ml"]})],
         ("/b", "that policy 'b' is enforced for")),
        ([policy("a", match=ML, requirements=pool("a")),
          policy("b", match={**WORKERS, "namespaces": ["ml-a", "web"]}, requirements=pool("b"),
                 rollout={"namespaces": ["ml-*"]})],
         ("/b", "that policy 'b' is enforced for")),
        ([policy("a", match={"kinds": list(names.KINDS)}, requirements=pool("a")),
          policy("b", match=WORKERS, requirements=pool("b"), rollout={"namespaces": ["ml"]})],
         ("that policy 'b' is enforced for",)),
        ([policy("a", requirements=pool("a")),
          policy("b", match={"resources": ["nvidia.com/gpu"]}, requirements=pool("b"))],
         ("/b", "every pod of resource nvidia.com/gpu is rejected")),
        ([policy("a", match=WORKERS, requirements=pool("a")),
          policy("b", match={"kinds": ["job"]}, requirements=pool("b")),
          policy("c", match={**WORKERS, "kinds": ["job"]}, overrides={"schedulerName": "x"})],
         ("/b", "every pod that policy 'c' matches is rejected")),
        ([A, B, policy("c", requirements=AC)],
         ("/c", "policy a requires", "policy b requires", "pool In [a, c]", "all of them")),
        ([A, B, policy("c", priority=9, match=ML, requirements=AC)], ("of namespace ml-*",)),
        ([policy("a", requirements={**spot("Constrain"), "nodeSelector": {"spot": "false"}})],
         ("/a", "every pod that it matches", "'false'", "Constrain", "change the policy")),
        # About different labels, but together too large.
        ([policy("a", match=ML, requirements=any_of("x", terms=33)),
          policy("b", match=ML, requirements=any_of("y", terms=33))],
         ("/b", "1089 terms", "over 1024", "policy a requires", "policy b requires")),
        ([policy("a", match=ML, requirements=any_of("x", terms=24, values=64)),
          policy("b", match=ML, requirements=any_of("y", terms=24, values=64))],
         ("/b", "values, over 65536")),
        # Requirements hold for pods of any system.
        ([policy("a", requirements={"nodeSelector": {"kubernetes.io/os": "linux"}}),
          policy("b", requirements={"nodeSelector": {"kubernetes.io/os": "windows"}})],
         ("/b", "'linux'", "'windows'", "every run")),
        ([policy("a", requirements=spot("Prefer")), policy("b", requirements=spot("Prevent"))],
         ("/b", "Prefer", "Prevent")),
        ([policy("a", requirements=for_seconds(5)), policy("b", requirements=for_seconds(50))],
         ("/b: spec.requirements.tolerations[0]", "every run")),
        # What asks nothing of a pod, or says it in other words.
        ([policy("a", match={"podSelector": {}}, requirements=pool("a")),
          policy("b", match=WORKERS, requirements=pool("b"))], ("every pod of role worker",)),
        ([policy("a", match={"namespaces": ["**"]}, requirements=pool("a")),
          policy("b", requirements=pool("b"))], ("of every run",)),
        ([policy("a", match={"namespaceSelector": {"matchExpressions": [
              {"key": "kubernetes.io/metadata.name", "operator": "Exists"}]}},
              requirements=pool("a")), policy("b", match=ML, requirements=pool("b"))],
         ("of namespace ml-*",)),
        ([policy("a", match={"coordinator": True}, requirements=pool("a")),
          policy("b", match={"roles": ["master"]}, requirements=pool("b"))],
         ("of role master",)),
        ([policy("a", match={"podSelector": {"matchLabels": {"fairlead.dev/role": "worker"}}},
                 requirements=pool("a")),
          policy("b", match=WORKERS, requirements=pool("b"))], ("that policy 'a' matches",)),
        # Each pod meets one of two others.
        ([policy("a", match={"kinds": list(names.KINDS)}, requirements=pool("a")),
          policy("b", match=WORKERS, requirements=pool("b"))], ("that policy 'b' matches",)),
        ([policy("a", match={"namespaces": ["ml-a"]}, requirements=pool("a")),
          policy("b", match={"namespaces": ["ml-b"]}, requirements=pool("a")),
          policy("c", match={"namespaces": ["ml-b", "ml-a"], "kinds": ["job"]},
                 requirements=pool("c"))], ("/c", "that policy 'c' matches")),
        ([policy("a", match={"serviceAccounts": ["train*"]}, requirements=pool("a")),
          policy("b", match={"serviceAccounts": ["trainer", "web"]}, requirements=pool("b"))],
         ("/b", "every pod of service account trainer is rejected")),
    ],
)  # fmt: skip
def test_requirements_that_reject_every_pod_are_an_error(
    documents: list[Json], facts: tuple[str, ...], wording: Wording
) -> None:
    """Told once, with the pods that they reject and with what each policy requires."""
    (finding,) = warnings(prepared(documents), None)
    assert (finding.severity, finding.kind) == ("error", Kind.EVERY_POD_REJECTED)
    mentions(str(finding), *facts)
    wording(str(finding))


@pytest.mark.parametrize(
    "documents",
    [
        [policy("a", requirements=pool("a"), match=WORKERS),
         policy("b", requirements=pool("b"), match={"kinds": ["job"]})],
        [policy("a", requirements=pool("a")),
         policy("b", requirements=pool("b"), enforcement="Audit")],
        [policy("a", requirements=pool("a"), exclude=[{"roles": ["ps"]}]),
         policy("b", requirements=pool("b"), exclude=[{"kinds": ["job"]}])],
        [policy("a", requirements=pool("a"), rollout={"namespaces": ["ml-*"]}),
         policy("b", requirements=pool("b"), rollout={"namespaces": ["*-team"]})],
        [policy("a", enforcement="Audit",
                requirements={**spot("Constrain"), "nodeSelector": {"spot": "false"}})],
    ],
)  # fmt: skip
def test_where_some_pods_pass_it_is_a_warning(documents: list[Json]) -> None:
    """Policies that merely overlap, or of which one is not enforced."""
    found = warnings(prepared(documents), None)
    assert found
    assert {each.severity for each in found} == {"warning"}


@pytest.mark.parametrize(
    "documents",
    [
        [A, B, policy("c", overrides=AC)],
        [policy("a", requirements=AB, exclude=[{"roles": ["ps"]}]),
         policy("b", requirements=BC, exclude=[{"kinds": ["job"]}]),
         policy("c", requirements=AC, match={"kinds": ["job"]})],
        [policy("a", requirements={"tolerations": [{"operator": "Exists"}]}),
         policy("b", requirements={"tolerations": [{"key": "x", "operator": "Exists"}]})],
        # A wider one stands before both.
        [policy("a", requirements={"tolerations": [{"operator": "Exists"}]}),
         policy("b", requirements=for_seconds(5)), policy("c", requirements=for_seconds(50))],
        # Nothing is said of kind core, nor of workers that are not in any of the lists.
        [policy("a", match={"kinds": list(names.KINDS[:-1])}, requirements=pool("a")),
         policy("b", requirements=pool("b"), match=WORKERS)],
        [policy("a", match={"namespaces": ["ml-a"]}, requirements=pool("a")),
         policy("b", match={"namespaces": ["ml-b"]}, requirements=pool("b"))],
        # The second one is enforced for no pod at all.
        [policy("a", match={"kinds": list(names.KINDS)}, requirements=pool("a")),
         policy("b", match=ML, requirements=pool("b"), rollout={"namespaces": ["web"]})],
    ],
)  # fmt: skip
def test_requirements_that_a_pod_meets_are_not_an_error(documents: list[Json]) -> None:
    """Or of which one takes no part."""
    assert not [each for each in warnings(prepared(documents), None) if each.is_fault]


def test_a_requirement_that_may_give_way_is_not_counted() -> None:
    """Somebody's None of a class comes before Constrain, and then leaves it nothing to say."""
    crowd = [
        policy("a", requirements=spot("Constrain")),
        policy("b", requirements={"nodeSelector": {"pool": "b"}}),
        policy("c", requirements=_either({"pool": "c"}, {"spot": "false"})),
    ]
    assert found_in(*crowd) == [("c", "error", Kind.EVERY_POD_REJECTED)]
    others = found_in(*crowd, policy("d", match=ML, requirements=spot("None")))
    assert others == [("c", "warning", Kind.SOME_PODS_REJECTED)]


def _either(*terms: dict[str, str]) -> Json:
    """A placement on nodes that have the labels of one of the terms."""
    listed = [
        {"matchExpressions": [{"key": k, "operator": "In", "values": [v]} for k, v in each.items()]}
        for each in terms
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}
    return {"affinity": {"nodeAffinity": required}}


def test_each_contradicting_pair_is_reported_as_a_pair() -> None:
    """Of them a third one is no part, though it requires something of the same label."""
    found = found_in(
        policy("a", requirements=within("a")), B, policy("c", requirements=within("c"))
    )
    assert found == [(name, "error", Kind.EVERY_POD_REJECTED) for name in "bc"]


def test_every_author_of_a_contradiction_gets_a_warning() -> None:
    """Wherever it is said."""
    ready = prepared(
        [A, B, policy("c", match=ML, requirements=AC), policy("d", requirements=within(*"abc"))]
    )
    for name in "abc":
        (finding,) = of_policy(ready, name, None)
        assert finding.about == "a b c"
    assert of_policy(ready, "d", None) == []


def test_of_very_many_those_that_want_one_key_are_reported() -> None:
    """Each beside the first."""
    crowd = [policy(f"p{at:02}", requirements=pool(str(at))) for at in range(30)]
    assert sum(severity == "error" for _, severity, _ in found_in(*crowd)) == 29


def test_the_number_of_comparisons_is_limited() -> None:
    """Each policy is held against all others that require something."""
    ready = prepared([A, B, policy("c", requirements=AC)])
    found = {}
    for most in (5, 200):
        effort = Effort(most)
        found[most] = len(list(rejecting(ready, frozenset(ready.policies), effort))), effort.is_over
    assert found == {5: (0, True), 200: (1, False)}


def test_an_incomplete_check_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody takes silence for an answer."""
    monkeypatch.setattr("webhook.judgement.together.warnings.MOST_LOOKS", 2)
    monkeypatch.setattr("webhook.judgement.together.warnings.MOST_LOOKS_OF_ALL", 2)
    ready = prepared([A, B, policy("c", requirements=AC)])
    for found in (warnings(ready, None), of_policy(ready, "c", None)):
        assert {each.severity for each in found} == {"warning"}
        assert {each.kind for each in found} == {Kind.NOT_CHECKED, Kind.SOME_PODS_REJECTED}


few_pools = st.lists(st.sampled_from("abcd"), min_size=2, max_size=3, unique=True)
matches = st.sampled_from([{}, {}, ML, {"kinds": ["job"]}, {"roles": ["worker"], **ML}])
crowds = st.lists(
    st.tuples(matches, st.builds(lambda pools: within(*pools), few_pools)), min_size=3, max_size=5
)


@thorough
@given(crowds, st.lists(pods(), min_size=1, max_size=3), st.booleans())
def test_every_pod_of_such_a_policy_is_rejected(
    crowd: list[tuple[Json, Json]], some: list[Json], kueue: bool
) -> None:
    """Whatever else matches: by the engine itself."""
    documents = [
        policy(f"p{at}", match=match, requirements=wanted)
        for at, (match, wanted) in enumerate(crowd)
    ]
    found = [each for each in warnings(prepared(documents), None) if each.is_fault]
    event(f"told: {bool(found)}")
    for finding in found:
        for pod in some:
            decision = decided(pod, policy_set(documents), kueue=kueue)
            if set(finding.about.split()) <= set(decision.policies):
                event("a pod that they match")
                assert decision.result == "rejected", finding


SPACES = [["ml-a"], ["ml-*"], ["*"]]
spec = st.fixed_dictionaries(
    {"requirements": st.sampled_from([pool("a"), pool("b")])},
    optional={
        "match": st.fixed_dictionaries(
            {},
            optional={
                "namespaces": st.sampled_from(SPACES),
                "roles": st.just(["worker"]),
                "frameworks": st.just(["pytorch"]),
            },
        ),
        "exclude": st.just([{"roles": ["ps"]}]),
        "rollout": st.builds(lambda found: {"namespaces": found}, st.sampled_from(SPACES)),
    },
)


def everybody() -> list[Arrival]:
    """A pod of each kind that these policies tell apart."""
    found = []
    parts = (("ml-a", "ml-b", "web"), ("worker", "ps", "master"), ("pytorch", "tensorflow"))
    for space, role, framework in itertools.product(*parts):
        labels = {names.RUN: "r", names.ROLE: role, names.FRAMEWORK: framework}
        own = {"metadata": {"labels": labels}, "spec": {"containers": []}}
        found.append(Arrival(own, space, {"kubernetes.io/metadata.name": space}))
    return found


@thorough
@given(st.lists(spec, min_size=2, max_size=3))
def test_no_policy_without_an_error_rejects_all_of_its_pods(specs: list[Json]) -> None:
    """Each that changes any pod at all leaves one in, by the engine itself."""
    documents = [policy(f"p{at}", **each) for at, each in enumerate(specs)]
    if any(each.is_fault for each in warnings(prepared(documents), None)):
        event("told")
        return
    policies = policy_set(documents)
    enforced, admitted = set[str](), set[str]()
    for arrival in everybody():
        decision = decide(arrival, policies, Cluster())
        enforced.update(decision.policies)
        admitted.update(decision.policies if decision.allowed else ())
    event(f"rejected: {len(enforced - admitted)}")
    assert enforced == admitted
