"""The document Scenario: what is wrong is said at its line, and what ships is fresh."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.wording import mentions
from webhook.cli import fairlead
from webhook.errors import InvalidDocuments
from webhook.simulation.scenario import parse

ROOT = Path(__file__).parents[2]
GOOD = """\
apiVersion: fairlead.dev/v1alpha1
kind: Scenario
metadata: {name: week}
spec:
  pools:
  - {name: spot, nodes: 4}
  program: {work: 10h}
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "facts"),
    [
        ("nodes: 4", "nodes: 0", 6, ("nodes", "0", "1")),
        ("nodes: 4", "nodes: 4, lifetime: 1d", 6, ("lifetime", "1d", "1h30m")),
        ("nodes: 4", "nodes: 4, price: -1", 6, ("price", "-1", "0")),
        ("nodes: 4", "nodes: 4, prise: 1", 6, ("prise", "price")),
        ("nodes: 4", "nodes: 4, events: [{at: 1h}]", 6, ("events[0]", "lose", "soldOut")),
        ("nodes: 4", "nodes: 4, allocatable: {cpu: -4}", 6, ("allocatable.cpu", "-4", "0")),
        ("program", "- {name: spot, nodes: 1}\n  program", 7, ("spot", "another name")),
        ("work: 10h}", "work: 10h}\n  runs: [{name: a}, {name: a}]", 8, ("a", "another name")),
        ("work: 10h", "checkpoint: 1h", 7, ("work", "required")),
        ("Scenario", "Scenery", 2, ("Scenery", "Scenario")),
    ],
)
def test_what_is_wrong_is_said_at_its_line(
    old: str, new: str, line: int, facts: tuple[str, ...]
) -> None:
    """With the field, the value and what is allowed."""
    with pytest.raises(InvalidDocuments) as error:
        parse("week.yaml", GOOD.replace(old, new).encode())
    mentions(str(error.value), f"week.yaml:{line}:", *facts)


@pytest.mark.parametrize(
    ("file", "options"),
    [("schemas/scenario.json", []), ("docs/reference/scenario.md", ["-o", "markdown"])],
)
def test_what_ships_is_fresh(file: str, options: list[str]) -> None:
    """`fairlead generate schema scenario` makes it again."""
    made = CliRunner().invoke(fairlead, ["generate", "schema", "scenario", *options])
    assert made.stdout == (ROOT / file).read_text()
