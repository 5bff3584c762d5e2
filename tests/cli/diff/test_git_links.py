"""Where the links of a committed folder lead."""

from __future__ import annotations

import pytest

from webhook.cli.diff.git_folder import end_of, is_folder_in, is_hidden


@pytest.mark.parametrize(
    ("links", "end"),
    [
        ({"a": "b"}, "b"),
        ({"deep/a": "../b", "a": "deep/a"}, "b"),
        ({"a": "../b"}, "../b"),
        ({"a": "/b"}, "/b"),
        ({"a": "b", "b": "a"}, "a"),
    ],
)
def test_a_link_is_followed_to_its_end(links: dict[str, str], end: str) -> None:
    """From link to link; out of the folder it goes no further, and a circle has an end."""
    assert end_of("a", {"deep/a": "x", **links}) == end


def test_a_folder_is_read_unless_a_dot_hides_it() -> None:
    """Then whatever leads there leads to what is read anyhow."""
    entries = ["deep/a.yaml", ".deep/b.yaml"]
    assert is_folder_in("deep", entries)
    assert is_folder_in(".", entries)
    assert not is_folder_in(".deep", entries)
    assert not is_folder_in("../deep", entries)
    assert is_hidden("deep/.a/b.yaml")
