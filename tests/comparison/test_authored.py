"""From a pod that was placed to what its author wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import HealthCheck, assume, given, settings

from tests.comparison.worlds import arrival, policies
from tests.examples import examples
from tests.laws.strategies import pods as pods_of_runs
from tests.laws.strategies import policy_lists
from tests.laws.world import decided, policy_set
from tests.policy_tests.writing import policy
from webhook import names
from webhook.comparison.authored import Authored, with_origin, without_credits
from webhook.comparison.difference import gaps
from webhook.decision.arrival import Arrival, Cluster
from webhook.decision.engine import decide
from webhook.placement import pod as pods
from webhook.placement.node_affinity import is_empty
from webhook.placement.pod import PREFERRED_NODES, PodPlacement
from webhook.placement.shapes import Requirement, Term
from webhook.policy.policy_set import PolicySet

Json = dict[str, Any]
POOL = policy("pool", "overrides: {nodeSelector: {zone: a}}")
OTHER_POOL = policy("pool", "overrides: {nodeSelector: {zone: b}}")
GPU = policy("gpu", "overrides: {tolerations: [{key: gpu, operator: Exists}]}")
SPOT = policy("spots", "overrides: {capacity: [{class: spot, mode: Constrain}]}")


def placed(came: Arrival, by: PolicySet) -> PodPlacement:
    """The pod's placement once it was admitted."""
    found = decide(came, by, Cluster()).placement
    assert found is not None
    return found


def credited(placement: PodPlacement) -> Mapping[str, Sequence[str]]:
    found: Mapping[str, Sequence[str]] = json.loads(placement.annotations[names.PLACEMENT])[
        "policies"
    ]
    return found


def authored(live: PodPlacement, today: PolicySet) -> Authored:
    """The author's part, by the stamp."""
    return without_credits(live, credited(live), today)


def test_what_every_kind_of_setting_gave_is_taken_away_again() -> None:
    """Members, tolerations, capacity and required affinity; the stamp, too."""
    by = policies(POOL, GPU, SPOT)
    came = arrival(nodeSelector={"own": "x"}, tolerations=[{"key": "own", "operator": "Exists"}])
    live = placed(came, by)
    assert len(live.tolerations) == 3
    assert live.required
    assert authored(live, by) == Authored(pods.parse_pod(came.pod))


def test_a_policy_that_sets_something_else_by_now_is_undone_by_the_fields_name() -> None:
    """The stamp names the key; what was given there is gone, whatever it was."""
    live = placed(arrival(), policies(POOL, GPU))
    found = authored(live, policies(OTHER_POOL))
    assert found == Authored(pods.parse_pod(arrival().pod))


def test_values_of_unknown_origin_count_as_the_authors_and_are_reported() -> None:
    """Of a class that is gone nobody knows its taints and labels."""
    by = policies(SPOT)
    live = placed(arrival(), by)
    found = without_credits(live, {"spots": ["capacity[gone]"]}, by)
    assert found.unsure == (("spots", "capacity[gone]"),)
    assert found.placement.tolerations == live.tolerations


def test_an_authors_template_restores_what_was_overruled() -> None:
    """And what nobody knows any more is then known to be none of the author's."""
    came = arrival(
        nodeSelector={"zone": "mine"}, tolerations=[{"key": "own", "operator": "Exists"}]
    )
    by = policies(POOL, SPOT)
    live = placed(came, by)
    origin = pods.parse_pod(came.pod)
    assert authored(live, by).placement.node_selector == {}
    assert with_origin(authored(live, by), origin) == Authored(origin)
    lost = without_credits(live, {"pool": ["nodeSelector[zone]"], "x": ["capacity[gone]"]}, by)
    assert with_origin(lost, origin) == Authored(origin)


def test_additions_of_others_stay_in_an_authors_template() -> None:
    """A controller's labels, admission's tolerations and nodeSelector."""
    came = arrival()
    live = placed(came, policies(GPU))
    live = live._replace(
        labels={**live.labels, "job": "j", "index": "1"},
        node_selector={"team": "x"},
        tolerations=[*live.tolerations, {"key": "istio", "operator": "Exists"}],
    )
    origin = pods.parse_pod(came.pod)
    origin = origin._replace(labels={**origin.labels, "index": "0"})
    found = with_origin(authored(live, policies(GPU)), origin).placement
    assert (found.labels["job"], found.labels["index"]) == ("j", "1")
    assert found.node_selector == {"team": "x"}
    assert [each["key"] for each in found.tolerations] == ["istio"]


NEAR = {"topologyKey": "zone", "labelSelector": {}}
SPREAD = {**NEAR, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
REQUIRED, PREFERRED = "affinity.podAffinity.required", "affinity.podAntiAffinity.preferred"


def test_what_others_added_to_affinity_and_spread_stays_too() -> None:
    """Another webhook's terms; what it ANDed into the author's; the DaemonSet controller's node."""
    by = policies(GPU, SPOT)
    mine = [{"matchExpressions": [{"key": "own", "operator": "Exists"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": mine}}
    written = arrival(affinity={"nodeAffinity": required})
    came, live = pods.parse_pod(written.pod), placed(written, by)
    theirs: Requirement = {"key": "theirs", "operator": "Exists"}
    assert live.required
    added = live._replace(
        required=[
            {"matchExpressions": [*(term.get("matchExpressions") or ()), theirs]}
            for term in live.required
        ],
        lists={REQUIRED: [NEAR]},
        topology_spread=[SPREAD],
    )
    found = with_origin(authored(added, by), came).placement
    assert found.required == [{"matchExpressions": [*mine[0]["matchExpressions"], theirs]}]
    assert (found.lists, found.topology_spread) == ({REQUIRED: [NEAR]}, [SPREAD])
    node: Requirement = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    of_daemon = live._replace(
        required=[{"matchFields": [node], "matchExpressions": [{"key": "a", "operator": "Exists"}]}]
    )
    found = with_origin(authored(of_daemon, by), came).placement
    assert found.required == [{"matchFields": [node]}]


def test_what_a_class_may_have_left_is_not_taken_for_others() -> None:
    """A class that has changed since leaves tolerations, terms and preferences for nodes."""
    by = policies(SPOT)
    old: Term = {"matchExpressions": [{"key": "old", "operator": "Exists"}]}
    near = {"weight": 1, "podAffinityTerm": NEAR}
    live = placed(arrival(), by)._replace(
        required=[old],
        lists={PREFERRED: [near], PREFERRED_NODES: [{"weight": 1, "preference": old}]},
        tolerations=[
            {"key": "old-spot", "operator": "Exists"},
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
        ],
    )
    found = with_origin(authored(live, by), pods.parse_pod(arrival().pod)).placement
    assert (found.required, found.lists) == (None, {PREFERRED: [near]})
    assert [each["key"] for each in found.tolerations] == ["node.kubernetes.io/not-ready"]


def test_fields_that_choose_a_node_are_not_credited_in_a_pod_with_a_node() -> None:
    """The stamp credits what is there, be it a RuntimeClass' own."""
    by = policies(POOL)
    live = placed(arrival(), by)._replace(node_name="n1")
    assert authored(live, by).placement.node_selector == {"zone": "a"}


def test_conditions_that_share_a_requirement_are_both_undone() -> None:
    """Of two policies that name one node, each with a label."""
    node: Requirement = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    both = policies(
        *(
            f"""
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: {name}}}
spec:
  overrides:
    affinity:
      nodeAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions: [{{key: {key}, operator: Exists}}]
            matchFields: [{json.dumps(node)}]
"""
            for name, key in (("pool", "pool"), ("zone", "zone"))
        )
    )
    live = placed(arrival(), both)
    assert live.required
    assert authored(live, both) == Authored(pods.parse_pod(arrival().pod))


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(pods_of_runs(), policy_lists())
def test_with_its_authors_text_a_placed_pod_is_as_it_came(pod: Json, documents: list[Json]) -> None:
    """Whatever policies gave it, and whatever they took away.

    Unless none of its required terms matches any node: then no stamp credits anybody with a class,
    and the class's tolerations stay.
    """
    came = pods.parse_pod(pod)
    assume(came.required is None or not all(map(is_empty, came.required)))
    by = policy_set(documents)
    decision = decided(pod, by)
    assume(decision.allowed and decision.result != "left-alone")
    assert decision.placement is not None
    assert gaps(with_origin(authored(decision.placement, by), came).placement, came) == []
