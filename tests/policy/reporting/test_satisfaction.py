"""Whether some node meets what an object requires."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policy.reporting.objects import ON_SPOT, POOL, SPOT, by_place, capacity_class, policy
from webhook.placement.nodes import Node
from webhook.policy.objects import load_objects
from webhook.policy.reporting.satisfaction import satisfaction

TAINT: Any = {"key": "spot", "value": "true", "effect": "NoSchedule"}
NORMAL = Node("normal", {"pool": "a"}, [])
CHEAP = Node("cheap", {"lifecycle": "spot"}, [])
TAINTED = Node("tainted", {"lifecycle": "spot"}, [TAINT])
POLICY, CLASS = "placementpolicies/p", "capacityclasses/spot"


def said(
    nodes: tuple[Node, ...] | None, spec: dict[str, Any], of_class: dict[str, Any] = SPOT
) -> dict[str, tuple[str, str]]:
    """Status and reason of a policy and of the class spot."""
    objects = by_place(policy("p", spec), capacity_class("spot", of_class))
    loaded = load_objects({place: each.text for place, each in objects.items()})
    found = satisfaction(loaded.policies, nodes)
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
    assert said(nodes, ON_SPOT) == {POLICY: of_policy, CLASS: of_class}


def test_a_policy_that_asks_nothing_of_nodes_is_satisfied() -> None:
    """Whatever nodes there are."""
    found = said((CHEAP,), {"defaults": {"labels": {"team": "a"}}})
    assert found[POLICY] == ("True", "AsksForNoNode")


def test_nodes_that_are_made_on_demand_are_not_missed() -> None:
    """Of the class, and of a policy that wants it."""
    found = said((NORMAL,), ON_SPOT, {**SPOT, "autoscaled": True})
    assert found == {POLICY: ("True", "MadeOnDemand"), CLASS: ("True", "MadeOnDemand")}


def test_what_is_said_of_met_nodes_names_no_number() -> None:
    """A node that comes or goes is not news of every policy."""
    objects = by_place(policy("p", POOL))
    loaded = load_objects({place: each.text for place, each in objects.items()})
    more = Node("more", {"pool": "a"}, [])
    assert satisfaction(loaded.policies, [NORMAL]) == satisfaction(loaded.policies, [NORMAL, more])
