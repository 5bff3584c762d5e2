"""Requirements that reject every pod of a run, a policy, a kind, a role or a namespace."""

from __future__ import annotations

import itertools
import math
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from tests.judgement.together.test_warnings import policy, pool, prepared, thorough
from tests.laws.strategies import pods
from tests.laws.world import decided, policy_set
from webhook import names
from webhook.decision.arrival import Arrival, Cluster
from webhook.decision.engine import decide
from webhook.judgement.together.effort import Effort
from webhook.judgement.together.everywhere import rejecting
from webhook.judgement.together.warnings import UNBOUNDED, Budget, of_policy, warnings
from webhook.policy.findings import Kind

Json = dict[str, Any]


def within(*pools: str) -> Json:
    expression = {"key": "pool", "operator": "In", "values": list(pools)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


AB, BC, AC = (within(*each) for each in ("ab", "bc", "ac"))
A = policy("a", requirements=AB)
B = policy("b", requirements=BC)
ML = {"namespaces": ["ml-*"]}


def found_in(*documents: Json) -> list[tuple[str, str, str]]:
    """File, severity and kind of each finding."""
    found = warnings(prepared(list(documents)), None, UNBOUNDED)
    return [(each.file.partition("/")[2], each.severity, each.kind) for each in found]


def test_every_author_of_a_contradiction_gets_a_warning() -> None:
    """Wherever it is said."""
    ready = prepared(
        [A, B, policy("c", match=ML, requirements=AC), policy("d", requirements=within(*"abc"))]
    )
    for name in "abc":
        (finding,) = of_policy(ready, name, None, UNBOUNDED)
        assert finding.about == "a b c"
    assert of_policy(ready, "d", None, UNBOUNDED) == []


def test_of_very_many_those_that_want_one_key_are_reported() -> None:
    """Each beside the first."""
    crowd = [policy(f"p{at:02}", requirements=pool(str(at))) for at in range(12)]
    assert sum(severity == "error" for _, severity, _ in found_in(*crowd)) == 11


def test_the_number_of_comparisons_is_limited() -> None:
    """Each policy is held against all others that require something."""
    ready = prepared([A, B, policy("c", requirements=AC)])
    found = {}
    for most in (5, 200):
        effort = Effort(most)
        found[most] = len(list(rejecting(ready, frozenset(ready.policies), effort))), effort.is_over
    assert found == {5: (0, True), 200: (1, False)}


def test_an_incomplete_check_is_reported() -> None:
    """Nobody takes silence for an answer."""
    little = Budget(2, math.inf)
    ready = prepared([A, B, policy("c", requirements=AC)])
    for found in (warnings(ready, None, little), of_policy(ready, "c", None, little)):
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
    found = [each for each in warnings(prepared(documents), None, UNBOUNDED) if each.is_fault]
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
def test_no_policy_without_a_finding_rejects_all_of_its_pods(specs: list[Json]) -> None:
    """Each that changes any pod at all leaves one in, by the engine itself."""
    documents = [policy(f"p{at}", **each) for at, each in enumerate(specs)]
    rejects = {Kind.EVERY_POD_REJECTED, Kind.SOME_PODS_REJECTED}
    if any(each.kind in rejects for each in warnings(prepared(documents), None, UNBOUNDED)):
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
