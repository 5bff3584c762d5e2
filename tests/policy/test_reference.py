"""The reference explains every field, and the pages that ship are the current ones."""

from pathlib import Path

import pytest

from webhook.policy.json_schema import ALL, schema
from webhook.policy.reference import pages

FOLDER = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize("file", sorted(pages()))
def test_the_pages_that_ship_are_fresh(file: str) -> None:
    """`fairlead schema KIND -o markdown > FILE` makes each page anew."""
    kind = Path(file).stem

    assert (FOLDER / file).read_text() == pages()[file], (
        f"run: fairlead schema {kind} -o markdown > docs/reference/{file}"
    )


@pytest.mark.parametrize("name", sorted(schema(ALL)["$defs"]))
def test_everything_is_explained(name: str) -> None:
    """Every part has a description, every field one that is a sentence."""
    definition = schema(ALL)["$defs"][name]

    assert definition["description"].endswith(".")
    for field, value in definition["properties"].items():
        assert value.get("description", "").endswith("."), f"{name}.{field}"


def test_every_field_is_on_a_page() -> None:
    """What can be written is explained; what the API server writes is left out."""
    text = "\n".join(pages().values())
    for definition in schema(ALL)["$defs"].values():
        for field, value in definition["properties"].items():
            if "type" in value or "$ref" in value:
                assert f"| `{field}` |" in text
