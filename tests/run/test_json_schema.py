"""The schema of Runs says what the reader says, and the files that ship are the current ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.document_keys import keys
from tests.examples import examples
from tests.policy.examples import GONE, changed, places
from tests.run.whole_runs import ALL, TENSORFLOW
from webhook.run.json_schema import page, schema
from webhook.run.run_documents import read_runs

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
SCHEMA = schema()
VALIDATOR = Draft202012Validator(SCHEMA)
# Fields that no Run writes: the status, and what the API server adds to the metadata.
NOT_WRITTEN = (
    *(
        "RunStatus",
        "RoleStatus",
        "Usage",
        "Recovering",
        "ReplicaHistory",
        "HistoryEvent",
        "Incident",
        "LastFailure",
        "Condition",
    ),
    "RunMetadata",
)


def test_the_schema_that_ships_is_fresh() -> None:
    """`fairlead schema run > schemas/run.json` makes it again."""
    current = json.dumps(SCHEMA, indent=2, ensure_ascii=False) + "\n"

    assert (ROOT / "schemas/run.json").read_text() == current, (
        "run: fairlead schema run > schemas/run.json"
    )


def test_the_reference_that_ships_is_fresh() -> None:
    """`fairlead schema run -o markdown > docs/reference/run.md` makes it again."""
    assert (ROOT / "docs/reference/run.md").read_text() == page(), (
        "run: fairlead schema run -o markdown > docs/reference/run.md"
    )


def test_it_is_a_schema() -> None:
    """Draft 2020-12."""
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", sorted(SCHEMA["$defs"]))
def test_everything_is_explained(name: str) -> None:
    """Every part has a description, every field one that is a sentence."""
    definition = SCHEMA["$defs"][name]

    assert definition["description"].rstrip(")").endswith((".", "Condition"))
    for field, value in definition["properties"].items():
        assert value.get("description", "").endswith("."), f"{name}.{field}"


def test_every_field_that_can_be_written_is_on_the_page() -> None:
    """With its type; what the API server writes is left out."""
    text = page()
    for definition in SCHEMA["$defs"].values():
        for field, value in definition["properties"].items():
            if {"type", "$ref", "anyOf"} & set(value):
                assert f"| `{field}` |" in text


def test_reports_about_runs_do_not_mention_policies() -> None:
    """Placement has defaults, overrides and requirements in policies, and none of them here."""
    text = page().lower()

    for word in ("overrides", "requirements", "as a default"):
        assert word not in text


def test_the_examples_use_every_field() -> None:
    """So that the tests that take them speak of all of the schema."""
    written = {key for run in ALL for key in keys(run)}
    fields = {
        field
        for name, definition in SCHEMA["$defs"].items()
        if name not in NOT_WRITTEN
        for field in definition["properties"]
    }

    assert fields - written == {"gmsaCredentialSpec", "gmsaCredentialSpecName"}


@pytest.mark.parametrize("run", ALL, ids=lambda run: run["spec"].get("framework", "none"))
def test_the_examples_are_valid_by_schema_and_reader(run: Json) -> None:
    """Both take every field of every framework."""
    assert not read_runs({"x": json.dumps(run).encode()}).errors
    VALIDATOR.validate(run)


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "experiments"},
        {"framework": "torch"},
        {"replicas": {}},
        {"replicas": {"worker": {"count": 0}}},
        {"replicas": {"worker": {"resources": {"limits": {"cpu": 0.5}}}}},
        {"replicas": {"worker": {"byIndex": [{}]}}},
        {"pytorch": {"nprocPerNode": "all"}},
        {"template": {"spek": {}}},
        {"backofLimit": 3},
        {"mainContainer": "Main"},
    ],
)
def test_an_editor_sees_the_usual_slips(spec: Json) -> None:
    """Types, words, ranges and unknown fields."""
    run = changed(TENSORFLOW, ("spec",), {"template": {}, **spec})

    assert not VALIDATOR.is_valid(run)


VALUES: st.SearchStrategy[Any] = (
    st.booleans()
    | st.integers(-3, 200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "a", "a b", "NoExecute", "In", "Prefer", "5", "500m", "job", "jax"])
    | st.just([])
    | st.just({})
)
PLACES = [(index, path) for index, run in enumerate(ALL) for path in places(run)]


@settings(deadline=None, max_examples=examples(150))
@given(st.sampled_from(PLACES), VALUES | st.just(GONE))
def test_what_the_reader_takes_the_schema_takes(
    place: tuple[int, tuple[Any, ...]], value: Any
) -> None:
    """An editor never marks what Fairlead would read: any one change of an example tells."""
    index, path = place
    run = changed(ALL[index], path, value)

    if read_runs({"x": json.dumps(run).encode()}).documents:
        VALIDATOR.validate(run)
