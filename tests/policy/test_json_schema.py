"""The JSON Schema says what the reader says, and the files that ship are the current ones."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.document_keys import keys
from tests.examples import examples
from tests.fast_yaml import load_all_yaml, load_yaml
from tests.policy.examples import EVERYTHING, GONE, changed, places
from webhook.policy.json_schema import ALL, DIALECT, names, pages, schema
from webhook.policy.policy_documents import KNOWN, parse

ROOT = Path(__file__).parents[2]
SCHEMA = schema(ALL)
VALIDATOR = Draft202012Validator(SCHEMA)
SOURCES = sorted((ROOT / "webhook" / "sources").glob("*.yaml"))
DOCUMENTS: list[dict[str, Any]] = [
    *load_all_yaml(EVERYTHING),
    *(load_yaml(file.read_text()) for file in SOURCES),
]
FOLDER = Path(__file__).parents[2] / "docs" / "reference"


def file_of(name: str) -> Path:
    """Where the schema of that name is kept."""
    return ROOT / "schemas" / f"{'fairlead' if name == ALL else name}.json"


@pytest.mark.parametrize("name", names())
def test_the_schemas_that_ship_are_fresh(name: str) -> None:
    """`fairlead schema NAME > FILE` makes each file again."""
    current = json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n"

    assert file_of(name).read_text() == current, (
        f"run: fairlead schema {name} > {file_of(name).relative_to(ROOT)}"
    )


@pytest.mark.parametrize("name", names())
def test_each_schema_is_a_schema(name: str) -> None:
    """Draft 2020-12, as the files say themselves."""
    Draft202012Validator.check_schema(schema(name))
    assert schema(name)["$schema"] == DIALECT


def test_the_example_uses_every_field() -> None:
    """So that the tests below speak of all of the schema; what the API server writes apart."""
    written = {key for document in DOCUMENTS for key in keys(document)}
    fields = {
        field
        for definition in SCHEMA["$defs"].values()
        for field, value in definition["properties"].items()
        if "type" in value or "$ref" in value or "enum" in value
    }

    assert fields - written == {"gmsaCredentialSpec", "gmsaCredentialSpecName"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document["metadata"]["name"])
def test_the_example_is_valid_by_schema_and_reader(document: dict[str, Any]) -> None:
    """Both take every field, alone by kind and together."""
    assert not parse({"x": yaml.safe_dump(document).encode()}).errors
    VALIDATOR.validate(document)
    Draft202012Validator(schema(document["kind"].lower())).validate(document)


def test_the_policies_that_ship_are_valid_by_the_schema() -> None:
    """An editor that checks against the schema finds nothing in our own files."""
    for path in sorted((ROOT / "policies").rglob("*.yaml")):
        for document in load_all_yaml(path.read_text()):
            if isinstance(document, dict) and document.get("kind") in KNOWN:
                VALIDATOR.validate(document)


@pytest.mark.parametrize(
    "change",
    [
        {"overrides": {"nodeName": "n1"}},
        {"overrides": {"patchStrategy": "IsNull"}},
        {"defaults": {"patchStrategy": "Replace"}},
        {"overrides": {"nodeSelector": {"two words": "x"}}},
        {"overrides": {"nodeSelector": {"a": 5}}},
        {"overrides": {"nodeSelector": {"a": None}}},
        {"overrides": {"capacity": [{"class": "a", "mode": "Allow", "weight": 5}]}},
        {"overrides": {"capacity": [{"class": "a", "mode": "Prefer", "weight": 101}]}},
        {"overrides": {"tolerations": [{"value": "x"}]}},
        {"overrides": {"tolerations": [{"key": "x", "tolerationSeconds": 5}]}},
        {"match": {"kinds": ["experiments"]}, "defaults": {}},
        {"match": {"roles": []}, "defaults": {}},
        {"match": None, "defaults": {}},
        {"mach": {}, "defaults": {}},
        {"match": {}},
    ],
)
def test_an_editor_sees_the_usual_slips(change: dict[str, Any]) -> None:
    """What the schema can say, it says: types, words, ranges, unknown fields, fields together."""
    head = {key: DOCUMENTS[2][key] for key in ("apiVersion", "kind", "metadata")}

    assert not VALIDATOR.is_valid({**head, "spec": change})


@pytest.mark.parametrize(
    "spec", [{}, {"nodes": []}, {"nodes": [{"taints": []}]}, {"nodes": [], "complementOf": "a"}]
)
def test_an_editor_sees_the_usual_slips_in_a_class(spec: dict[str, Any]) -> None:
    """A class without shapes, a shape that tells nothing, and both forms at once."""
    head = {key: DOCUMENTS[0][key] for key in ("apiVersion", "kind", "metadata")}

    assert not VALIDATOR.is_valid({**head, "spec": spec})


PLACES = [(index, path) for index, each in enumerate(DOCUMENTS) for path in places(each)]
VALUES: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-3, 200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "a", "a b", "NoExecute", "Exists", "In", "Prefer", "5"])
    | st.just([])
    | st.just({})
)


@settings(deadline=None, max_examples=examples(300))
@given(st.sampled_from(PLACES), VALUES, st.sampled_from(["replace", "remove"]))
def test_what_the_reader_takes_the_schema_takes(
    place: tuple[int, tuple[Any, ...]], value: Any, change: str
) -> None:
    """An editor never marks what Fairlead would read: any one change of the example tells."""
    index, path = place
    document = changed(DOCUMENTS[index], path, value if change == "replace" else GONE)

    if not parse({"x": json.dumps(document).encode()}).errors:
        VALIDATOR.validate(document)


@pytest.mark.parametrize("file", sorted(pages()))
def test_the_pages_that_ship_are_fresh(file: str) -> None:
    """`fairlead schema KIND -o markdown > FILE` makes each page again."""
    kind = Path(file).stem

    assert (FOLDER / file).read_text() == pages()[file], (
        f"run: fairlead schema {kind} -o markdown > docs/reference/{file}"
    )


@pytest.mark.parametrize("name", sorted(SCHEMA["$defs"]))
def test_everything_is_explained(name: str) -> None:
    """Every part has a description, every field one that is a sentence."""
    definition = SCHEMA["$defs"][name]

    assert definition["description"].endswith(".")
    for field, value in definition["properties"].items():
        assert value.get("description", "").endswith("."), f"{name}.{field}"


def test_every_field_is_on_a_page() -> None:
    """What can be written is explained; what the API server writes is left out."""
    text = "\n".join(pages().values())
    for definition in SCHEMA["$defs"].values():
        for field, value in definition["properties"].items():
            if "type" in value or "$ref" in value:
                assert f"| `{field}` |" in text
