"""The JSON Schemas say what the readers say, and the files that ship are the current ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.document_keys import keys
from tests.examples import examples
from tests.fast_yaml import load_all_yaml, load_yaml
from tests.policy.examples import EVERYTHING, GONE, changed, places
from tests.run import whole_runs
from webhook.policy.json_schema import ALL, DIALECT, names, pages, schema
from webhook.policy.policy_documents import KNOWN, parse
from webhook.run import json_schema as run
from webhook.run.run_documents import read_runs

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference"
# Documents of kinds that no cluster has, or that ship.
SOURCES = [
    Path(__file__).parent / "team-policy.yaml",
    *sorted((ROOT / "webhook" / "sources").glob("*.yaml")),
]
SCHEMAS: dict[str, Json] = {**{name: schema(name) for name in names()}, "run": run.schema()}
PAGES = {**pages(), "run.md": run.page()}


class Family(NamedTuple):
    """A schema, documents that use every field of it, and whether the reader takes a document.

    unwritten: definitions of what no person writes.
    """

    schema: Json
    documents: list[Json]
    takes: Callable[[Json], bool]
    page: str
    unwritten: frozenset[str] = frozenset()


def takes_policy(document: Json) -> bool:
    """Whether a file may contain it."""
    return not parse({"x": json.dumps(document).encode()}).errors


def takes_run(document: Json) -> bool:
    """Whether a file may contain it."""
    return not read_runs({"x": json.dumps(document).encode()}).errors


POLICIES = Family(
    SCHEMAS[ALL],
    [*load_all_yaml(EVERYTHING), *(load_yaml(file.read_text()) for file in SOURCES)],
    takes_policy,
    "\n".join(pages().values()),
)
STATUS = (
    *("RunStatus", "RoleStatus", "Usage", "Recovering", "ReplicaHistory", "HistoryEvent"),
    *("ReplicaNodes", "Ending"),
)
RUNS = Family(
    SCHEMAS["run"],
    whole_runs.ALL,
    takes_run,
    run.page(),
    frozenset(
        (*STATUS, "Incident", "LastFailure", "Condition", "RunMetadata", "GangStatus", "GangWait")
    ),
)
each_family = pytest.mark.parametrize("family", [POLICIES, RUNS], ids=["policies", "runs"])
EXAMPLES = [(family, each) for family in (POLICIES, RUNS) for each in family.documents]


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schemas_that_ship_are_fresh(name: str) -> None:
    """`fairlead generate schema NAME > FILE` makes each file again."""
    file = ROOT / "schemas" / f"{'fairlead' if name == ALL else name}.json"
    current = json.dumps(SCHEMAS[name], indent=2, ensure_ascii=False) + "\n"
    again = f"run: fairlead generate schema {name} > {file.relative_to(ROOT)}"
    assert file.read_text() == current, again
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["$schema"] == DIALECT


@each_family
def test_the_examples_use_every_field(family: Family) -> None:
    """So that the tests below speak of all of the schema; what the API server writes apart."""
    written = {key for document in family.documents for key in keys(document)}
    fields = {
        field
        for name, definition in family.schema["$defs"].items()
        if name not in family.unwritten
        for field, value in definition["properties"].items()
        if {"type", "$ref", "enum", "anyOf"} & set(value)
    }
    assert fields - written == {"gmsaCredentialSpec", "gmsaCredentialSpecName"}


@pytest.mark.parametrize(("family", "document"), EXAMPLES)
def test_the_examples_are_valid_by_schema_and_reader(family: Family, document: Json) -> None:
    """Both take every field, alone by kind and together."""
    assert family.takes(document)
    Draft202012Validator(family.schema).validate(document)
    Draft202012Validator(SCHEMAS[document["kind"].lower()]).validate(document)


def test_the_policies_that_ship_are_valid_by_the_schema() -> None:
    """An editor that checks against the schema finds nothing in our own files."""
    validator = Draft202012Validator(POLICIES.schema)
    for path in sorted((ROOT / "policies").rglob("*.yaml")):
        for document in load_all_yaml(path.read_text()):
            if isinstance(document, dict) and document.get("kind") in KNOWN:
                validator.validate(document)


SLIPS: dict[str, list[Json]] = {
    "PlacementPolicy": [
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
    "CapacityClass": [
        {},
        {"nodes": []},
        {"nodes": [{"taints": []}]},
        {"nodes": [], "complementOf": "a"},
    ],
    "Run": [
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
}


@pytest.mark.parametrize(("kind", "spec"), [(kind, spec) for kind in SLIPS for spec in SLIPS[kind]])
def test_an_editor_sees_the_usual_slips(kind: str, spec: Json) -> None:
    """What the schema can say, it says: types, words, ranges, unknown fields, fields together."""
    family = RUNS if kind == "Run" else POLICIES
    least: Json = {"template": {}} if kind == "Run" else {}
    good = next(each for each in family.documents if each["kind"] == kind)
    assert not Draft202012Validator(family.schema).is_valid({**good, "spec": {**least, **spec}})


PLACES = [(family, document, path) for family, document in EXAMPLES for path in places(document)]
VALUES: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-3, 200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "a", "a b", "NoExecute", "Exists", "In", "Prefer", "5", "500m", "jax"])
    | st.just([])
    | st.just({})
    | st.just(GONE)
)


@settings(deadline=None, max_examples=examples(450))
@given(st.sampled_from(PLACES), VALUES)
def test_what_the_reader_takes_the_schema_takes(
    place: tuple[Family, Json, tuple[Any, ...]], value: Any
) -> None:
    """An editor never marks what Fairlead would read: any one change of an example tells."""
    family, whole, path = place
    document = changed(whole, path, value)
    # A null of a Run is a field left out; an editor asks for it to be removed.
    if family.takes(document) and (family is POLICIES or value is not None):
        Draft202012Validator(family.schema).validate(document)


@pytest.mark.parametrize("file", sorted(PAGES))
def test_the_pages_that_ship_are_fresh(file: str) -> None:
    """`fairlead generate schema KIND -o markdown > FILE` makes each page again."""
    again = f"run: fairlead generate schema {Path(file).stem} -o markdown > docs/reference/{file}"
    assert (FOLDER / file).read_text() == PAGES[file], again


@each_family
def test_everything_is_explained(family: Family) -> None:
    """Every part has a description, every field one that is a sentence."""
    for name, definition in family.schema["$defs"].items():
        assert definition["description"].rstrip(")").endswith((".", "Condition")), name
        for field, value in definition["properties"].items():
            assert value.get("description", "").endswith("."), f"{name}.{field}"


@each_family
def test_every_field_is_on_a_page(family: Family) -> None:
    """What can be written is explained; what the API server writes is left out."""
    for definition in family.schema["$defs"].values():
        for field, value in definition["properties"].items():
            if {"type", "$ref", *(("anyOf",) if family is RUNS else ())} & set(value):
                assert f"| `{field}` |" in family.page, field


@pytest.mark.parametrize("word", ["overrides", "requirements", "as a default"])
def test_reports_about_runs_do_not_mention_policies(word: str) -> None:
    """Placement has defaults, overrides and requirements in policies, and none of them here."""
    assert word not in RUNS.page.lower()
