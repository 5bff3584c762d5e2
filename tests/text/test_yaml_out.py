"""YAML that is printed is read back as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fast_yaml import load_all_yaml, load_yaml
from webhook.questions.objects import read_objects
from webhook.text.yaml_out import yaml_documents, yaml_line, yaml_text

_leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]))
    | st.sampled_from(["y", "No", "on", "1e3", "010", "0x1F", "1_000", "1:30", "~", "", ".5"])
    | st.sampled_from(["a\nb\n", "a\n\n b", " a\n", "trail \n", "\n", "2026-11-21", "=", "<<"])
)
values = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/.", max_size=4), inner),
    max_leaves=10,
)


@settings(deadline=None)
@given(value=values)
def test_any_value_comes_back(value: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Also by readers that take y for true and 1e3 for a number, as kubectl's does."""
    file: Path = tmp_path_factory.getbasetemp() / "value.yaml"
    file.write_text(yaml_text({"kind": "A", "value": value}))
    (found,) = read_objects([file])
    assert found.value == {"kind": "A", "value": value}


def test_scripts_stand_as_they_were_written() -> None:
    """Lines are lines, and a long one is not broken."""
    assert yaml_text({"run": "set -e\ntrain --all\n"}) == "run: |\n  set -e\n  train --all\n"
    assert yaml_text({"a": "word " * 60}).count("\n") == 1


def test_what_stands_in_two_places_is_written_twice() -> None:
    """No anchors: half of all tools that read Kubernetes' YAML know none."""
    shared = {"key": "spot"}
    assert "&" not in yaml_text({"a": shared, "b": shared})


def test_documents_are_divided() -> None:
    """As kubectl apply -f takes them."""
    text = yaml_documents([{"kind": "A"}, {"kind": "B"}])
    assert [each["kind"] for each in load_all_yaml(text)] == ["A", "B"]


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"a": ["b", 1]}, "{a: [b, 1]}"),
        ("plain", "plain"),
        ("true", '"true"'),
        (1, "1"),
        ({"key": "x" * 200}, f"{{key: {'x' * 200}}}"),
    ],
)
def test_a_value_fits_in_one_line(value: Any, line: str) -> None:
    """However long it is."""
    assert yaml_line(value) == line
    assert load_yaml(line) == value
