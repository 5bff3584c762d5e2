"""Two values that differ are never shown as the same text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.cli.live.value_text import both_fields, both_texts, field_text
from webhook.comparison.gaps import REQUIRED
from webhook.placement.trace import apart, quoted_both

LONG = "x" * 300


@pytest.mark.parametrize(
    ("field", "has", "would"),
    [
        ("annotations[a]", f"{LONG}a", f"{LONG}b"),
        ("annotations[a]", LONG, f"{LONG}b"),
        ("annotations[a]", None, "nothing"),
        ("affinity.podAffinity.required", [{"topologyKey": LONG, "a": 1}], [{"topologyKey": LONG}]),
        ("tolerations[a]", [{"key": "a"}, {"key": "a"}], [{"key": "a", "operator": "Equal"}]),
        ("tolerations[a]", [{"key": "a", "operator": "Equal"}], [{"key": "a"}]),
        (REQUIRED, [{"matchFields": []}], []),
        (REQUIRED, [{"matchExpressions": [{"key": "a"}]}], [{"matchFields": [{"key": "a"}]}]),
    ],
)
def test_values_that_differ_only_far_on_are_cut_where_they_differ(
    field: str, has: Any, would: Any
) -> None:
    """Also where people leave out what makes the difference."""
    one, other = both_texts(field, has, would)
    assert one != other
    assert max(len(one), len(other)) <= 202
    assert len(set(both_fields(field, has, would))) == 2


def test_what_only_one_list_has_comes_first() -> None:
    """Two long lists differ in one entry, at their end."""
    entries = [{"key": f"k{number}"} for number in range(50)]
    has, would = both_texts("affinity.podAffinity.required", entries, [*entries, {"key": "new"}])
    assert "new" in would[:20]
    assert "new" not in has


def test_one_value_is_cut_at_its_end() -> None:
    """A toleration tells its key itself."""
    assert field_text("annotations[a]", LONG) == f"annotations[a]: '{'x' * 199}…"
    assert field_text("tolerations[a]", [{"key": "a"}]) == "tolerations: a"
    assert field_text("tolerations[a]", None) == "tolerations[a]: nothing"


@given(st.text("ab", max_size=20), st.text("ab", max_size=20), st.integers(4, 12))
def test_texts_are_cut_apart_wherever_they_differ(one: str, other: str, most: int) -> None:
    """And are never longer than asked, with a mark on either side."""
    texts = apart(one, other, most)
    assert (texts[0] == texts[1]) is (one == other)
    assert all(len(text) <= most + 2 for text in texts)


def test_a_message_quotes_two_long_values_apart() -> None:
    """An annotation's value may be as long as its author likes."""
    assert quoted_both("a", "b") == ("'a'", "'b'")
    wanted, said = quoted_both(f"{LONG}a", f"{LONG}b")
    assert wanted != said
    assert max(len(wanted), len(said)) <= 82
