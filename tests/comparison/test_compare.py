"""What counts as a difference, which kind it is, and by which policies."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.comparison.worlds import NODES, arrival, compared, compared_sets, different
from tests.examples import examples
from tests.laws.strategies import NOW, excepted_lists, exceptions, policies
from tests.laws.strategies import nodes as drawn_nodes
from tests.laws.strategies import pods as drawn_pods
from tests.laws.world import CLUSTER, policy_set
from tests.policy_tests.writing import policy
from webhook import names
from webhook.admission.arrival import Arrival
from webhook.comparison.difference import Difference
from webhook.errors import InvalidPod
from webhook.placement.nodes import Node, parse_node
from webhook.policy.load import load

Json = dict[str, Any]
POOL_A = policy("pool", "defaults: {nodeSelector: {pool: a}}")
POOL_B = policy("pool", "defaults: {nodeSelector: {pool: b}}")
ONLY_AMD64 = policy("amd64-only", "requirements: {nodeSelector: {arch: amd64}}")
SPOT = policy("on-spot", "overrides: {capacity: [{class: spot, mode: Constrain}]}")
NO_SPOT = policy("on-spot", "overrides: {capacity: [{class: spot, mode: Prevent}]}")
ALLOWED = policy("on-spot", "overrides: {capacity: [{class: spot, mode: Allow}]}")
NOWHERE = policy("pool", "overrides: {nodeSelector: {pool: nowhere}}")
BURST = """\
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: burst}
spec: {autoscaled: true, nodes: [{labels: {pool: burst}}]}
---
"""
ARM: Json = {"nodeSelector": {"arch": "arm64"}}
comparing = settings(
    max_examples=examples(80),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def test_one_set_with_itself_differs_in_nothing() -> None:
    """Whatever stands in it."""
    assert compared([POOL_A, SPOT], [POOL_A, SPOT], arrival()) == "same"


def test_pods_without_a_run_are_distinguished() -> None:
    """No policy is asked about them."""
    assert compared([], [ONLY_AMD64], arrival({})) == "no run"


def test_pods_that_both_sets_reject_do_not_differ() -> None:
    """Whoever rejects them, and with whatever words."""
    other = ONLY_AMD64.replace("amd64-only", "other")
    assert compared([ONLY_AMD64], [other], arrival(**ARM)) == "rejected"


def test_a_policy_under_a_new_name_is_not_a_difference() -> None:
    """What becomes of the pod counts, not who is credited with it."""
    assert compared([POOL_A], [POOL_A.replace("name: pool", "name: other")], arrival()) == "same"


def test_a_new_requirement_rejects() -> None:
    """Named with the policy, and the reason as the author would read it."""
    found = different([], [ONLY_AMD64], arrival(**ARM))
    assert (found.kind, found.policies) == ("rejected", ("amd64-only",))
    assert "must be 'amd64'" in found.new.reason
    assert [field[:3] for field in found.fields] == [
        ("amd64-only", "requirements", "nodeSelector[arch]")
    ]


def test_a_requirement_that_is_gone_admits() -> None:
    """The mirror image, by the same policy."""
    found = different([ONLY_AMD64], [], arrival(**ARM))
    assert (found.kind, found.policies) == ("admitted", ("amd64-only",))
    assert found.fields[0].new == ""


def test_entries_in_another_order_are_equal() -> None:
    """To the scheduler they are a set."""
    one, two = (
        policy(
            name,
            "priority: 5, overrides: {affinity: {podAffinity: "
            "{requiredDuringSchedulingIgnoredDuringExecution: "
            f"[{{labelSelector: {{matchLabels: {{app: {name}}}}}, topologyKey: zone}}]}}}}}}",
        )
        for name in ("one", "two")
    )
    assert compared([one, two], [one.replace("5", "1"), two], arrival()) == "same"


def test_what_a_policy_says_otherwise_moves() -> None:
    """Field by field, with what it said before."""
    found = different([POOL_A], [POOL_B], arrival())
    assert (found.kind, found.policies) == ("moved", ("pool",))
    assert found.fields == (("pool", "defaults", "nodeSelector[pool]", "'a'", "'b'"),)


def test_a_yielding_policy_is_reported_and_not_blamed() -> None:
    """A new policy before an old one: the change is the new one's."""
    first = policy("first", "priority: 9, overrides: {nodeSelector: {pool: b}}")
    last = policy("last", "overrides: {nodeSelector: {pool: a}}")
    found = different([last], [last, first], arrival())
    assert found.policies == ("first",)
    assert {field.policy for field in found.fields} == {"first", "last"}


def test_priorities_that_change_places_name_both() -> None:
    """Neither of them says anything else than before."""
    one = policy("one", "priority: 9, overrides: {nodeSelector: {pool: a}}")
    two = policy("two", "priority: 5, overrides: {nodeSelector: {pool: b}}")
    found = different([one, two], [one.replace("9", "1"), two], arrival())
    assert (found.kind, sorted(found.policies)) == ("moved", ["one", "two"])


def test_a_class_that_means_other_nodes_moves() -> None:
    """The trace says Constrain before and after; the policy that names the class is named."""
    old = (
        "apiVersion: fairlead.dev/v1alpha1\nkind: CapacityClass\nmetadata: {name: spot}\n"
        "spec: {nodes: [{labels: {pool: spot}}]}\n---\n" + SPOT
    )
    sets = [
        load({"p.yaml": text.encode()}).policies for text in (old, old.replace("pool:", "kind:"))
    ]
    found = compared_sets((sets[0], sets[1]), arrival())
    assert isinstance(found, Difference)
    assert (found.kind, found.policies) == ("moved", ("on-spot",))


def test_from_audit_to_enforcement_moves() -> None:
    """And a policy under audit is no difference."""
    audited = POOL_A.replace("spec: {", "spec: {enforcement: Audit, ")
    assert compared([], [audited], arrival()) == "same"
    assert different([audited], [POOL_A], arrival()).policies == ("pool",)


def test_a_pod_may_be_left_without_a_node() -> None:
    """With what shuts it out, most nodes first; and before, so many admitted it."""
    found = different([], [NOWHERE], arrival(), NODES)
    assert (found.kind, found.stranded) == ("unplaceable", True)
    assert found.old.nodes == 1
    assert found.new.shut == (("nodeSelector pool=nowhere", 3),)


def test_a_pod_may_get_nodes_again() -> None:
    """The mirror image."""
    found = different([NOWHERE], [], arrival(), NODES)
    assert (found.kind, found.stranded) == ("placeable", False)


def test_a_pod_that_is_admitted_without_a_node_is_stranded_too() -> None:
    """It was refused aloud, and would wait in silence."""
    found = different([ONLY_AMD64], [], arrival(**ARM), NODES)
    assert (found.kind, found.stranded) == ("admitted", True)


def test_a_node_that_is_made_on_demand_is_not_missed() -> None:
    """Who makes it is told; a class that is not autoscaled makes none."""
    constrain = policy("bursts", "overrides: {capacity: [{class: burst, mode: Constrain}]}")
    found = different([BURST], [BURST, constrain], arrival(), NODES)
    assert (found.kind, found.stranded) == ("moved", False)
    assert (found.new.nodes, found.new.on_demand) == (0, ("burst",))
    fixed = BURST.replace("autoscaled: true", "autoscaled: false")
    assert different([fixed], [fixed, constrain], arrival(), NODES).kind == "unplaceable"


def test_a_class_that_makes_no_more_nodes_leaves_pods_without_one() -> None:
    """The placement is the same; and the other way round."""
    constrain = policy("bursts", "overrides: {capacity: [{class: burst, mode: Constrain}]}")
    fixed = BURST.replace("autoscaled: true", "autoscaled: false")
    found = different([BURST, constrain], [fixed, constrain], arrival(), NODES)
    assert (found.kind, found.stranded, found.policies) == ("unplaceable", True, ("bursts",))
    assert different([fixed, constrain], [BURST, constrain], arrival(), NODES).kind == "placeable"
    assert compared([BURST, constrain], [fixed, constrain], arrival()) == "same"
    assert compared([BURST], [fixed], arrival(), NODES) == "same"


def test_without_nodes_no_pod_is_reported_as_without_node() -> None:
    """Nobody can know."""
    found = different([], [NOWHERE], arrival())
    assert (found.kind, found.stranded, found.new.nodes) == ("moved", False, None)


@pytest.mark.parametrize(
    ("old", "new", "admitted"), [(SPOT, ALLOWED, (2, 3)), (ALLOWED, NO_SPOT, (3, 1))]
)
def test_the_nodes_that_remain_are_counted(old: str, new: str, admitted: tuple[int, int]) -> None:
    """On both sides, also of pods that keep some."""
    found = different([old], [new], arrival(), NODES)
    assert found.kind == "moved"
    assert (found.old.nodes, found.new.nodes) == admitted


def test_a_request_for_a_class_that_is_gone_rejects() -> None:
    """By no policy at all: the reason says what it is."""
    old, new = policy_set([]), policy_set([], [])
    pod = arrival(annotations={names.CAPACITY: "spot=Constrain"})
    found = compared_sets((old, new), pod, None, CLUSTER)
    assert isinstance(found, Difference)
    assert (found.kind, found.policies) == ("rejected", ())
    assert "spot" in found.new.reason


def test_an_object_that_is_not_a_pod_is_an_error() -> None:
    """And never counted as the same."""
    with pytest.raises(InvalidPod):
        compared([], [POOL_A], arrival(nodeSelector=["a"]))


def test_numbers_that_json_has_no_room_for_are_decided_on_all_the_same() -> None:
    """Only what is remembered of them is missing."""
    own = [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2**70}]
    assert different([], [POOL_A], arrival(tolerations=own)).kind == "moved"


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
