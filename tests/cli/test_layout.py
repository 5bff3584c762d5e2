"""Columns stay columns, and what others write is shown and steers nothing."""

from __future__ import annotations

import unicodedata

import click
import pytest

from webhook.cli.layout import columns, harmless, one_line, shortened, table, wrapped


def test_cells_of_a_column_begin_at_one_place() -> None:
    """Two blanks after the widest; nothing at the ends of lines."""
    rows = [["a", "long cell", "x"], ["bb", "", "y"], ["c", "d", ""]]
    assert list(table(rows, 2)) == ["  a   long cell  x", "  bb             y", "  c   d"]


def test_the_last_column_is_wrapped() -> None:
    """Into lines that begin where it begins; words are not cut."""
    lines = list(table([["key", "word " * 30]], 0))
    assert len(lines) == 2
    assert all(len(line) <= 100 for line in lines)
    assert lines[1].startswith("     word")


def test_a_cell_too_long_for_its_column_has_a_line_of_its_own() -> None:
    """The others are not pushed to the right by it."""
    rows = [["x" * 60, "why"], ["short", "because"]]
    assert list(table(rows, 0)) == ["x" * 60, "       why", "short  because"]


def test_colours_take_no_room() -> None:
    """A styled cell is as wide as it looks."""
    rows = [[click.style("set", fg="green"), "a"], ["dropped", "b"]]
    assert [click.unstyle(line) for line in table(rows, 0)] == ["set      a", "dropped  b"]


def test_a_table_without_rows_has_no_lines() -> None:
    """An empty table is nothing."""
    assert list(table([], 4)) == []


@pytest.mark.parametrize("key", ["cloud.google.com/gke-spot-" + "x" * 90])
def test_a_key_is_never_cut(key: str) -> None:
    """It could not be copied."""
    assert wrapped(f"a {key}", 0) == ["a", key]


def test_of_many_names_only_a_few_are_shown() -> None:
    """And how many more there are; never `and 1 more`."""
    assert shortened(["a", "b", "c", "d"]) == "a, b, c, d"
    assert shortened(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


def test_a_row_of_columns_stays_in_its_line() -> None:
    """However long it is: for programs that read line by line."""
    rows = [("NAME", "TAINTS"), ("n" * 60, "a " * 80), ("m", "")]
    lines = list(columns(rows))
    assert [line.split()[0] for line in lines] == ["NAME", "n" * 60, "m"]
    assert lines[0].index("TAINTS") == lines[1].index("a ") == 62
    assert lines[2] == "m"


def test_text_may_be_wrapped_within_a_width_of_its_own() -> None:
    """As a file wants it, whatever the terminal."""
    assert wrapped("word " * 20, 10, 60) == ["word " * 9 + "word"] * 2


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
