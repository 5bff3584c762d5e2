"""Shapes of nodes are narrowed as terms are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import event, given
from hypothesis import strategies as st

from tests.judgement.together.test_warnings import thorough
from tests.laws.strategies import terms
from webhook.judgement.together.overlapping import narrowed, shapes
from webhook.placement import node_affinity

if TYPE_CHECKING:
    from webhook.placement.shapes import Term

conditions = st.lists(terms(empty=False), min_size=1, max_size=3)


@thorough
@given(st.lists(conditions, min_size=1, max_size=4))
def test_shapes_leave_a_node_where_terms_do(all_of: list[list[Any]]) -> None:
    """Whatever the operators are, and whether of labels or of fields."""
    first, *others = map(shapes, all_of)
    left = list(first)
    for condition in others:
        left = narrowed(left, condition)
    leaves = node_affinity.satisfiable(node_affinity.conjunction(all_of), {})
    event(f"leaves a node: {leaves}")
    assert bool(left) == leaves


def test_a_condition_that_says_nothing_new_leaves_the_shapes_as_they_are() -> None:
    """By which it is seen that it need not be tried any further."""
    pool: Term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}
    zoned: Term = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    assert narrowed(shapes([pool]), shapes([zoned, pool])) == shapes([pool])
