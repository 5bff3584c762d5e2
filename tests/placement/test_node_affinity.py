"""Required node affinity against every node of a small world."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.laws import scheduler, strategies
from tests.objects import required_affinity
from webhook.placement import node_affinity
from webhook.placement.shapes import Term

NODES = list(scheduler.every_node(strategies.WORLD, [*strategies.NODE_NAMES, "n3"]))
few = settings(deadline=None, max_examples=examples(40))
term_lists = cast(
    "st.SearchStrategy[list[Term]]", st.lists(strategies.terms(), min_size=1, max_size=3)
)
full_terms = cast(
    "st.SearchStrategy[list[Term]]",
    st.lists(strategies.terms(empty=False), min_size=1, max_size=3),
)


def admitted(terms: list[Term], selector: dict[str, str] | None = None) -> set[int]:
    """The nodes, by number, that one of the terms admits, by the independent model."""
    pod = {
        "spec": {
            "nodeSelector": selector or {},
            "affinity": required_affinity(*terms),
        }
    }
    return {at for at, node in enumerate(NODES) if scheduler.labels_admit(pod, node)}


@few
@given(term_lists, full_terms)
def test_narrowing_admits_exactly_the_nodes_that_both_admit(
    terms: list[Term], condition: list[Term]
) -> None:
    """AND into every term: an empty term stays empty, or it would begin to match."""
    both = admitted(terms) & admitted(condition)
    narrowed = node_affinity.narrowed(terms, condition)
    assert admitted(narrowed) == both
    assert node_affinity.narrowed(narrowed, condition) == narrowed


@few
@given(st.lists(full_terms, min_size=1, max_size=3))
def test_a_conjunction_admits_what_all_conditions_admit(conditions: list[list[Term]]) -> None:
    """Redundant terms drop out, and the nodes stay the same."""
    result = node_affinity.conjunction(conditions)
    assert result is not None
    expected = set.intersection(*map(admitted, conditions))
    assert admitted(result) == expected


@few
@given(term_lists, strategies.selectors)
def test_satisfiable_means_that_some_node_meets_it(
    terms: list[Term], selector: dict[str, str]
) -> None:
    """The nodeSelector counts beside the terms."""
    assert node_affinity.satisfiable(terms, selector) == bool(admitted(terms, selector))


@few
@given(term_lists, strategies.selectors)
def test_pruning_takes_no_node_away(terms: list[Term], selector: dict[str, str]) -> None:
    """Only terms that no node can meet go; empty ones stay as they are."""
    left = node_affinity.pruned(terms, selector)
    assert admitted(left, selector) == admitted(terms, selector)
    assert [t for t in terms if node_affinity.is_empty(t)] == [
        t for t in left if node_affinity.is_empty(t)
    ]


@given(term_lists)
def test_a_node_meets_a_term_if_no_requirement_fails(terms: list[Term]) -> None:
    """`failed` names the first that does."""
    for term in terms:
        if not node_affinity.is_empty(term):
            for node in NODES[::37]:
                metadata = node["metadata"]
                failed = node_affinity.failed(term, metadata["labels"], metadata["name"])
                assert (failed is None) == scheduler.term_holds(cast("dict[str, Any]", term), node)


def test_match_fields_are_kept_through_a_conjunction() -> None:
    """A DaemonSet's own terms bind a pod to a node by name."""
    by_name: Term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    spot: Term = {"matchExpressions": [{"key": "spot", "operator": "Exists"}]}
    assert node_affinity.narrowed([by_name], [spot]) == [{**spot, **by_name}]


@few
@given(term_lists, term_lists)
def test_many_terms_are_compared_as_few_are(terms: list[Term], condition: list[Term]) -> None:
    """By sets instead of by pairs: the same is found."""
    with pytest.MonkeyPatch.context() as patch:
        expected = [node_affinity.implies(term, condition) for term in terms]
        patch.setattr(node_affinity, "_PAIRS_UNPREPARED", 0)
        assert node_affinity.implied(terms, condition) == expected
        wide = [*condition, *(node_affinity.both(term, condition[0]) for term in terms)]
        assert node_affinity.implied(wide, condition)[: len(condition)] == [True] * len(condition)


@few
@given(term_lists, term_lists)
def test_of_many_terms_the_redundant_ones_are_those_of_few(
    terms: list[Term], condition: list[Term]
) -> None:
    """By sets instead of by pairs: the same terms stay, in the same order."""
    wide = [node_affinity.both(term, part) for term in terms for part in condition]
    empty: Term = {}
    for some in (terms, [*terms, *wide, *condition], [*wide, *terms, empty]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(node_affinity, "_PAIRS_UNPREPARED", 10**9)
            expected = node_affinity.without_redundant(some)
            patch.setattr(node_affinity, "_PAIRS_UNPREPARED", 0)
            assert node_affinity.without_redundant(some) == expected


def test_terms_that_are_equal_as_json_stand_once() -> None:
    """The first of them, in whatever order its members are; the order of values counts."""
    one: Term = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["a", "b"]}]}
    same: Term = {"matchExpressions": [{"values": ["a", "b"], "operator": "In", "key": "k"}]}
    other: Term = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["b", "a"]}]}
    condition: Term = {"matchExpressions": [{"key": "l", "operator": "Exists"}]}
    (there,) = condition["matchExpressions"]
    assert node_affinity.narrowed([one, other, same, {}], [condition]) == [
        {"matchExpressions": [*one["matchExpressions"], there]},
        {"matchExpressions": [*other["matchExpressions"], there]},
        {},
    ]


def test_a_conjunction_that_would_explode_is_refused() -> None:
    """Rather than computed: the pod's author chooses how many terms there are."""
    many: list[Term] = [
        {"matchExpressions": [{"key": f"k{i}", "operator": "Exists"}]} for i in range(100)
    ]
    others: list[Term] = [
        {"matchExpressions": [{"key": f"l{i}", "operator": "Exists"}]} for i in range(64)
    ]
    with pytest.raises(node_affinity.TooManyTerms, match="6400 terms, over 1024"):
        node_affinity.narrowed(many, others)


@pytest.mark.parametrize(
    ("terms", "expressions", "parts"), [(60, 1, 6), (1, 8_000, 2), (1000, 1, 1), (2, 5, 512)]
)
def test_what_was_not_refused_is_not_refused_when_it_comes_back(
    terms: int, expressions: int, parts: int
) -> None:
    """The API server may ask again about our own output; as far as there is output at all."""
    own: list[Term] = [
        {
            "matchExpressions": [
                {"key": f"k{i}-{j}", "operator": "Exists"} for j in range(expressions)
            ]
        }
        for i in range(terms)
    ]
    condition: list[Term] = [
        {"matchExpressions": [{"key": f"l{i}", "operator": "Exists"}]} for i in range(parts)
    ]
    once = node_affinity.narrowed(own, condition)
    assert len(once) == terms * parts
    assert node_affinity.narrowed(once, condition) == once


def test_terms_that_are_few_and_huge_are_refused_too() -> None:
    """A pod of 1.5 MiB holds tens of thousands of expressions, and each would be multiplied."""
    huge: Term = {
        "matchExpressions": [{"key": f"k{i}", "operator": "Exists"} for i in range(10_000)]
    }
    others: list[Term] = [
        {"matchExpressions": [{"key": f"l{i}", "operator": "Exists"}]} for i in range(2)
    ]
    with pytest.raises(node_affinity.TooManyTerms, match="20002 requirements, over 16384"):
        node_affinity.narrowed([huge], others)


def test_a_term_that_another_contains_is_dropped_unless_that_one_is_empty() -> None:
    """A or (A and B) is A. An empty term admits no node, so it makes no other redundant."""
    wide = term_of(("pool", ["a"]))
    narrow = term_of(("pool", ["a"]), ("zone", ["b"]))
    assert node_affinity.without_redundant([narrow, wide]) == [wide]
    assert node_affinity.without_redundant([wide, {}]) == [wide, {}]


def term_of(*wanted: tuple[str, list[str]]) -> Term:
    return {"matchExpressions": [{"key": k, "operator": "In", "values": v} for k, v in wanted]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"matchFields": [{"key": "pool", "operator": "In", "values": ["a"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "Lt", "values": ["1_0"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": []}]},
        {"matchExpressions": [{"key": "pool", "operator": "In", "values": []}]},
        {"matchExpressions": [{"key": "pool", "operator": "Gt", "values": ["1", "2"]}]},
        {"matchExpressions": [{"key": "pool", "operator": "Exists", "values": ["a"]}]},
        {"matchExpressions": [{"key": "pool", "operator": "Like", "values": ["a"]}]},
    ],
)
def test_a_term_that_the_api_server_refuses_stays(wrong: Term) -> None:
    """Else a pod would be stored that its author wrote wrongly, without what it was to say."""
    selector = {"pool": "b"}
    assert node_affinity.pruned([wrong, term_of(("pool", ["b"]))], selector)[0] == wrong
