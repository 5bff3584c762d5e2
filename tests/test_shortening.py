"""What is too long for a message is shortened, and what others write steers no terminal."""

from __future__ import annotations

import unicodedata

import pytest

from webhook.shortening import apart, cut, first_few, fit, harmless, one_line, shortened


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


def test_of_many_names_only_a_few_are_shown() -> None:
    """And how many more there are; never `and 1 more`."""
    assert shortened(["a", "b", "c", "d"]) == "a, b, c, d"
    assert shortened(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("loss 0.3\n\tλ → ∞, 中文, é", "loss 0.3\n\tλ → ∞, 中文, é"),
        ("\x1b[2J\x1b]0;title\x07gone", "\\x1b[2J\\x1b]0;title\\x07gone"),
        ("\x9b31m", "\\x9b31m"),
        ("\r\nnext\rover", "\nnext\\rover"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u061cb\u200ec\u200f", "a\\u061cb\\u200ec\\u200f"),
        ("\x7f\x08", "\\x7f\\x08"),
    ],
)
def test_what_steers_a_terminal_is_shown_as_its_escape(text: str, shown: str) -> None:
    """Every other character stays as it is."""
    assert harmless(text) == shown


def test_no_control_is_left() -> None:
    """Of all that there are; line ends and tabs are layout."""
    everything = "".join(map(chr, range(0x3000)))
    left = {each for each in harmless(everything) if unicodedata.category(each) == "Cc"}
    assert left == {"\n", "\t"}


def test_one_line_is_one() -> None:
    """A CI system takes a line that begins with two colons for a command."""
    assert one_line("ml\r\n::error::no\u2028::\x1b[31m") == "ml ::error::no ::\\x1b[31m"
