"""Properties of comparisons; golden/sessions/diff.yaml has cases."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.comparison.worlds import compared_sets
from tests.examples import examples
from tests.laws.strategies import NOW, excepted_lists, exceptions, policies
from tests.laws.strategies import nodes as drawn_nodes
from tests.laws.strategies import pods as drawn_pods
from tests.laws.world import CLUSTER, policy_set
from webhook import names
from webhook.comparison.difference import Difference
from webhook.decision.arrival import Arrival
from webhook.placement.nodes import Node, parse_node

Json = dict[str, Any]
comparing = settings(
    max_examples=examples(80),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@st.composite
def branches(draw: st.DrawFn, main: list[Json]) -> list[Json]:
    """The documents with one of them written again, moved or gone; or as they are; or others."""
    if draw(st.integers(0, 3)) == 0:
        return draw(excepted_lists())
    found = list(main)
    at = draw(st.integers(0, len(found) - 1))
    name, kind = found[at]["metadata"]["name"], found[at]["kind"]
    match draw(st.sampled_from(("same", "gone", "anew", "moved"))):
        case "gone":
            del found[at]
        case "anew":
            found[at] = draw(exceptions(name) if kind == names.EXCEPTION_KIND else policies(name))
        case "moved" if kind == names.POLICY_KIND:
            found[at] = {**found[at], "spec": {**found[at]["spec"], "priority": 9}}
    return found


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Json], list[Json], list[Json], list[Node]]:
    """Two lists of policies and exceptions, pods in several namespaces, and nodes."""
    found = draw(st.lists(drawn_nodes(), min_size=1, max_size=4))
    old = draw(excepted_lists())
    return (
        old,
        draw(branches(old)),
        draw(st.lists(drawn_pods(), min_size=1, max_size=4)),
        [parse_node(node) for node in found],
    )


def _arrivals(pods: list[Json]) -> list[Arrival]:
    now = datetime.fromisoformat(NOW)
    return [
        Arrival(pod, namespace, {"tier": "batch"}, now=now)
        for pod in pods
        for namespace in ("ml-team", "other")
    ]


@comparing
@given(worlds())
def test_a_set_never_differs_from_itself(
    world: tuple[list[Json], list[Json], list[Json], list[Node]],
) -> None:
    """Of any pods, on any nodes."""
    old, _, pods, nodes = world
    sets = policy_set(old), policy_set(old)
    for pod in _arrivals(pods):
        assert not isinstance(compared_sets(sets, pod, nodes, CLUSTER), Difference)


MIRROR = {
    "rejected": "admitted",
    "admitted": "rejected",
    "unplaceable": "placeable",
    "placeable": "unplaceable",
    "moved": "moved",
}


@comparing
@given(worlds())
def test_sets_that_change_places_turn_every_difference_round(
    world: tuple[list[Json], list[Json], list[Json], list[Node]],
) -> None:
    """Newly rejected becomes no longer rejected, and so on; old and new change places too."""
    old, new, pods, nodes = world
    sets = policy_set(old), policy_set(new)
    for pod in _arrivals(pods):
        one = compared_sets(sets, pod, nodes, CLUSTER)
        other = compared_sets((sets[1], sets[0]), pod, nodes, CLUSTER)
        if not isinstance(one, Difference):
            assert one == other
            continue
        assert isinstance(other, Difference)
        assert (other.kind, other.old, other.new) == (MIRROR[one.kind], one.new, one.old)
        assert sorted(other.policies) == sorted(one.policies)
