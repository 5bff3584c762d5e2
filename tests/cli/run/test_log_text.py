"""Bytes of a log as prefixed lines."""

from __future__ import annotations

import click
from hypothesis import given
from hypothesis import strategies as st

from webhook.cli.run.log_text import LogLines, Prefixes


@given(st.text(st.characters(exclude_characters="\r", codec="utf-8")), st.data())
def test_lines_are_the_same_however_the_bytes_are_cut(text: str, data: st.DataObject) -> None:
    """Within a character too; the last line needs no newline."""
    whole = text.encode()
    log, lines, start = LogLines(), [], 0
    while start < len(whole):
        end = data.draw(st.integers(start + 1, len(whole)))
        lines += log.feed(whole[start:end])
        start = end
    lines += log.finish()
    assert "\n".join(lines) == text.removesuffix("\n")


def test_of_a_progress_bar_the_last_state_is_shown() -> None:
    """It would write over the prefix, and over the other replicas' lines."""
    log = LogLines()
    assert log.feed(b"10%\r50%\r100%\nplain\r\n") == ["100%", "plain"]


def test_what_is_no_text_is_replaced() -> None:
    """And nothing is lost around it."""
    log = LogLines()
    assert log.feed(b"a\xff\xfeb\n\xc3") == ["a\ufffd\ufffdb"]
    assert log.finish() == ["\ufffd"]


def test_a_line_without_end_is_shown_in_pieces() -> None:
    """Else it would take all memory."""
    log = LogLines()
    pieces = [line for _ in range(40) for line in log.feed(b"x" * 100_000)]
    assert pieces
    assert "".join([*pieces, *log.finish()]) == "x" * 4_000_000


def test_prefixes_are_of_one_width() -> None:
    """So that the lines can be read as columns; an empty line ends in no blank."""
    prefixes = Prefixes(["ps-0", "worker-10"], coloured=False)
    assert prefixes.put("ps-0", ["a", ""]) == "ps-0      | a\nps-0      |\n"
    assert prefixes.put("worker-10", ["b"]) == "worker-10 | b\n"


def test_each_replica_has_its_colour_and_keeps_it() -> None:
    """Only the prefix is coloured."""
    prefixes = Prefixes(["a", "b"], coloured=True)
    first, second = prefixes.put("a", ["x"]), prefixes.put("b", ["x"])
    assert prefixes.put("a", ["x"]) == first
    assert first[:5] != second[:5]
    assert click.unstyle(first) == "a | x\n"
    assert first.endswith("\x1b[0m x\n")
