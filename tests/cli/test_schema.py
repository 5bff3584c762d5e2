"""`fairlead schema` prints what editors and people need to write policies."""

import json

import pytest
from click.testing import CliRunner

from webhook.cli.schema import command
from webhook.policy.json_schema import ALL, names, schema
from webhook.policy.reference import pages


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


def test_an_unknown_kind_is_a_usage_error() -> None:
    """Exit code 2, with the kinds that there are."""
    result = CliRunner().invoke(command, ["pod"])

    assert result.exit_code == 2
    assert "placementpolicy" in result.output
