"""`fairlead policy sources` prints the whole table, and the documentation shows what it prints."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from webhook.cli.policy.sources import command, render
from webhook.sources import SHIPPED, SOURCES

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "reference" / "sources.md"


def test_the_documented_table_is_what_the_command_prints() -> None:
    """The page holds the command's output; after a change of the table paste it again."""
    printed = CliRunner().invoke(command, ["-o", "wide"]).stdout
    assert f"```text\n{printed}```\n" in DOCUMENTATION.read_text("utf-8")


def test_the_text_fits_a_terminal_and_cuts_no_key() -> None:
    """No line is over 100 columns, and every key can be copied whole."""
    text = render(SOURCES)
    assert max(map(len, text.splitlines())) <= 100
    assert set(text.replace(",", " ").replace(":", " ").replace("=", " ").split()) >= (
        SHIPPED.read_labels | SHIPPED.read_annotations
    )


def test_rows_are_aligned() -> None:
    """Every line but a block's first has its text in one column."""
    lines = [line for line in render(SOURCES).splitlines() if line.startswith("    ")]
    assert {line[16] for line in lines} == {" "}
    assert " " not in {line[17] for line in lines}


def test_json_tells_every_key_of_every_row_in_order() -> None:
    """Programs get the rows by precedence, with each key that the engine reads."""
    result = CliRunner().invoke(command, ["-o", "json"])
    rows = json.loads(result.stdout)["sources"]
    assert [row["name"] for row in rows] == [source.name for source in SOURCES]
    for row, source in zip(rows, SOURCES, strict=True):
        listed = [*row["run"], *row["index"], *row["replicas"], *row["coordinator"]]
        listed += [clause for fact in ("kind", "framework", "role") for clause in row[fact]]
        keys = {(key["name"], key["annotation"]) for key in listed if "name" in key}
        keys |= {(mark["key"], False) for mark in row["marks"] if not mark["namespace"]}
        assert keys == source.read_keys()


def test_the_table_has_a_line_for_each_system() -> None:
    """In the order of precedence, as `-o name` has them."""
    rows = CliRunner().invoke(command, ["--no-headers"]).stdout.splitlines()
    names = CliRunner().invoke(command, ["-o", "name"]).stdout.splitlines()
    assert names == [f"runsource.fairlead.dev/{row.split()[0]}" for row in rows]
    assert [row.split()[0] for row in rows] == [source.name for source in SOURCES]


def test_headings_are_bold_on_terminals_only() -> None:
    """A pipe gets plain text."""
    assert "\x1b" not in CliRunner().invoke(command, []).stdout
    assert "\x1b[1m" in CliRunner().invoke(command, [], color=True).stdout
