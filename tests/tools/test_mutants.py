"""The sample of mutants: what is changed, and that each change is found again."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.mutants import Mutant, judge, mutated, places, sample

SOURCE = '''\
"""A module."""

from __future__ import annotations

LIMIT: int = 3


def over(count: int, *, strict: bool = False) -> bool:
    """Whether it is over."""
    if strict and not count:
        return False
    return count >= LIMIT
'''
TEST = "from module import over\n\ndef test_it():\n    assert over(3) and not over(2)\n"


def test_code_is_changed_and_texts_for_people_are_not() -> None:
    """Docstrings, annotations and imports do nothing when the program runs."""
    found = [(place.function, place.change) for place in places(ast.parse(SOURCE))]
    assert found == [
        ("", "a number grows by one"),
        ("over", "a boolean is negated"),
        ("over", "a condition is negated"),
        ("over", "and and or change places"),
        ("over", "not is dropped"),
        ("over", "None is returned"),
        ("over", "a boolean is negated"),
        ("over", "None is returned"),
        ("over", "GtE becomes Gt"),
    ]


def test_a_mutant_changes_one_place_and_tells_its_line() -> None:
    """Its number counts within its function, so that other functions may move."""
    changed = mutated(SOURCE, Mutant("module.py", "over", 7, "GtE becomes Gt"))
    assert changed is not None
    text, line, source = changed
    assert (line, source) == (12, "return count >= LIMIT")
    assert ast.unparse(ast.parse(SOURCE)).replace(">=", ">") == text
    assert mutated(SOURCE, Mutant("module.py", "over", 7, "Eq becomes NotEq")) is None
    assert mutated(SOURCE, Mutant("module.py", "gone", 0, "GtE becomes Gt")) is None


def test_the_same_seed_draws_the_same_mutants(tmp_path: Path) -> None:
    """Another seed draws others."""
    (tmp_path / "module.py").write_text(SOURCE)
    drawn = sample(tmp_path, ["."], 3, seed=1)
    assert drawn == sample(tmp_path, ["."], 3, seed=1) != sample(tmp_path, ["."], 3, seed=2)
    assert len(drawn) == 3


@pytest.mark.parametrize(
    ("mutant", "result"),
    [
        (Mutant("module.py", "over", 7, "GtE becomes Gt"), "killed"),
        (Mutant("module.py", "over", 3, "not is dropped"), "survived"),
        (Mutant("module.py", "over", 99, "not is dropped"), "not there"),
        (Mutant("module.py", "over", 0, "a boolean is negated"), "not covered"),
    ],
)
def test_a_mutant_is_killed_if_a_test_of_its_line_fails(
    tmp_path: Path, mutant: Mutant, result: str
) -> None:
    """The file is as it was afterwards."""
    (tmp_path / "module.py").write_text(SOURCE)
    (tmp_path / "test_it.py").write_text(TEST)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    coverage = {"module.py": {str(line): ["test_it.py::test_it"] for line in (10, 11, 12)}}
    assert judge(tmp_path, mutant, coverage)["result"] == result
    assert (tmp_path / "module.py").read_text() == SOURCE
