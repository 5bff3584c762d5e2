"""A class is not given up for an author whose own terms exclude its nodes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.objects import required_affinity
from tests.wording import mentions
from webhook import names
from webhook.placement import capacity, node_affinity
from webhook.placement.capacity import CapacityClass
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import Node
from webhook.placement.on_demand import makers
from webhook.placement.own_terms import MOST_LOOKS, why_none_fits
from webhook.placement.pod import PodPlacement, parse_pod

Json = dict[str, Any]
TAINT: Any = {"key": "spot", "value": "true", "effect": "NoSchedule"}
SPOT = {"lifecycle": "spot"}
THERE = ("spot-0", "spot-1"), ("steady-0", "steady-1")


def spot(*, autoscaled: bool = False) -> CapacityClass:
    shape = capacity.shape(SPOT, [])
    return capacity.compiled("spot", [shape], [TAINT], autoscaled=autoscaled)


def node(name: str, **labels: str) -> Node:
    taints = [TAINT] if labels.get("lifecycle") == "spot" else []
    return Node(name, {names.HOSTNAME_LABEL: name, **labels}, taints)


def nodes(inside: tuple[str, ...], outside: tuple[str, ...]) -> NodeGroups:
    within = (node(name, **SPOT, zone="a") for name in inside)
    return NodeGroups((*within, *(node(name, zone="b", gpu="a100") for name in outside)))


def own(*terms: Json, **selector: str) -> PodPlacement:
    """The terms of an author, who does not tolerate the taint of the class."""
    spec: Json = {"nodeSelector": selector}
    if terms:
        spec["affinity"] = required_affinity(*terms)
    return parse_pod({"metadata": {}, "spec": spec})


def host(*hosts: str) -> Json:
    wanted = {"key": names.HOSTNAME_LABEL, "operator": "In", "values": [*hosts]}
    return {"matchExpressions": [wanted]}


@pytest.mark.parametrize(
    ("terms", "what"),
    [
        (own(**{names.HOSTNAME_LABEL: "steady-0"}), "nodeSelector kubernetes.io/hostname=steady-0"),
        (own(host("steady-0", "steady-1")), "required affinity kubernetes.io/hostname In"),
        (own(zone="b"), "nodeSelector zone=b"),
    ],
)
def test_an_author_who_excludes_the_nodes_of_a_class_is_named(
    terms: PodPlacement, what: str
) -> None:
    """With the first of the terms that no node of the class meets."""
    mentions(why_none_fits(terms, spot(), nodes(*THERE)), "class spot", what)


@pytest.mark.parametrize(
    ("terms", "there"),
    [
        # The class is full, or its nodes are too small.
        (own(), THERE),
        (own(zone="a"), THERE),
        (own(host("steady-0", "spot-0")), THERE),
        # Its pool is scaled to zero.
        (own(zone="b"), ((), THERE[1])),
        (own(**{names.HOSTNAME_LABEL: "steady-0"}), ((), THERE[1])),
        # No node at all is what the author wants, so none is won by a fallback.
        (own(zone="c"), THERE),
        (own({}), THERE),
        (own(zone="b"), (THERE[0], ())),
    ],
)
def test_every_other_wait_counts(
    terms: PodPlacement, there: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    """The taints of the class are none of the author's terms: the policy tolerates them."""
    assert why_none_fits(terms, spot(), nodes(*there)) == ""


@pytest.mark.parametrize("inside", [(), THERE[0]])
def test_an_autoscaled_class_counts_as_having_nodes(inside: tuple[str, ...]) -> None:
    """Those that it could create: with any zone, and with no host name that is known now."""
    there = nodes(inside, THERE[1])
    for terms in (own(), own(**{"topology.kubernetes.io/zone": "b"})):
        assert why_none_fits(terms, spot(autoscaled=True), there) == ""
    for terms in (own(**{names.HOSTNAME_LABEL: "steady-0"}), own(gpu="a100")):
        assert why_none_fits(terms, spot(autoscaled=True), there)


def test_terms_that_are_too_long_to_be_compared_win_nothing() -> None:
    """The author chooses how long they are."""
    terms = own(*(host("nowhere", str(number)) for number in range(MOST_LOOKS)))
    mentions(why_none_fits(terms, spot(), nodes(*THERE)), "too long", "class spot")


KEYS = ("lifecycle", "zone", "gpu")
VALUES = st.sampled_from(("a", "b", "spot"))
LABELS = st.dictionaries(st.sampled_from(KEYS), VALUES)
REQUIREMENTS = st.builds(
    lambda key, operator, value: {"key": key, "operator": operator, "values": [value]},
    st.sampled_from(KEYS),
    st.sampled_from(("In", "NotIn")),
    VALUES,
)
TERMS = st.lists(
    st.builds(
        lambda some: {"matchExpressions": some} if some else {}, st.lists(REQUIREMENTS, max_size=2)
    ),
    max_size=2,
)


@given(st.lists(LABELS, max_size=5), LABELS, TERMS, st.booleans())
def test_it_is_what_a_look_at_each_node_finds(
    labels: list[dict[str, str]], selector: dict[str, str], terms: list[Any], autoscaled: bool
) -> None:
    """Node by node, without groups; and an autoscaled class by what it could create."""
    there = [node(f"n{number}", **each) for number, each in enumerate(labels)]
    asked, of = own(*terms, **selector), spot(autoscaled=autoscaled)

    def fits(each: Node) -> bool:
        met = not terms or node_affinity.holds(terms, each.labels, each.name)
        return met and selector.items() <= each.labels.items()

    mine = [each for each in there if each.labels.get("lifecycle") == "spot"]
    others = [each for each in there if each not in mine]
    room = bool(mine)
    if autoscaled:
        tolerant = asked._replace(tolerations=[{"operator": "Exists"}])
        room = not makers(tolerant, [of], NodeGroups(there))
    expected = room and not any(map(fits, mine)) and any(map(fits, others))
    assert bool(why_none_fits(asked, of, NodeGroups(there))) == expected
