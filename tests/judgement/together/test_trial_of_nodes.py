"""Policies each of which leaves nodes, and that together leave none of those that there are."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.judgement.test_cluster_objects import objects
from tests.judgement.together.test_everywhere import ML, within
from tests.judgement.together.test_trial import VISION
from tests.judgement.together.test_warnings import policy, pool, spot, thorough
from tests.laws.strategies import CLASSES, pods
from tests.laws.world import decided, policy_set
from tests.wording import Wording, mentions
from webhook.judgement.set_judgement import Objects, judge_set
from webhook.placement.nodes import Node, survey
from webhook.policy.findings import Finding, Kind

Json = dict[str, Any]
TAINT: Any = {"key": "spot", "value": "true", "effect": "NoSchedule"}
GPU: Any = {"key": "gpu", "effect": "NoSchedule"}
NODES = (
    Node("books", {"pool": "a", "zone": "a"}, ()),
    Node("cheap", {"spot": "true", "zone": "b"}, (TAINT,)),
    Node("plain", {"pool": "b", "zone": "b"}, ()),
)
NOTEBOOKS = policy("notebooks", match={"kinds": ["notebook"]}, defaults=pool("a"))
GPUS = policy("gpus", match={"resources": ["nvidia.com/gpu"]}, overrides=spot("Constrain"))


def found_in(*documents: Json, nodes: tuple[Node, ...] = NODES) -> list[Finding]:
    """What is said of policies that leave no node."""
    read = Objects().documents(objects(*documents, *CLASSES[:1]))
    found = judge_set(read, nodes=nodes).findings
    return [each for each in found if each.kind is Kind.NO_NODE and "policies/" in each.file]


def test_a_pool_and_a_class_that_have_no_node_in_common_are_reported(wording: Wording) -> None:
    """As admission would tell it, with a pod that both match."""
    (finding,) = found_in(NOTEBOOKS, GPUS)
    assert (finding.severity, finding.kind) == ("warning", Kind.NO_NODE)
    mentions(str(finding), "placementpolicies/notebooks", "none of the 3 nodes", "policy 'gpus'")
    mentions(str(finding), "fairlead.dev/kind=notebook", "requesting nvidia.com/gpu", "Pending")
    wording(str(finding))


def test_what_is_certain_for_every_pod_of_a_policy_is_an_error(wording: Wording) -> None:
    """The other one is enforced for each of them."""
    everywhere = policy("all", overrides=spot("Constrain"))
    (finding,) = found_in(everywhere, NOTEBOOKS)
    assert finding.severity == "error"
    mentions(str(finding), "/notebooks", "policy 'all'", "every pod that it matches")
    wording(str(finding))


def test_what_another_policy_may_decide_is_not_certain() -> None:
    """The first takes the zone of the third away from every pod: none of them stays Pending."""
    zones_of = [{"nodeSelector": {"zone": zone}} for zone in "ba"]
    first, third = (
        policy(f"p{at}", overrides=zone) for at, zone in zip((0, 2), zones_of, strict=True)
    )
    second = policy("p1", overrides=within("b"))
    assert {each.severity for each in found_in(first, second, third)} <= {"warning"}
    assert {each.severity for each in found_in(second, third)} == {"error"}


def test_it_is_certain_for_every_pod_of_any_of_them() -> None:
    """Of one before the last, too; it is told at the last."""
    first = policy("a", match={"kinds": ["notebook"]}, overrides=pool("a"))
    (finding,) = found_in(first, policy("b", overrides=spot("Constrain")))
    assert finding.severity == "error"
    mentions(str(finding), "placementpolicies/b", "every pod that policy 'a' matches")


def test_an_incomplete_check_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """And it makes no policy unsatisfiable."""
    monkeypatch.setattr("webhook.judgement.together.warnings.MOST_TRIED_OF_ALL", 0)
    read = Objects().documents(objects(NOTEBOOKS, GPUS, *CLASSES[:1]))
    judged = judge_set(read, nodes=NODES)
    told = [each for each in judged.findings if each.kind is Kind.NOT_CHECKED]
    assert [(each.file, each.severity) for each in told] == [
        ("placementpolicies/notebooks", "warning")
    ]


def test_three_policies_that_only_together_leave_no_node_are_reported(wording: Wording) -> None:
    """With a pod."""
    nodes = tuple(Node(each, dict.fromkeys(each, "1"), ()) for each in ("xy", "yz", "xz"))
    some = [
        policy("a", match={"roles": ["worker"]}, overrides={"nodeSelector": {"x": "1"}}),
        policy("b", match=ML, overrides={"nodeSelector": {"y": "1"}}),
        policy("c", match=VISION, defaults={"nodeSelector": {"z": "1"}}),
    ]
    (finding,) = found_in(*some, nodes=nodes)
    mentions(str(finding), "policies 'a', 'b'", "all of them match", "team=vision")
    wording(str(finding))
    assert found_in(*some[:2], nodes=nodes) == []


def test_nodes_that_both_choose_and_neither_tolerates_are_none() -> None:
    """Each by itself has another node."""
    nodes = (
        Node("a", {"pool": "a"}, ()),
        Node("ab", {"pool": "a", "zone": "b"}, (GPU,)),
        Node("b", {"pool": "b", "zone": "b"}, ()),
    )
    zoned = policy("zoned", match=ML, overrides={"nodeSelector": {"zone": "b"}})
    assert [each.kind for each in found_in(NOTEBOOKS, zoned, nodes=nodes)] == [Kind.NO_NODE]
    opened = policy("open", overrides={"tolerations": [{"key": "gpu", "operator": "Exists"}]})
    assert found_in(NOTEBOOKS, zoned, opened, nodes=nodes) == []


@pytest.mark.parametrize(
    "others",
    [
        [{**GPUS, "spec": {**GPUS["spec"], "match": {"kinds": ["job"]}}}],
        [{**GPUS, "spec": {**GPUS["spec"], "exclude": [{"kinds": ["notebook"]}]}}],
        [policy("gpus", match={"roles": ["worker"]}, overrides=pool("b"))],
        [policy("gpus", defaults={"schedulerName": "x"})],
    ],
)
def test_policies_that_never_meet_or_yield_are_not_reported(others: list[Json]) -> None:
    """Other pods, an exclude, a default that an override decides, and no setting for nodes."""
    assert found_in(NOTEBOOKS, *others) == []


def test_nodes_that_are_made_on_demand_are_not_missed() -> None:
    """By a class that could make one for both."""
    made: Json = {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "CapacityClass",
        "metadata": {"name": "made"},
        "spec": {"autoscaled": True, "nodes": [{"labels": {"pool": "a", "zone": "b"}}]},
    }
    zoned = policy("zoned", match=ML, overrides={"nodeSelector": {"zone": "b"}})
    assert len(found_in(NOTEBOOKS, zoned)) == 1
    assert found_in(NOTEBOOKS, zoned, made) == []


def test_a_runtime_class_that_leaves_none_by_itself_is_reported_alone() -> None:
    """Of whoever names it, and of nobody beside it; with another policy, if only that does it."""
    documents = [
        policy("sandboxed", match={"kinds": ["notebook"]}, defaults={"runtimeClassName": "k"}),
        policy("placed", match=ML, overrides={"nodeSelector": {"zone": "b"}}),
    ]
    read = Objects().documents(objects(*documents, *CLASSES[:1]))
    for selected, severities in (("nowhere", ["error"]), ("a", ["warning"]), ("b", [])):
        runtime = {"k": {"scheduling": {"nodeSelector": {"pool": selected}}}}
        found = judge_set(read, nodes=NODES, classes={"RuntimeClass": runtime}).findings
        told = [each for each in found if each.kind is Kind.NO_NODE and "policies/" in each.file]
        assert {each.file.partition("/")[2] for each in told} <= {"sandboxed"}
        assert [each.severity for each in told] == severities


def test_under_audit_it_is_reported_as_a_future_effect() -> None:
    """A warning that names who has to be enforced."""
    (finding,) = found_in({**GPUS, "spec": {**GPUS["spec"], "enforcement": "Audit"}}, NOTEBOOKS)
    assert finding.severity == "warning"
    mentions(finding.message, "once 'gpus' is enforced")


# Each has a node: of a policy that leaves none by itself it is told whatever stands beside it.
zones = st.sampled_from(["a", "b"])
matches = st.sampled_from([{}, {"roles": ["worker"]}, ML, {"kinds": ["job"]}])
wanted = st.one_of(
    st.builds(lambda zone: {"nodeSelector": {"zone": zone}}, zones),
    st.builds(lambda some: within(*some), st.lists(st.sampled_from("ab"), min_size=1, max_size=2)),
)
parts = st.sampled_from(["overrides", "defaults", "requirements"])


def all_matched_by(finding: Finding) -> str:
    """Name the policy each of whose pods stays Pending: the finding's own, or another."""
    other = re.search(r"every pod that policy '(.+?)' matches", finding.message)
    return other[1] if other else finding.file.partition("/")[2]


@thorough
@given(st.lists(st.tuples(matches, parts, wanted), min_size=2, max_size=3), pods())
def test_an_error_is_true_of_every_pod(crowd: list[tuple[Json, str, Json]], pod: Json) -> None:
    """That says nothing of nodes itself: none of the nodes admits it, by the engine."""
    documents = [
        policy(f"p{at}", match=match, **{part: placement})
        for at, (match, part, placement) in enumerate(crowd)
    ]
    pod["spec"] = {"containers": pod["spec"]["containers"], "priority": 0}
    pod["metadata"].pop("annotations", None)
    found = [each for each in found_in(*documents) if each.severity == "error"]
    event(f"told: {bool(found)}")
    decision = decided(pod, policy_set(documents))
    for finding in found:
        if all_matched_by(finding) in decision.policies and decision.allowed:
            event("a pod that it matches")
            assert decision.placement is not None
            assert not survey(decision.placement, {}, NODES).admitted, finding
