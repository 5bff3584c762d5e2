"""Editors check test files as the command does."""

import json
from pathlib import Path

import jsonschema
import pytest

from tests.fast_yaml import load_yaml
from tests.policy_tests.writing import case
from webhook.policy_tests.policy_test_model import schema

ROOT = Path(__file__).parents[2]


def test_the_shipped_schema_is_fresh() -> None:
    """schemas/policytest.json is what `fairlead test --schema` prints."""
    assert json.loads((ROOT / "schemas" / "policytest.json").read_text()) == schema()


def test_the_schema_is_one() -> None:
    """It is valid by its own dialect."""
    jsonschema.Draft202012Validator.check_schema(schema())


def test_the_schema_knows_no_null() -> None:
    """A document has none: what is None in Python is left out there."""
    assert '"null"' not in json.dumps(schema())


@pytest.mark.parametrize(
    ("expect", "valid"), [("{result: placed}", True), ("{result: placd}", False)]
)
def test_the_schema_tells_right_from_wrong(expect: str, valid: bool) -> None:
    """A test that the command takes is taken, and a slip is not."""
    validator = jsonschema.Draft202012Validator(schema())
    assert validator.is_valid(load_yaml(case(expect))) is valid
