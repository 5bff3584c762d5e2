"""Sets of indexes as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.run.model.intervals import format_intervals, parse_intervals


@pytest.mark.parametrize(
    ("indexes", "text"),
    [((), ""), ((3,), "3"), ((0, 1, 2, 3, 5), "0-3,5"), ((9, 8, 1), "1,8-9")],
)
def test_neighbours_are_written_as_one_interval(indexes: tuple[int, ...], text: str) -> None:
    """As Indexed Jobs write their completedIndexes."""
    assert format_intervals(indexes) == text
    assert parse_intervals(text) == frozenset(indexes)


@given(st.frozensets(st.integers(0, 60)))
def test_what_is_written_is_read_again(indexes: frozenset[int]) -> None:
    """Whatever the set is."""
    assert parse_intervals(format_intervals(indexes)) == indexes


def test_ten_thousand_replicas_that_finished_are_a_short_text() -> None:
    """A status has to stay small."""
    assert format_intervals(range(10000)) == "0-9999"


@pytest.mark.parametrize(
    "text", ["0-3000000", "10000", "3-1", "1,1", "2,0-1", "-1", "1-", "a", "1-2-3", "0-1" * 20_000]
)
def test_nothing_else_is_read(text: str) -> None:
    """Before anything of it takes memory: others may write a status, too."""
    with pytest.raises(ValueError, match=r"want indexes|too long"):
        parse_intervals(text)
