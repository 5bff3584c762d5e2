"""Columns stay columns."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import click
import pytest

from webhook.text.layout import NO_HEADERS, aligned, table, width, wrapped


def test_cells_of_a_column_begin_at_one_place() -> None:
    """Two blanks after the widest; nothing at the ends of lines."""
    rows = [["a", "long cell", "x"], ["bb", "", "y"], ["c", "d", ""]]
    assert list(aligned(rows, 2)) == ["  a   long cell  x", "  bb             y", "  c   d"]


def test_the_last_column_is_wrapped() -> None:
    """Into lines that begin where it begins; words are not cut."""
    lines = list(aligned([["key", "word " * 30]], 0))
    assert len(lines) == 2
    assert all(len(line) <= 100 for line in lines)
    assert lines[1].startswith("     word")


def test_a_cell_too_long_for_its_column_has_a_line_of_its_own() -> None:
    """The others are not pushed to the right by it."""
    rows = [["x" * 60, "why"], ["short", "because"]]
    assert list(aligned(rows, 0)) == ["x" * 60, "       why", "short  because"]


def test_colours_take_no_room() -> None:
    """A styled cell is as wide as it looks."""
    rows = [[click.style("set", fg="green"), "a"], ["dropped", "b"]]
    assert [click.unstyle(line) for line in aligned(rows, 0)] == ["set      a", "dropped  b"]


def test_a_table_without_rows_has_no_lines() -> None:
    """An empty table is nothing."""
    assert list(aligned([], 4)) == list(table(("name",), [])) == []


@pytest.mark.parametrize("key", ["cloud.google.com/gke-spot-" + "x" * 90])
def test_a_key_is_never_cut(key: str) -> None:
    """It could not be copied."""
    assert wrapped(f"a {key}", 0) == ["a", key]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


ROWS = [("n" * 60, "", "a " * 80), ("m", "1", "")]


def test_a_row_of_a_table_is_one_line_in_a_pipe() -> None:
    """However long it is, and none of its columns is missing: programs read line by line."""
    lines = [click.unstyle(each) for each in table(("name", "ready", "message"), ROWS)]
    assert [line.split()[:2] for line in lines] == [
        ["NAME", "READY"],
        ["n" * 60, "<none>"],
        ["m", "1"],
    ]
    assert lines[0].index("MESSAGE") == lines[1].index("a a") == 70


def test_line_ends_in_a_cell_are_blanks_in_a_table() -> None:
    """Each row stays one line."""
    assert list(table((), [("a\nb", "c\n\nd")])) == ["a b  c d"]


def test_only_the_last_column_of_a_table_is_wrapped_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Below itself; if there is no room for it, not even that one."""
    monkeypatch.setenv("COLUMNS", "70")
    with redirect_stdout(Terminal()):
        lines = list(table((), [("name", "word " * 20), ("m", "")]))
        long = list(table((), ROWS))
    assert lines[0].startswith("name  word")
    assert lines[1].startswith("      word")
    assert max(map(len, lines)) <= 70
    assert len(long) == 2


def test_a_table_has_no_head_if_none_is_wanted() -> None:
    """As kubectl's --no-headers."""
    with click.Context(click.Command("list")) as context:
        context.meta[NO_HEADERS] = True
        assert list(table(("name",), [("a",)])) == ["a"]


def test_columns_is_the_width_of_text() -> None:
    """In a pipe too; what is no number does not count."""
    with pytest.MonkeyPatch.context() as patch:
        for given, found in (("60", 60), ("x", 100), ("0", 100), ("900", 140)):
            patch.setenv("COLUMNS", given)
            assert width() == found


def test_text_may_be_wrapped_within_a_width_of_its_own() -> None:
    """As a file wants it, whatever the terminal."""
    assert wrapped("word " * 20, 10, 60) == ["word " * 9 + "word"] * 2
