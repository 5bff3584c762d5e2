"""What others write is shown, and steers nothing."""

from __future__ import annotations

import unicodedata

import pytest

from webhook.cli.harmless import harmless, one_line


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
