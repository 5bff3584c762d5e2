"""`fairlead schema` prints what editors and people need to write policies."""

import json

import pytest
import yaml
from click.testing import CliRunner

from webhook.cli.schema import command
from webhook.policy.json_schema import ALL, names, schema
from webhook.policy.reference import pages
from webhook.run import json_schema as run_schema
from webhook.run.crd import custom_resource_definition


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


def test_the_definition_of_runs_is_printed_as_kubectl_takes_it() -> None:
    """YAML if nothing else is said, without any key or text that a reader could mistake."""
    text = printed("crd")

    assert yaml.safe_load(text) == custom_resource_definition()
    assert json.loads(printed("crd", "-o", "json")) == custom_resource_definition()
    assert "&id" not in text


def test_the_definition_has_no_reference_of_its_own() -> None:
    """What a Run's fields mean is said once."""
    result = CliRunner().invoke(command, ["crd", "-o", "markdown"])

    assert result.exit_code == 2
    assert "fairlead schema run" in result.output


def test_an_unknown_kind_is_a_usage_error() -> None:
    """Exit code 2, with the kinds that there are."""
    result = CliRunner().invoke(command, ["pod"])

    assert result.exit_code == 2
    assert "placementpolicy" in result.output
