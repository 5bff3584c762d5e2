"""Laws of Audit: it changes nothing, and what it records is the difference that enforcing makes."""

from __future__ import annotations

import copy
import json

from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.laws.strategies import CLASSES, document, pods, policies
from tests.laws.test_laws import lawful, unstamped
from tests.laws.world import Json, decided, patched, policy_set
from webhook import names
from webhook.decision.audit import MOST_ALONE
from webhook.decision.decision import Decision


@st.composite
def audits(draw: st.DrawFn) -> tuple[list[Json], list[Json]]:
    """Policies that are enforced, and policies under Audit, of which some overlap."""
    every = [draw(policies(f"p{at}")) for at in range(draw(st.integers(1, 5)))]
    for each in every:
        each["spec"].pop("rollout", None)
    tried = draw(st.sets(st.sampled_from(range(len(every))), min_size=1))
    return (
        [each for at, each in enumerate(every) if at not in tried],
        [each for at, each in enumerate(every) if at in tried],
    )


def under_audit(given: list[Json]) -> list[Json]:
    """The policies with either way of not being enforced in the namespace of the pods."""
    ways: list[Json] = [{"enforcement": "Audit"}, {"rollout": {"namespaces": ["research"]}}]
    return [
        {**each, "spec": {**each["spec"], **ways[at % 2]}}
        for at, each in enumerate(copy.deepcopy(given))
    ]


def outcome(pod: Json, now: Decision, then: Decision) -> str:
    """What two decisions on the pod differ by, for the pod."""
    if now.allowed and then.allowed:
        one, other = (unstamped(patched(pod, each)) for each in (now, then))
        return "same" if one == other else "changes"
    if now.allowed:
        return "rejects"
    return "changes" if then.allowed else "same"


@lawful
@given(pods(), audits(), st.booleans(), st.booleans(), st.booleans())
def test_a_policy_under_audit_is_charged_with_what_enforcing_it_alone_changes(
    pod: Json, sets: tuple[list[Json], list[Json]], kueue: bool, daemon: bool, systems: bool
) -> None:
    """And all of them together with what enforcing all changes; the pod gets none of it.

    systems: zone is the label of operating systems
    """
    classes = list(CLASSES)
    if systems:
        text = json.dumps([pod, sets, classes]).replace('"zone"', f'"{names.OS_LABEL}"')
        pod, sets, classes = json.loads(text)
    enforced, tried = sets
    user = "somebody"
    if daemon:
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u"}
        pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        user = "system:serviceaccount:kube-system:daemon-set-controller"

    def decide(*more: Json) -> Decision:
        return decided(pod, policy_set([*enforced, *more], classes), kueue=kueue, user=user)

    now = decide()
    found = decide(*under_audit(tried))
    assert (found.result, found.reason, found.policies, found.trace, list(found.warnings)) == (
        now.result,
        now.reason,
        now.policies,
        now.trace,
        list(now.warnings),
    )
    assert unstamped(patched(pod, found)) == unstamped(patched(pod, now))
    alone = found.audited.alone if found.audited else {}
    for policy in tried:
        name = policy["metadata"]["name"]
        expected = outcome(pod, now, decide(policy))
        event(f"{expected} of {len(alone)}")
        assert (alone[name].outcome if name in alone else "same") == expected, name
    together = found.audited.together.outcome if found.audited else "same"
    assert together == outcome(pod, now, decide(*tried))


@settings(max_examples=5, deadline=None)
@given(pods())
def test_no_more_than_so_many_policies_are_judged_alone(pod: Json) -> None:
    """The first by priority; of the others the pod's record says that they are not judged."""
    count = MOST_ALONE + 3
    tried = [
        document(
            "PlacementPolicy",
            f"p{at}",
            {
                "priority": -at,
                "enforcement": "Audit",
                "overrides": {"annotations": {f"a{at}": "x"}},
            },
        )
        for at in range(count)
    ]
    audited = decided(pod, policy_set(tried)).audited
    assert audited is not None
    outcomes = [audited.alone[f"p{at}"].outcome for at in range(count)]
    assert outcomes == ["changes"] * MOST_ALONE + ["not-judged"] * 3
    assert audited.together.outcome == "changes"
