"""Groups whose subcommands are imported when they are called."""

from __future__ import annotations

import sys

import click
import pytest
from click.testing import CliRunner

from tests.wording import Wording, mentions
from webhook.cli import fairlead
from webhook.cli.exit_codes import DONE, UNKNOWN
from webhook.cli.lazy import LazyGroup


@click.group(
    cls=LazyGroup,
    package="webhook.cli.policy",
    table={"sources": "The marks.", "absent": "Not there."},
)
def group() -> None:
    """A group."""


def test_a_groups_help_imports_no_subcommand() -> None:
    """One that does not even exist is listed, sorted, with its help from the table."""
    answer = CliRunner().invoke(group, ["--help"])
    assert answer.exit_code == 0
    assert answer.output.index("absent   Not there.") < answer.output.index("sources  The marks.")


def test_a_subcommand_is_the_attribute_command_of_its_module() -> None:
    """Calling it imports the module."""
    answer = CliRunner().invoke(group, ["sources", "--help"])
    assert answer.exit_code == 0
    assert "webhook.cli.policy.sources" in sys.modules


@pytest.mark.parametrize("name", ["source", "lazy"])
def test_a_name_outside_the_table_is_not_a_subcommand(name: str) -> None:
    """Modules that hold no command are never tried."""
    answer = CliRunner().invoke(group, [name])
    assert answer.exit_code == 2
    assert f"No such command '{name}'" in answer.output


def test_a_misspelt_command_gets_a_suggestion(wording: Wording) -> None:
    """As of options; commands are known by the table alone."""
    answer = CliRunner().invoke(group, ["sorces"])
    mentions(answer.output, "No such command 'sorces'", "'sources'")
    wording(answer.output.partition("error: ")[2])


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["run", "delete", "-l", "a=b", "-l", "c=d"], ("--selector", "2 times")),
        (["run", "resume", "-n", "b", "--namespace", "a", "r"], ("--namespace", "2 times")),
        (["run", "delete", "--context", "", "r"], ("--context", "empty")),
        (["run", "delete", "--kubeconfig", "", "r"], ("--kubeconfig", "empty")),
    ],
)
def test_what_nobody_named_is_not_chosen(arguments: list[str], facts: tuple[str, ...]) -> None:
    """The last of two values, or what is there without one, may be another cluster's."""
    result = CliRunner().invoke(fairlead, arguments)
    assert result.exit_code == UNKNOWN
    mentions(result.output, *facts)


def test_a_program_may_have_an_option_twice_and_empty() -> None:
    """They are not Fairlead's own, after `--`."""
    program = ["--", "python", "-n", "a", "-n", "", "--context", ""]
    arguments = ["run", "create", "r", "--image", "i", "--dry-run", "-o", "yaml", *program]
    assert CliRunner().invoke(fairlead, arguments).exit_code == DONE
