"""A field that the release to roll back to does not read is not stored."""

from __future__ import annotations

import pathlib
import tarfile
from collections.abc import Iterator
from typing import Any, Final

import orjson
import pytest
import yaml
from click.testing import CliRunner

from tests.chaos.upgraded import ARCHIVE
from tests.fast_yaml import load_all_yaml
from tests.policy.examples import EVERYTHING
from tests.wording import Wording, mentions
from webhook import names
from webhook.cli import fairlead
from webhook.judgement.write_judge import Judge, Write
from webhook.policy.crd.definitions import custom_resource_definitions
from webhook.policy.field_releases import FIELD_RELEASES, FieldRelease, later_fields
from webhook.policy.findings import Path, path_text
from webhook.policy.policy_documents import parse
from webhook.strict import Strict

Json = dict[str, Any]
PAGE: Final = pathlib.Path(__file__).parents[2] / "docs/guides/releasing.md"
FIRST: Final = names.RELEASES[0]
SOURCE: Final = {
    "apiVersion": names.API_VERSION,
    "kind": names.SOURCE_KIND,
    "metadata": {"name": "acme"},
    "spec": {
        "system": "Acme",
        "identity": {
            "precedence": 650,
            "marks": [{"label": "acme.example.com/job"}],
            "replicas": [{"label": "acme.example.com/count"}],
        },
        "kinds": [
            {
                "group": "acme.example.com",
                "kind": "Job",
                "pods": [
                    {"template": ".spec.template", "count": {"least": [".a"], "most": [".b"]}}
                ],
            }
        ],
    },
}
EXAMPLES: Final[list[Json]] = [*filter(None, load_all_yaml(EVERYTHING)), SOURCE]


def fields(schema: Json) -> Iterator[str]:
    """The path of every field of a schema."""
    for name, child in schema.get("properties", {}).items():
        yield name
        yield from (f"{name}.{path}" for path in fields(child))
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from fields(schema[key])


def of_spec(definition: Json) -> set[str]:
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return set(fields(schema["properties"]["spec"]))


def first_definitions() -> dict[str, Json]:
    """The definitions of the first release, by kind."""
    with tarfile.open(ARCHIVE) as kept:
        read = [kept.extractfile(each) for each in kept if each.name.endswith("fairlead.dev.yaml")]
        documents = [yaml.safe_load(each) for each in read if each is not None]
    return {each["spec"]["names"]["kind"]: each for each in documents}


def test_every_field_that_the_first_release_lacks_has_a_row() -> None:
    """And no row is about a field that it has: values of a new form are the exception."""
    first, lacking = first_definitions(), set[str]()
    for kind, definition in custom_resource_definitions().items():
        new = of_spec(definition) - of_spec(first[kind])
        # What is below a new field goes with it.
        lacking |= {path.rpartition(".")[2] for path in new if path.rpartition(".")[0] not in new}
    assert lacking == {row.field for row in FIELD_RELEASES if not row.form}
    for row in FIELD_RELEASES:
        assert row.release in names.RELEASES
    assert {row.model for row in FIELD_RELEASES} <= {model.__name__ for model in models(Strict)}
    assert names.ROLLBACK_TO in names.RELEASES


def models(root: type[Strict]) -> Iterator[type[Strict]]:
    """Every model of documents that is imported."""
    for model in root.__subclasses__():
        yield model
        yield from models(model)


def test_the_page_lists_the_rows() -> None:
    """In their order."""
    lines = [
        f"| {row.model} | `{row.field}`{row.form and f', {row.form}'} | {row.release} |"
        for row in FIELD_RELEASES
    ]
    page = PAGE.read_text()
    assert "\n".join(lines) in page, "\n".join(lines)


def written(document: Json, release: str, old: Json | None = None) -> list[str]:
    """Why a write of this document is refused because of its fields."""
    others = {place(each): orjson.dumps(each) for each in EXAMPLES}
    old_text, new_text = (None if each is None else orjson.dumps(each) for each in (old, document))
    write = Write(place(document), old_text, new_text)
    refusals = Judge(rollback_to=release).judge(others, write).refusals
    return [line for line in refusals if "may be rolled back" in line]


def place(document: Json) -> str:
    return f"{names.POLICY_RESOURCES[document['kind']]}/{document['metadata']['name']}"


def later(document: Json) -> dict[Path, FieldRelease]:
    """The fields of a document that the first release does not read, by path."""
    (read,) = parse({"a.json": orjson.dumps(document)}).documents
    return dict(later_fields(read.model, FIRST))


def outermost(document: Json) -> list[str]:
    """The paths of those that are in no other one."""
    paths = later(document)
    inner = {path for path in paths for other in paths if path[: len(other)] == other != path}
    return [path_text(path) for path in paths if path not in inner]


@pytest.mark.parametrize("document", [each for each in EXAMPLES if later(each)], ids=place)
def test_new_fields_are_refused_while_a_rollback_is_possible(document: Json) -> None:
    """Each by its path. An object that has them stays as it is, and may lose them."""
    assert len(written(document, FIRST)) == len(later(document))
    relabelled = {**document, "spec": {**document["spec"], "description": "x"}}
    if document["kind"] == names.POLICY_KIND:
        assert written(relabelled, FIRST, document) == []
    assert written(document, names.RELEASES[-1]) == []


def test_every_row_is_in_an_example() -> None:
    """So no row goes untested, here and with the programs of that release."""
    assert {row for each in EXAMPLES for row in later(each).values()} == {*FIELD_RELEASES}


def test_the_refusal_names_release_and_cure(wording: Wording) -> None:
    spec = {"nodes": [{"labels": {"a": "b"}}], "lostAfter": "5m"}
    document = {
        "apiVersion": names.API_VERSION,
        "kind": names.CLASS_KIND,
        "metadata": {"name": "new"},
        "spec": spec,
    }
    (line,) = written(document, FIRST)
    mentions(line, "spec.lostAfter", f"release {FIRST}", "--rollback-to")
    wording(line)


def test_check_names_what_a_rollback_would_lose(tmp_path: pathlib.Path) -> None:
    """By file, line and path; without the option nothing."""
    (tmp_path / "p.yaml").write_text(EVERYTHING)
    done = CliRunner().invoke(fairlead, ["check", str(tmp_path), "--rollback-to", FIRST])
    assert done.exit_code == 1
    for field in outermost(EXAMPLES[0]):
        mentions(done.output, field, f"release {FIRST}")
    assert CliRunner().invoke(fairlead, ["check", str(tmp_path)]).exit_code == 0
