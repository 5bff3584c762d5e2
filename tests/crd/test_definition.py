"""JSON Schema becomes a structural schema, or is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fast_yaml import load_yaml
from webhook.crd.definition import Structural
from webhook.crd.rules import Rule, formed

Json = dict[str, Any]


def made(**properties: Json) -> Json:
    """What becomes of the fields of an object."""
    definitions: Json = {
        "Whole": {"type": "object", "properties": properties},
        "Part": {
            "type": "object",
            "title": "Part",
            "description": "A part.",
            "additionalProperties": False,
            "properties": {"a": {"type": "string", "title": "A"}},
            "required": ["a"],
        },
    }
    fields: Json = Structural(definitions, {}, {}).definition("Whole")["properties"]
    return fields


def nullable(**schema: Any) -> Json:
    """How pydantic writes a field that may be left out."""
    return {"anyOf": [schema, {"type": "null"}], "default": None, "description": "D."}


@pytest.mark.parametrize(
    "case", load_yaml((Path(__file__).parent / "structural.yaml").read_text()), ids=str
)
def test_each_form_of_json_schema_has_its_structural_form(case: Json) -> None:
    """References are written out, nulls and titles go, and what is open stays open."""
    assert made(field=case["schema"]) == {"field": case["structural"]}


def test_what_has_no_structural_form_is_an_error() -> None:
    """A model that grows must not lose a check without a word."""
    with pytest.raises(ValueError, match="multipleOf"):
        made(field={"type": "integer", "multipleOf": 2})


def test_rules_and_limits_stand_where_their_class_does() -> None:
    """Wherever it is referred to, save for those that would be too deep."""
    part = {
        "type": "object",
        "properties": {"list": {"type": "array", "items": {"type": "string"}}},
    }
    reference = {"$ref": "#/$defs/Part"}
    definitions = {
        "Part": part,
        "Low": {"type": "object", "properties": {"part": reference}},
        "Whole": {
            "type": "object",
            "properties": {"part": reference, "low": {"$ref": "#/$defs/Low"}},
        },
    }
    rules = {"Part": (Rule("true", "never: nothing", at=".list"),)}
    limits = {("Part", "list"): {"maxItems": 5}}

    whole = Structural(definitions, rules, limits, "Low", {"Part"}).definition("Whole")
    high, low = whole["properties"]["part"], whole["properties"]["low"]["properties"]["part"]
    assert high["x-kubernetes-validations"] == [
        {"rule": "true", "message": "never: nothing", "fieldPath": ".list"}
    ]
    assert "x-kubernetes-validations" not in low
    assert high["properties"]["list"]["maxItems"] == low["properties"]["list"]["maxItems"] == 5


def test_a_rule_may_be_about_the_items_of_one_list() -> None:
    """The same class stands elsewhere without it, and keeps the rules of its own."""
    items = {"type": "array", "items": {"$ref": "#/$defs/Part"}}
    definitions = {
        "Part": {"type": "object", "properties": {"a": {"type": "string"}}},
        "Whole": {"type": "object", "properties": {"some": items, "others": items}},
    }
    rules = {
        "Part": (Rule("has(self.a)", "of the class: nothing"),),
        "Whole.some": (Rule("true", "of the list: nothing"),),
    }

    fields = Structural(definitions, rules, {}).definition("Whole")["properties"]
    some, others = (
        [rule["message"] for rule in fields[field]["items"]["x-kubernetes-validations"]]
        for field in ("some", "others")
    )
    assert some == ["of the class: nothing", "of the list: nothing"]
    assert others == ["of the class: nothing"]


TEXT: Json = {"type": "string", "format": "date", "pattern": "^a$", "maxLength": 5}


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (TEXT, ()),
        (nullable(**TEXT), ()),
        ({"type": "array", "items": TEXT}, ("items",)),
        ({"type": "object", "additionalProperties": TEXT}, ("additionalProperties",)),
    ],
)
def test_a_rule_about_a_form_takes_the_place_of_the_pattern(
    schema: Json, path: tuple[str, ...]
) -> None:
    """And of the format: what the API server says of those nobody needs beside the words."""
    definitions = {"Whole": {"type": "object", "properties": {"field": schema}}}
    rules = {"Whole.field": (formed("^a$", "is no a: give one"),)}

    found = Structural(definitions, rules, {}).definition("Whole")["properties"]["field"]
    for step in path:
        found = found[step]
    found.pop("description", None)
    assert found == {
        "type": "string",
        "maxLength": 5,
        "x-kubernetes-validations": [
            {"rule": "self.matches(r'^a$')", "message": "is no a: give one"}
        ],
    }


def test_a_rule_about_another_form_than_the_schemas_is_an_error() -> None:
    """A model that changes must not be judged by what it was."""
    definitions = {"Whole": {"type": "object", "properties": {"field": TEXT}}}

    with pytest.raises(ValueError, match=r"Whole\.field .*pattern"):
        Structural(
            definitions, {"Whole.field": (formed("^b$", "is no b: give one"),)}, {}
        ).definition("Whole")
