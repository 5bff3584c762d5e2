"""Capacity classes: inside and outside are exact complements, and what cannot be is refused."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.laws import scheduler, strategies
from webhook.placement.capacity import (
    CapacityClass,
    InvalidClass,
    compiled,
    complement,
    names_taint,
    shape,
)
from webhook.placement.shapes import Requirement, Taint, Term

NODES = list(scheduler.every_node(strategies.WORLD, ["n1"]))


@st.composite
def shapes(draw: st.DrawFn) -> Term:
    """One shape: labels and expressions that can be negated."""
    labels: dict[str, str] = draw(strategies.selectors)
    expressions = draw(
        st.lists(
            strategies.expressions().filter(lambda e: e["operator"] not in ("Gt", "Lt")),
            min_size=0 if labels else 1,
            max_size=2,
        )
    )
    return shape(labels, cast("list[Requirement]", expressions))


def holds(terms: tuple[Term, ...], node: Any) -> bool:
    """Whether one of the terms holds on the node, by the independent model."""
    return any(scheduler.term_holds(cast("dict[str, Any]", term), node) for term in terms)


@settings(deadline=None, max_examples=examples(40))
@given(st.lists(shapes(), min_size=1, max_size=3))
def test_every_node_is_either_inside_a_class_or_outside(wanted: list[Term]) -> None:
    """Never both, never neither: Constrain and Prevent are the same operation on either."""
    try:
        made = compiled("c", wanted, [])
    except InvalidClass:
        inside = [any(holds((term,), node) for node in NODES) for term in wanted]
        assert not all(inside) or all(holds(tuple(wanted), node) for node in NODES)
        return
    rest = complement("rest", made)
    for node in NODES:
        assert holds(made.inside, node) == any(holds((t,), node) for t in wanted)
        assert holds(made.inside, node) != holds(made.outside, node)
        assert holds(rest.inside, node) == holds(made.outside, node)


def test_shapes_that_together_admit_every_node_are_refused() -> None:
    """Prevent would leave nothing, and Constrain would say nothing."""
    either: list[Requirement] = [
        {"key": "spot", "operator": "Exists"},
        {"key": "spot", "operator": "DoesNotExist"},
    ]
    with pytest.raises(InvalidClass, match="admit every node"):
        compiled("c", [shape({}, [e]) for e in either], [])


def test_a_shape_that_contradicts_itself_is_refused() -> None:
    """It would describe no node."""
    absent: Requirement = {"key": "spot", "operator": "DoesNotExist"}
    with pytest.raises(InvalidClass, match="no node"):
        compiled("c", [shape({"spot": "true"}, [absent])], [])


def test_a_negation_of_over_64_terms_is_refused() -> None:
    """Seven shapes of two labels each make 128 ways to be none of them."""
    many = [shape({f"a{i}": "x", f"b{i}": "x"}, []) for i in range(7)]
    with pytest.raises(InvalidClass, match="more than 64 terms"):
        compiled("c", many, [])
    assert len(compiled("c", many[:6], []).outside) == 64


def one_taint(taint: Taint) -> CapacityClass:
    return compiled("c", [shape({"spot": "true"}, [])], [taint, dict(taint)])  # type: ignore[list-item]


def test_a_taint_without_a_value_is_tolerated_whatever_its_value() -> None:
    """One with a value is tolerated with that value alone."""
    assert one_taint({"key": "k", "effect": "NoSchedule"}).tolerations == (
        {"key": "k", "operator": "Exists", "effect": "NoSchedule"},
    )
    assert one_taint({"key": "k", "value": "v", "effect": "NoSchedule"}).tolerations == (
        {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"},
    )


def test_a_toleration_names_a_taint_by_key_and_effect() -> None:
    """One that covers more than the taint does not name it."""
    taints: list[Taint] = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    assert names_taint({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, taints)
    assert not names_taint({"key": "k", "operator": "Exists"}, taints)
    assert not names_taint({"operator": "Exists"}, taints)
    assert not names_taint({"key": "k", "value": "w", "effect": "NoSchedule"}, taints)
