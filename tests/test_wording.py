"""Golden wordings: every text belongs to a test, and a difference is reported with its cure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wording import (
    FOLDER,
    Texts,
    Wording,
    defined_tests,
    line_with,
    mentions,
    module_of,
    read,
    updated,
    write,
)


@pytest.mark.parametrize("file", sorted(FOLDER.rglob("*.yaml")), ids=lambda file: file.stem)
def test_every_golden_text_belongs_to_a_test(file: Path) -> None:
    """A text of a test that is gone is never compared."""
    assert {name.partition("[")[0] for name in read(file)} <= defined_tests(module_of(file))


def test_a_text_is_compared_with_the_golden_one(tmp_path: Path) -> None:
    """Another text, one text too many and one too few fail."""
    file = tmp_path / "golden.yaml"
    write(file, {"test_it": ["one line", "two\nlines\n"]})
    assert read(file) == {"test_it": ["one line", "two\nlines\n"]}
    wording = Wording(file, "test_it")
    wording(f"{tmp_path} line", {tmp_path: "one"})
    with pytest.raises(AssertionError, match="compared"):
        wording.finish()
    with pytest.raises(AssertionError, match="make golden"):
        wording("another text")
    wording.finish()
    with pytest.raises(AssertionError, match="make golden"):
        wording("one text too many")


def test_an_update_replaces_texts_of_tests_that_passed_alone() -> None:
    """Of one that failed the later texts are not known; of one that did not run, none."""
    old = {"test_a[1]": ["a1"], "test_a[2]": ["a2"], "test_b": ["b"], "test_gone": ["gone"]}
    passed: Texts = {"test_a[1]": ["new"], "test_b": []}
    kept = {"test_a[1]": ["new"], "test_a[2]": ["a2"]}
    assert updated(old, passed, None) == {**kept, "test_gone": ["gone"]}
    assert updated(old, passed, ["test_a[1]", "test_a[2]", "test_b"]) == kept


def test_a_missing_fact_is_named() -> None:
    """Lines that a terminal wrapped count as one."""
    mentions("policy p1\n  requires 'a'", "policy p1 requires", "'a'")
    with pytest.raises(AssertionError, match="p2"):
        mentions("policy p1 requires 'a'", "p1", "p2")


def test_a_line_is_found_by_its_facts() -> None:
    """One line names all of them: none is no line, nor are two."""
    text = "  set   p1\nlost  p2\nlost  p3\n"
    assert line_with(text, "set", "p1") == line_with(text.splitlines(), "set p1") == "set p1"
    for facts in (("lost",), ("set", "p2")):
        with pytest.raises(AssertionError, match="lines name"):
            line_with(text, *facts)
