"""The schema of results that ships is that of the models, and explains everything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from webhook.cli import fairlead
from webhook.evaluation.result import schema

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("path", "arguments"),
    [("schemas/pods.json", []), ("docs/reference/pods.md", ["-o", "markdown"])],
)
def test_what_ships_is_fresh(path: str, arguments: list[str]) -> None:
    """The command makes it again."""
    made = CliRunner().invoke(fairlead, ["generate", "schema", "pods", *arguments]).output
    cure = f"run: fairlead generate schema pods {' '.join(arguments)} > {path}"
    assert (ROOT / path).read_text() == made, cure


def test_everything_is_explained() -> None:
    """Every part has a description, every field one that is a sentence."""
    whole = json.loads(json.dumps(schema()))
    Draft202012Validator.check_schema(whole)
    for part in (whole, *whole["$defs"].values()):
        assert part["description"].endswith("."), part["title"]
        for name, field in part["properties"].items():
            assert field.get("description", "").endswith("."), f"{part['title']}.{name}"
