"""Which objects are in force is said of each, and why the others are not."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from tests.judgement.reporting.objects import (
    ON_SPOT,
    POOL,
    SPOT,
    by_place,
    capacity_class,
    judged_objects,
    policy,
)
from tests.wording import Wording, mentions
from webhook.judgement.reporting.conditions import (
    Acceptance,
    judge_objects,
    remembered,
    satisfaction,
)
from webhook.judgement.reporting.decision_counts import Ledger
from webhook.judgement.reporting.statuses import Knowledge, due
from webhook.judgement.set_judgement import Objects, judge_set, load_objects
from webhook.judgement.together.warnings import UNBOUNDED, Budget
from webhook.placement.nodes import Node
from webhook.policy.findings import Kind
from webhook.policy.status_model import ObservedObject

NOW = "2026-03-01T12:00:00Z"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TAINT: Any = {"key": "spot", "value": "true", "effect": "NoSchedule"}
NORMAL = Node("normal", {"pool": "a"}, [])
CHEAP = Node("cheap", {"lifecycle": "spot"}, [])
TAINTED = Node("tainted", {"lifecycle": "spot"}, [TAINT])
POLICY, CLASS = "placementpolicies/p", "capacityclasses/spot"


def judge(*objects: ObservedObject, before: Acceptance | None = None) -> Acceptance:
    """What is said of these objects."""
    return judge_objects(judged_objects, by_place(*objects), before or Acceptance())


def said(acceptance: Acceptance) -> dict[str, tuple[str, str]]:
    """Status and reason by name."""
    return {
        place.partition("/")[2]: (one.status, one.reason)
        for place, (_, one) in acceptance.conditions.items()
    }


def message(acceptance: Acceptance, place: str) -> str:
    """What is said of one object, for a person."""
    return acceptance.conditions[place][1].message


def test_a_set_that_compiles_is_accepted_whole() -> None:
    """Each object, with the version that is in force."""
    found = judge(capacity_class("spot"), policy("on-spot", ON_SPOT, generation=3))
    assert said(found) == {"spot": ("True", "Accepted"), "on-spot": ("True", "Accepted")}
    assert found.in_force["placementpolicies/on-spot"] == ("uid-on-spot", 3)
    assert found.policies is not None
    assert found.faulty == ()


def test_each_fault_is_reported_for_its_object(wording: Wording) -> None:
    """With the field, and a reason of one word."""
    found = judge(
        policy("on-spot", ON_SPOT),
        policy("odd", {**POOL, "priority": "high"}),
        capacity_class("both", {"nodes": [{"labels": {"a": "b"}}], "complementOf": "other"}),
    )
    assert said(found) == {
        "on-spot": ("False", "UnknownClass"),
        "odd": ("False", "InvalidPolicy"),
        "both": ("False", "InvalidClass"),
    }
    mentions(message(found, "placementpolicies/odd"), "spec.priority:", "'high'", "last good set")
    wording(message(found, "placementpolicies/odd"))
    assert sorted(found.faulty) == [
        "capacityclasses/both",
        "placementpolicies/odd",
        "placementpolicies/on-spot",
    ]


def test_an_older_controller_does_not_judge_what_later_versions_know(wording: Wording) -> None:
    """Nor what depends on it; a mistake, which no version knows, is one as before."""
    good = judge(policy("same"))
    objects = by_place(
        policy("same"),
        policy("late"),
        policy("on-spot", ON_SPOT),
        policy("odd", {**POOL, "priority": "high"}),
        capacity_class("spot", {"nodes": [{"labels": {"a": "b"}, "later": 1}]}),
    )
    asked: list[set[str]] = []

    def newer(texts: Mapping[str, bytes]) -> Mapping[str, str]:
        asked.append({*texts})
        return {CLASS: "spec.nodes[0].later"}

    found = judge_objects(judged_objects, objects, good, newer)
    older = ("Unknown", "OlderController")
    assert said(found) == {
        "same": ("True", "Accepted"),
        "late": older,
        "on-spot": older,
        "odd": ("False", "InvalidPolicy"),
        "spot": older,
    }
    assert asked == [{CLASS, "placementpolicies/odd"}]
    mentions(message(found, CLASS), CLASS, "spec.nodes[0].later", "upgrade the controller")
    wording(message(found, CLASS))


def test_with_an_error_the_last_good_set_stays_in_force(wording: Wording) -> None:
    """New is an object, another version of one, and another object of the same name."""
    good = judge(policy("same"), policy("changed"), policy("anew"), policy("edited"))
    found = judge(
        policy("same"),
        policy("changed", generation=2),
        policy("anew", uid="another"),
        policy("late"),
        policy("edited", {**POOL, "priority": "high"}, generation=2),
        before=good,
    )
    held = ("False", "RefusedSet")
    assert said(found) == {
        "same": ("True", "Accepted"),
        "changed": held,
        "anew": held,
        "late": held,
        "edited": ("False", "InvalidPolicy"),
    }
    mentions(message(found, "placementpolicies/late"), "placementpolicies/edited")
    wording(message(found, "placementpolicies/late"))
    assert found.in_force == good.in_force
    assert found.policies is good.policies


def test_of_many_faults_three_are_named_to_the_others() -> None:
    """And how many more there are."""
    found = judge(*(policy(f"p{at}", ON_SPOT) for at in range(5)), policy("good"))
    assert "p0, placementpolicies/p1, placementpolicies/p2 and 2 more" in message(
        found, "placementpolicies/good"
    )


def test_a_new_leader_knows_from_the_statuses_what_is_in_force() -> None:
    """What was accepted at the generation that the object still has."""
    objects = [policy("same"), policy("edited")]
    known = Knowledge(judge(*objects), {}, Ledger(), ())
    written = [each.observed._replace(status=each.status) for each in due(objects, known, NOW)]
    same, edited = written
    now = (same, edited._replace(generation=2), policy("bad", ON_SPOT))
    found = judge(*now, before=remembered(now))
    assert said(found) == {
        "same": ("True", "Accepted"),
        "edited": ("False", "RefusedSet"),
        "bad": ("False", "UnknownClass"),
    }
    assert found.policies is None


def test_warnings_are_reported_with_what_is_accepted() -> None:
    """They are no reason to refuse anything."""
    one_node = {"defaults": {"nodeSelector": {"kubernetes.io/hostname": "n1"}}}
    found = judge(policy("p", one_node))
    assert said(found) == {"p": ("True", "Accepted")}
    field = "spec.defaults.nodeSelector[kubernetes.io/hostname]"
    assert message(found, "placementpolicies/p").startswith(f"{field}: ")


def test_warnings_about_combined_policies_are_reported_too() -> None:
    """Each at its object: all that `fairlead check` says of the same set."""
    level = {"overrides": {"schedulerName": "a"}, "match": {"roles": ["worker"]}}
    objects = by_place(
        policy("a", level), policy("b", {**level, "overrides": {"schedulerName": "b"}, "match": {}})
    )
    found = judge_objects(judged_objects, objects, Acceptance())
    texts = {place: each.text for place, each in objects.items()}
    expected = judged_objects(texts).findings
    assert {each.kind for each in expected} >= {Kind.EQUAL_PRIORITY, Kind.EMPTY_SETTING}
    for each in expected:
        assert each.text in message(found, each.file)


def test_a_set_with_a_fault_is_in_force_and_says_so(wording: Wording) -> None:
    """As one may be stored by a version that did not refuse it."""
    zones = [{"requirements": {"nodeSelector": {"zone": zone}}} for zone in "ab"]
    found = judge(policy("p1", zones[0]), policy("p2", zones[1]), policy("p3", POOL))
    assert said(found) == {
        "p1": ("True", "Accepted"),
        "p2": ("True", "AcceptedWithErrors"),
        "p3": ("True", "Accepted"),
    }
    text = message(found, "placementpolicies/p2")
    mentions(text, "spec.requirements.nodeSelector.zone: ", "every run", "'a'", "'b'")
    wording(text)
    assert found.policies is not None
    satisfied = satisfaction(found, None, UNBOUNDED)
    assert satisfied["placementpolicies/p2"].status == "False"
    assert satisfied["placementpolicies/p2"].reason == "EveryPodRejected"
    assert satisfied["placementpolicies/p1"].status == "Unknown"


def stated(
    nodes: tuple[Node, ...] | None, spec: dict[str, Any], of_class: dict[str, Any] = SPOT
) -> dict[str, tuple[str, str]]:
    """Status and reason of a policy and of the class spot."""
    objects = by_place(policy("p", spec), capacity_class("spot", of_class))
    loaded = load_objects({place: each.text for place, each in objects.items()})
    found = satisfaction(Acceptance(policies=loaded.policies), nodes, UNBOUNDED)
    return {place: (each.status, each.reason) for place, each in found.items()}


@pytest.mark.parametrize(
    ("nodes", "of_policy", "of_class"),
    [
        (None, ("Unknown", "NodesNotKnown"), ("Unknown", "NodesNotKnown")),
        ((), ("Unknown", "NoNodes"), ("Unknown", "NoNodes")),
        ((NORMAL,), ("False", "NoNode"), ("False", "NoNode")),
        ((NORMAL, CHEAP), ("True", "NodesFound"), ("True", "NodesFound")),
        ((NORMAL, TAINTED), ("False", "TaintsNotTolerated"), ("True", "NodesFound")),
    ],
)
def test_a_policy_that_wants_a_class_is_as_its_nodes(
    nodes: tuple[Node, ...] | None, of_policy: tuple[str, str], of_class: tuple[str, str]
) -> None:
    """None known, none there, none of the class, one, or one that is closed to the policy."""
    assert stated(nodes, ON_SPOT) == {POLICY: of_policy, CLASS: of_class}


@pytest.mark.parametrize("nodes", [(NORMAL,), (NORMAL, TAINTED)])
def test_a_policy_under_audit_leaves_no_pod_without_a_node(nodes: tuple[Node, ...]) -> None:
    """It changes none: neither doctor nor the alert has an error, and the author reads it."""
    audited = {**ON_SPOT, "enforcement": "Audit"}
    assert stated(nodes, audited)[POLICY] == ("Unknown", "NotEnforced")
    assert stated((NORMAL, CHEAP), audited)[POLICY] == ("True", "NodesFound")
    objects = by_place(policy("p", audited), capacity_class("spot", SPOT))
    texts = Objects().documents({place: each.text for place, each in objects.items()})
    found = judge_set(texts, UNBOUNDED, nodes=nodes).findings
    assert {each.severity for each in found} == {"warning"}
    assert any("once the policy is enforced" in each.message for each in found)


@pytest.mark.parametrize(
    ("key", "effect", "has", "stands"),
    [
        ("nvidia.com/gpu", "NoSchedule", {"nvidia.com/gpu": 8}, ("Unknown", "DependsOnPlugin")),
        ("nvidia.com/gpu", "NoSchedule", None, ("Unknown", "DependsOnPlugin")),
        ("nvidia.com/gpu", "NoExecute", {"nvidia.com/gpu": 8}, ("False", "TaintsNotTolerated")),
        # Its key has the form of a resource, and nobody can request it.
        ("example.com/spot", "NoSchedule", {"cpu": 8}, ("False", "TaintsNotTolerated")),
        ("gpu", "NoSchedule", {"gpu": 8}, ("False", "TaintsNotTolerated")),
    ],
)
def test_a_taint_that_a_plugin_may_tolerate_is_no_error(
    key: str, effect: str, has: dict[str, int] | None, stands: tuple[str, str]
) -> None:
    """Pods that request the resource run there, where the API server runs the plugin."""
    node = Node("gpu", {"pool": "gpu"}, [{"key": key, "effect": effect}], allocatable=has)
    found = stated((NORMAL, node), {"overrides": {"nodeSelector": {"pool": "gpu"}}})
    assert found[POLICY] == stands


def test_a_policy_that_asks_nothing_of_nodes_is_satisfied() -> None:
    """Whatever nodes there are."""
    found = stated((CHEAP,), {"defaults": {"labels": {"team": "a"}}})
    assert found[POLICY] == ("True", "AsksForNoNode")


def test_nodes_that_are_made_on_demand_are_not_missed() -> None:
    """Of the class, and of a policy that wants it."""
    found = stated((NORMAL,), ON_SPOT, {**SPOT, "autoscaled": True})
    assert found == {POLICY: ("True", "MadeOnDemand"), CLASS: ("True", "MadeOnDemand")}


def test_messages_about_met_nodes_have_no_number() -> None:
    """A node that comes or goes is not news of every policy."""
    objects = by_place(policy("p", POOL))
    loaded = load_objects({place: each.text for place, each in objects.items()})
    more = Node("more", {"pool": "a"}, [])
    accepted = Acceptance(policies=loaded.policies)
    few, many = (satisfaction(accepted, some, UNBOUNDED) for some in ([NORMAL], [NORMAL, more]))
    assert few == many


def test_a_policy_that_was_not_checked_beside_all_others_is_unknown(wording: Wording) -> None:
    """Whichever of both checks its budget ended; what is false stays so, and others are known."""
    zone = {"overrides": {"nodeSelector": {"zone": "a"}}}
    objects = by_place(policy("p", zone), policy("q", zone), policy("none", ON_SPOT),
                       policy("label", {"defaults": {"labels": {"team": "a"}}}),
                       capacity_class("spot"))  # fmt: skip
    nodes = [NORMAL._replace(labels={"zone": "a"})]
    for of_set, of_nodes in ((Budget(0, 0), UNBOUNDED), (UNBOUNDED, Budget(0, 0))):
        judged = partial(Objects().judge, budget=of_set, now=NOON)
        accepted = judge_objects(judged, objects, Acceptance())
        assert {one.reason for _, one in accepted.conditions.values()} == {"Accepted"}
        found = satisfaction(accepted, nodes, of_nodes)
        said = {place.partition("/")[2]: (one.status, one.reason) for place, one in found.items()}
        assert said["p"] == said["q"] == ("Unknown", "NotChecked")
        assert said["none"] == ("False", "NoNode")
        wording(found["placementpolicies/p"].message)
    checked = judge_objects(judged_objects, objects, Acceptance())
    found = satisfaction(checked, nodes, UNBOUNDED)
    assert (found["placementpolicies/p"].status, checked.unchecked) == ("True", frozenset())
