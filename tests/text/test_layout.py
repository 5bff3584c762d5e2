"""Columns stay columns."""

from __future__ import annotations

import click
import pytest

from webhook.text.layout import columns, table, wrapped


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
