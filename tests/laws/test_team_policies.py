"""Laws of teams' policies: they change what a pod leaves open, and nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from typing import Any

import orjson
from hypothesis import assume, event, given
from hypothesis import strategies as st

from tests.laws.strategies import CLASSES, document, one, placements, pods, policy_lists
from tests.laws.test_laws import lawful
from tests.laws.world import CLUSTER, decided, patched
from webhook import names
from webhook.decision.arrival import Arrival
from webhook.decision.decision import Decision
from webhook.decision.engine import decide
from webhook.judgement.set_judgement import load_objects
from webhook.policy.model import TEAM_FIELDS
from webhook.policy.policy_set import PolicySet

Json = dict[str, Any]
# The namespace of `decided`.
OURS = "ml-team"


@st.composite
def team_policies(draw: st.DrawFn, namespace: str = OURS) -> list[Json]:
    """Some policies of a team; a class of theirs may have gone."""
    result = []
    for at in range(draw(st.integers(1, 3))):
        given = draw(placements("defaults"))
        defaults = {key: value for key, value in given.items() if key in TEAM_FIELDS}
        defaults = defaults or {"nodeSelector": {"pool": "b"}}
        if draw(st.integers(0, 7)) == 0:
            defaults["capacity"] = [{"class": "gone", "mode": "Constrain"}]
        spec: Json = {"defaults": defaults}
        if draw(st.booleans()):
            selector = {"matchLabels": {"stage": "prod"}}
            spec["match"] = draw(one({"roles": ["worker"]}, {"podSelector": selector}))
        policy = document(names.TEAM_KIND, f"t{at}", spec)
        policy["metadata"]["namespace"] = namespace
        result.append(policy)
    return result


def loaded(documents: Iterable[Json]) -> PolicySet:
    """The set of the documents and of the classes, as it serves."""
    named = {f"{at:03}": each for at, each in enumerate((*documents, *CLASSES))}
    return load_objects({place: orjson.dumps(each) for place, each in named.items()}).policies


def both(pod: Json, policies: list[Json], teams: list[Json]) -> tuple[Decision, Decision]:
    """The decisions with the teams' policies, and without them."""
    return decided(pod, loaded([*policies, *teams])), decided(pod, loaded(policies))


@lawful
@given(pods(), policy_lists(), team_policies())
def test_the_same_pods_are_admitted_with_teams_policies_and_without(
    pod: Json, policies: list[Json], teams: list[Json]
) -> None:
    """And a pod that is rejected is rejected for the same reason."""
    decision, without = both(pod, policies, teams)
    event(f"{without.result} {decision.result}")
    assert decision.allowed == without.allowed
    if not decision.allowed:
        assert decision.reason == without.reason


@lawful
@given(pods(), policy_lists(), team_policies())
def test_what_requirements_and_overrides_do_is_the_same(
    pod: Json, policies: list[Json], teams: list[Json]
) -> None:
    """Each of their settings has the same outcome, with the same value."""
    decision, without = both(pod, policies, teams)
    traces = [
        [entry for entry in each.trace if entry.part in ("requirements", "overrides")]
        for each in (decision, without)
    ]
    event("some" if traces[1] else "none")
    assert sorted(traces[0]) == sorted(traces[1])


def taken_away(decision: Decision) -> list[tuple[str, ...]]:
    """What requirements take from the pod."""
    return sorted(
        entry
        for entry in decision.trace
        if entry.part == "requirements" and entry.outcome == "removed"
    )


@lawful
@given(pods(), policy_lists(), team_policies())
def test_a_team_adds_no_toleration_that_the_author_could_not_have(
    pod: Json, policies: list[Json], teams: list[Json]
) -> None:
    """With it in the pod as the author sends it, the pod is admitted, and no rule takes it away."""
    decision, without = both(pod, policies, teams)
    assume(decision.allowed)
    before = patched(pod, without)["spec"].get("tolerations") or []
    placed = patched(pod, decision)["spec"].get("tolerations") or []
    added = [toleration for toleration in placed if toleration not in before]
    event("added" if added else "nothing")
    written = copy.deepcopy(pod)
    written["spec"]["tolerations"] = [*(written["spec"].get("tolerations") or []), *added]
    again = decided(written, loaded(policies))
    assert again.allowed
    assert taken_away(again) == taken_away(without)


@lawful
@given(pods(), policy_lists(), team_policies("other"))
def test_nothing_changes_in_another_namespace(
    pod: Json, policies: list[Json], teams: list[Json]
) -> None:
    """Not a byte of the patch, no warning, no line of the trace."""
    decision, without = both(pod, policies, teams)
    assert json.dumps(decision.patch) == json.dumps(without.patch)
    assert decision.warnings == without.warnings
    assert decision.trace == without.trace
    assert decision.policies == without.policies


@lawful
@given(pods(), policy_lists(), team_policies())
def test_a_pod_that_is_sent_again_stays_as_it_is(
    pod: Json, policies: list[Json], teams: list[Json]
) -> None:
    """What a team's policy has added counts as the author's, and is allowed."""
    policy_set = loaded([*policies, *teams])
    decision = decided(pod, policy_set)
    assume(decision.allowed and decision.placement is not None)
    once = patched(pod, decision)
    again = decided(once, policy_set)
    assert again.allowed
    assert patched(once, again)["spec"] == once["spec"]


@lawful
@given(policy_lists(), team_policies())
def test_policies_of_admins_are_judged_the_same(policies: list[Json], teams: list[Json]) -> None:
    """A set with teams' policies compiles if it does without them."""
    with_teams, without = loaded([*policies, *teams]), loaded(policies)
    shared = [policy.name for policy in with_teams.policies if not policy.team]
    assert shared == [policy.name for policy in without.policies]
    pod = {"metadata": {"labels": {names.RUN: "r"}}, "spec": {"containers": []}}
    arrival = Arrival(pod, "elsewhere", {})
    assert decide(arrival, with_teams, CLUSTER).patch == decide(arrival, without, CLUSTER).patch
