"""What is too long for a message is shortened, and says so."""

from __future__ import annotations

import pytest

from webhook.shortening import apart, cut, first_few, fit


@pytest.mark.parametrize(("text", "shown"), [("", ""), ("abc", "abc"), ("abcd", "abc…")])
def test_a_text_is_cut_where_it_is_longer(text: str, shown: str) -> None:
    """One that fits stays whole."""
    assert cut(text, 3) == shown


@pytest.mark.parametrize(("text", "shown"), [("", ""), ("abc", "abc"), ("abcd", "ab…")])
def test_a_text_fits_into_a_limit(text: str, shown: str) -> None:
    """With the ellipsis, for whoever reads refuses one character more."""
    assert fit(text, 3) == shown


def test_two_long_texts_are_shown_where_they_differ() -> None:
    """Or both would look alike."""
    one, other = apart("x" * 100 + "a", "x" * 100 + "b", 20)
    assert one != other
    assert one.startswith("…x")
    assert one.endswith("a")


@pytest.mark.parametrize(
    ("names", "text"), [([], ""), (["a"], "a"), (["a", "b", "c"], "a, b and 1 more")]
)
def test_of_many_names_the_first_are_shown(names: list[str], text: str) -> None:
    """And how many more there are."""
    assert first_few(names, 2) == text
