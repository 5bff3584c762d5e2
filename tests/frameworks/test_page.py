"""The page of frameworks says what replicas are told, and nothing else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.fast_yaml import load_yaml
from webhook.frameworks.table import FRAMEWORKS, render_env
from webhook.run.model import Run
from webhook.run.plan import Plan, plan

GUIDE = Path(__file__).parents[2] / "docs" / "reference" / "frameworks.md"
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A row of a table of variables: their names, and to whom they are told.
ROW = re.compile(r"^\| ((?:`[A-Za-z_]+`(?:, )?)+) \| ([a-z, ]+) \| .+ \|$", re.MULTILINE)


HEADS = re.split(r"^## (.+)$", GUIDE.read_text(), flags=re.MULTILINE)[1:]
# The text of each framework, by its name as a Run writes it.
SECTIONS = {head.lower(): text for head, text in zip(HEADS[::2], HEADS[1::2], strict=True)}
RUNS = [
    (framework, text) for framework, section in SECTIONS.items() for text in YAML.findall(section)
]


def planned(text: str) -> Plan:
    """The plan of a Run that the page shows."""
    return plan(Run.model_validate(load_yaml(text), by_alias=True, by_name=False))


def test_every_framework_has_a_section() -> None:
    """In the order in which a Run names them."""
    assert tuple(SECTIONS) == tuple(FRAMEWORKS)


@pytest.mark.parametrize(("framework", "text"), RUNS)
def test_every_run_is_one_of_its_section(framework: str, text: str) -> None:
    """All its pods can be made."""
    made = planned(text)
    assert made.run.spec.framework == framework
    for role, count in made.gang.counts.items():
        assert made.pod(role, count - 1, 0)["spec"]["containers"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_tables_name_every_variable_and_its_replicas(framework: str) -> None:
    """For each run of the section whom it tells what; nothing is named that none of them tells."""
    said = {
        variable: who
        for variables, who in ROW.findall(SECTIONS[framework])
        for variable in re.findall(r"`([A-Za-z_]+)`", variables)
    }
    never = set(said)
    for text in YAML.findall(SECTIONS[framework]):
        gang = planned(text).gang
        told: dict[str, set[str]] = {}
        for role in gang.counts:
            for variable in render_env(gang, role, 0).env:
                told.setdefault(variable, set()).add(role)
        roles = {variable: said[variable] for variable in told}
        assert told == {
            variable: set(gang.counts) if who == "all" else set(who.split(", "))
            for variable, who in roles.items()
        }
        never -= told.keys()
    assert not never


@pytest.mark.parametrize(
    "text", [each for text in SECTIONS.values() for each in PYTHON.findall(text)]
)
def test_every_program_reads_variables_that_there_are(text: str) -> None:
    """And is Python."""
    ast.parse(text)
    section = next(section for section in SECTIONS.values() if text in section)
    known = set(re.findall(r"`([A-Z_]+)`", section))
    assert set(re.findall(r'environ\["([A-Z_]+)"\]', text)) <= known
