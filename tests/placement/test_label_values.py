"""What a conjunction of expressions leaves of one label, against every value of a small world."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import scheduler
from webhook.placement.label_values import holds, int64, negated, satisfiable
from webhook.placement.shapes import Requirement

VALUES = ["a", "b", "0", "1", "2", "07", ""]
# Beyond what is named: texts and integers that no expression speaks of.
WORLD = [None, *VALUES, "00", "01", "zzz", *(str(n) for n in range(3, 12)), "9223372036854775807"]


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    """One expression on the label `k`."""
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]))
    result: dict[str, Any] = {"key": "k", "operator": operator}
    if operator in ("In", "NotIn"):
        result["values"] = draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3))
    elif operator in ("Gt", "Lt"):
        result["values"] = [draw(st.sampled_from(["-1", "0", "1", "2", "7", "10", "no number"]))]
    return cast("Requirement", result)


@given(requirements(), st.sampled_from(WORLD))
def test_an_expression_holds_where_the_scheduler_says(
    requirement: Requirement, value: str | None
) -> None:
    """All six operators, the missing label included."""
    expression = cast("dict[str, Any]", requirement)
    labels = {} if value is None else {"k": value}
    assert holds(requirement, value) == scheduler.expression_holds(expression, labels)


@given(st.lists(requirements(), max_size=4))
def test_satisfiable_means_that_some_value_or_none_meets_all(wanted: list[Requirement]) -> None:
    """Found without trying values, and true of trying them."""
    expected = any(all(holds(r, value) for r in wanted) for value in WORLD)
    assert satisfiable(wanted) == expected


@given(requirements().filter(lambda r: r["operator"] not in ("Gt", "Lt")), st.sampled_from(WORLD))
def test_a_negation_holds_exactly_where_the_expression_does_not(
    requirement: Requirement, value: str | None
) -> None:
    """The four operators that can be negated."""
    assert holds(negated(requirement), value) != holds(requirement, value)


def test_an_operator_that_is_not_known_contradicts_nothing() -> None:
    """What is not understood is kept."""
    assert satisfiable([{"key": "k", "operator": "Near", "values": ["x"]}])


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("+7", 7),
        ("-7", -7),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("", None),
        ("7.0", None),
        (" 7", None),
        ("7_0", None),
        ("٧", None),
        ("1" * 5000, None),
    ],
)
def test_integers_are_read_as_the_scheduler_reads_them(text: str, number: int | None) -> None:
    """Go's ParseInt, base 10, 64 bits."""
    assert int64(text) == number


def test_a_list_as_long_as_a_pod_can_hold_is_judged_at_once() -> None:
    """The work is linear; squared, this one would take minutes and stop every other admission."""
    values = [f"v{n}" for n in range(60_000)]
    listed: Requirement = {"key": "k", "operator": "In", "values": values}
    excluded: Requirement = {"key": "k", "operator": "NotIn", "values": values}
    assert not satisfiable([listed, excluded])
    assert satisfiable([listed])
