"""`fairlead generate schema` prints what editors and people need to write policies."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from tests.fast_yaml import load_all_yaml, load_yaml
from webhook.cli.generate.schema import command
from webhook.policy.crd.definitions import custom_resource_definitions
from webhook.policy.json_schema import ALL, names, pages, schema
from webhook.run import json_schema as run_schema
from webhook.run.crd import custom_resource_definition

Json = dict[str, Any]
DEFINITIONS: list[Json] = [custom_resource_definition(), *custom_resource_definitions().values()]


def printed(*arguments: str) -> str:
    """What the command prints, if it succeeds."""
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("name", names())
def test_the_schema_of_each_name_is_printed(name: str) -> None:
    """Each kind, and all of them, as JSON and nothing else."""
    assert json.loads(printed(name)) == schema(name)


def test_without_a_name_the_schema_is_for_any_document() -> None:
    """A file may hold both kinds, so that is the schema that editors want."""
    assert json.loads(printed()) == schema(ALL)


def test_the_reference_is_printed_as_markdown() -> None:
    """One page a kind, or all pages."""
    assert printed("capacityclass", "-o", "markdown") == pages()["capacityclass.md"]
    assert all(page in printed("-o", "markdown") for page in pages().values())


def test_the_schema_and_the_reference_of_runs_are_printed() -> None:
    """As those of policies are; `all` stays the schema of policy files."""
    assert json.loads(printed("run")) == run_schema.schema()
    assert printed("run", "-o", "markdown") == run_schema.page()
    assert "RunSpec" not in json.loads(printed())["$defs"]


def test_the_definitions_are_printed_as_kubectl_takes_them() -> None:
    """YAML if nothing else is said, without any key or text that a reader could mistake."""
    text = printed("crd")

    assert list(load_all_yaml(text)) == DEFINITIONS
    assert json.loads(printed("crd", "-o", "json")) == {
        "apiVersion": "v1",
        "kind": "List",
        "items": DEFINITIONS,
    }
    assert "&id" not in text


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each["metadata"]["name"])
def test_the_definition_of_one_kind_is_printed_alone(definition: Json) -> None:
    """For whoever keeps each in a file of its own, as manifests/crds does."""
    kind = definition["spec"]["names"]["singular"]

    assert load_yaml(printed("crd", kind)) == definition
    assert json.loads(printed("crd", kind, "-o", "json")) == definition
