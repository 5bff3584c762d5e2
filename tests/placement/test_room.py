"""How many pods can run at one time: the proved limit, the packing, and the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.wording import Wording, mentions
from webhook.placement.nodes import Node
from webhook.placement.room import (
    ANTI_AFFINITY,
    ONLY_ONE,
    UNLIMITED,
    Limit,
    NodeKind,
    PodGroup,
    Room,
    find_room,
    node_kinds,
    pack,
    packing_orders,
)

GPU = "nvidia.com/gpu"
PORT = f"{ONLY_ONE}host port 29500"
ANY = frozenset({0, 1, 2})


def of_node(
    amounts: Mapping[str, int], groups: list[PodGroup], kind: NodeKind
) -> Iterator[tuple[int, ...]]:
    """How many pods of each group one node can run, all possibilities."""
    ranges = [
        range(min([group.pods, *(amounts[n] // a for n, a in group.requests.items())]) + 1)
        if at in kind.admits
        else range(1)
        for at, group in enumerate(groups)
    ]
    for counts in product(*ranges):
        used: dict[str, int] = {}
        for group, count in zip(groups, counts, strict=True):
            for name, asked in group.requests.items():
                used[name] = used.get(name, 0) + count * asked
        if all(used[name] <= amounts[name] for name in used):
            yield counts


def by_brute_force(groups: list[PodGroup], kinds: list[NodeKind]) -> int:
    """The most pods that run at one time, of all ways to place them."""
    nodes = [kind for kind in kinds for _ in range(kind.nodes)]

    @cache
    def most(at: int, left: tuple[int, ...]) -> int:
        if at == len(nodes):
            return 0
        return max(
            sum(counts) + most(at + 1, tuple(a - b for a, b in zip(left, counts, strict=True)))
            for counts in of_node(nodes[at].amounts, groups, nodes[at])
            if all(a >= b for a, b in zip(left, counts, strict=True))
        )

    return most(0, tuple(group.pods for group in groups))


AMOUNTS = st.fixed_dictionaries(
    {GPU: st.integers(0, 8), "pods": st.integers(0, 4), PORT: st.just(1)}
)
REQUESTS = st.fixed_dictionaries(
    {"pods": st.just(1)}, optional={GPU: st.sampled_from([1, 2, 3, 4, 8]), PORT: st.just(1)}
)
KINDS = st.lists(
    st.builds(NodeKind, st.integers(1, 2), AMOUNTS, st.frozensets(st.integers(0, 2), min_size=1)),
    max_size=3,
)
GROUPS = st.lists(
    st.builds(PodGroup, st.just("worker"), st.integers(1, 5), REQUESTS), min_size=1, max_size=3
)
law = settings(deadline=None, max_examples=examples(1000))


@law
@given(GROUPS, KINDS)
def test_no_way_to_place_pods_has_more_than_the_most(
    groups: list[PodGroup], kinds: list[NodeKind]
) -> None:
    """Nor has the packing more pods than the best of all ways."""
    best = by_brute_force(groups, kinds)
    answer = find_room(groups, kinds)
    assert answer.placed <= best <= answer.most
    assert (answer.limit is None) == (answer.most == answer.asked)


@law
@given(GROUPS, KINDS)
def test_the_packing_is_one_that_nodes_hold(groups: list[PodGroup], kinds: list[NodeKind]) -> None:
    """In any order of the groups: so many pods of each have a place at one time."""
    for order in packing_orders(groups, kinds):
        counts = dict(zip(order, pack(order, groups, kinds), strict=True))
        packed = [group._replace(pods=counts[at]) for at, group in enumerate(groups)]
        assert by_brute_force(packed, kinds) == sum(counts.values())


@law
@given(GROUPS, KINDS, st.data())
def test_one_more_node_never_lowers_the_most(
    groups: list[PodGroup], kinds: list[NodeKind], data: st.DataObject
) -> None:
    """Of a new kind, or of one that there is."""
    (more,) = data.draw(KINDS.filter(lambda drawn: len(drawn) == 1))
    assert find_room(groups, kinds).most <= find_room(groups, [*kinds, more]).most


@pytest.mark.parametrize(
    ("groups", "kinds", "answer"),
    [
        (
            [PodGroup("worker", 16, {GPU: 8, "pods": 1})],
            [NodeKind(2, {GPU: 8, "pods": 110}, ANY)],
            Room(16, 2, 2, Limit(GPU, 2, 8, 8, {"worker": 8})),
        ),
        # What neither group alone shows: together they want more than there is.
        (
            [PodGroup("master", 1, {GPU: 8}), PodGroup("worker", 2, {GPU: 8})],
            [NodeKind(1, {GPU: 16}, ANY), NodeKind(1, {GPU: 4}, ANY)],
            Room(3, 2, 2, Limit(GPU, 2, 4, 16, {"master": 8, "worker": 8})),
        ),
        # Two nodes have 12 together, but none of them a pod's 8 twice.
        (
            [PodGroup("worker", 3, {GPU: 8})],
            [NodeKind(2, {GPU: 12}, ANY)],
            Room(3, 2, 2, Limit(GPU, 2, 12, 12, {"worker": 8})),
        ),
        (
            [PodGroup("worker", 3, {PORT: 1, "pods": 1})],
            [NodeKind(2, {PORT: 1, "pods": 110}, ANY)],
            Room(3, 2, 2, Limit(PORT, 2, 1, 1, {"worker": 1})),
        ),
        (
            [PodGroup("worker", 2, {"pods": 1})],
            [NodeKind(2, {"pods": 9}, frozenset())],
            Room(2, 0, 0, Limit("", 0, 0, 0, {"worker": 0})),
        ),
        ([PodGroup("worker", 2, {GPU: 1})], [NodeKind(1, {GPU: 2}, ANY)], Room(2, 2, 2, None)),
    ],
)
def test_the_limit_names_what_is_missing(
    groups: list[PodGroup], kinds: list[NodeKind], answer: Room
) -> None:
    """The resource, the nodes that admit the pods, and what these request."""
    assert find_room(groups, kinds) == answer


def test_fewer_can_be_asked_for_than_there_are() -> None:
    """A Job with fewer pods at one time than completions."""
    groups, kinds = [PodGroup("", 16, {GPU: 8})], [NodeKind(2, {GPU: 8}, ANY)]
    assert find_room(groups, kinds, 2) == Room(2, 2, 2, None)
    assert find_room(groups, kinds, 3)[:3] == (3, 2, 2)


def test_nodes_are_grouped_by_what_they_have_and_whom_they_admit() -> None:
    """A node that does not report its allocatable has any amount, and one that admits none of the
    pods is left out."""
    groups = [PodGroup("a", 1, {GPU: 1, PORT: 1}), PodGroup("b", 1, {GPU: 2})]
    nodes = [
        Node("n1", {}, (), allocatable={GPU: 8, "cpu": 1}),
        Node("n2", {}, (), allocatable={"cpu": 2, GPU: 8}),
        Node("n3", {}, (), allocatable={GPU: 8}),
        Node("n4", {}, ()),
        Node("n5", {}, ()),
    ]
    kinds = node_kinds(nodes, groups, [("n1", "n2", "n3"), ("n3", "n4")])
    assert kinds == [
        NodeKind(2, {GPU: 8, PORT: 1}, frozenset({0})),
        NodeKind(1, {GPU: 8, PORT: 1}, frozenset({0, 1})),
        NodeKind(1, {GPU: UNLIMITED, PORT: 1}, frozenset({1})),
    ]


@pytest.mark.parametrize(
    ("limit", "facts"),
    [
        (Limit(GPU, 2, 8, 8, {"worker": 8}), ("2 nodes", f"8 {GPU} each", "worker requests 8")),
        (Limit("cpu", 1, 1500, 1500, {"": 1000}), ("1 node ", "1500m cpu", "pod requests 1")),
        (
            Limit(GPU, 3, 4, 8, {"master": 8, "worker": 4}),
            ("4 to 8", "master requests 8", "worker requests 4"),
        ),
        (Limit("pods", 2, 3, 3, {"": 1}), ("room for 3 pods each",)),
        (Limit(PORT, 2, 1, 1, {"": 1}), ("2 nodes", "host port 29500")),
        (Limit(f"{ONLY_ONE}{ANTI_AFFINITY} {{}}", 2, 1, 1, {"": 1}), (ANTI_AFFINITY,)),
        (Limit("", 0, 0, 0, {"master": 0}), ("no node", "master")),
    ],
)
def test_a_limit_is_one_sentence(limit: Limit, facts: tuple[str, ...], wording: Wording) -> None:
    """The nodes, what they have, and what the pods request."""
    mentions(limit.text, *facts)
    wording(limit.text)
