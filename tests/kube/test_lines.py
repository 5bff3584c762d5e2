"""Cutting a stream into lines."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.errors import ClusterError
from webhook.kube.reflector import Lines


@given(
    lines=st.lists(st.binary(max_size=20).map(lambda x: x.replace(b"\n", b" "))),
    cuts=st.lists(st.integers(min_value=0, max_value=200)),
)
def test_lines_do_not_depend_on_where_the_stream_was_cut(
    lines: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    reader = Lines()
    seen: list[bytes] = []
    for start, end in itertools.pairwise(edges):
        seen += reader.feed(stream[start:end])
    reader.finish()
    assert seen == lines


def test_a_line_without_its_newline_is_none() -> None:
    """What the stream's end cut off is not given out, but an error."""
    reader = Lines()
    assert reader.feed(b'{"type": "ADDED"}\n{"type": "DELETED"}') == [b'{"type": "ADDED"}']
    with pytest.raises(ClusterError, match="within a line, after 19 bytes"):
        reader.finish()


def test_a_line_without_end_does_not_take_all_memory() -> None:
    """Beyond the longest line that is allowed, reading is given up."""
    reader = Lines(longest=10)
    reader.feed(b"12345\n1234567890")
    with pytest.raises(ClusterError, match="over 10 bytes"):
        reader.feed(b"1")
