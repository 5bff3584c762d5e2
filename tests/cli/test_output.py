"""Results in the form asked for on stdout; notes and errors on stderr."""

from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner

from webhook.cli.output import output_option, print_json, print_notes, print_result
from webhook.text.documents import as_one


def test_a_note_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """It may hold words of others: of the API server, or of who wrote an object."""
    print_notes(["plain", "\x1b[2Jgone"])
    assert capsys.readouterr() == ("", "note: plain\nnote: \\x1b[2Jgone\n")


@click.command()
@output_option(formats=("text", "json", "yaml", "markdown"))
@click.option("--fails", is_flag=True)
def command(output: str, fails: bool) -> None:
    """Print one result, whose document cannot be made if it fails."""
    print_result(
        output,
        json=lambda: 1 / 0 if fails else {"a": 1},
        text=lambda: iter(["one", "two"]),
        yaml=lambda: [{"a": 1}, {"b": "é"}],
        markdown=lambda: "# A\n",
    )


@pytest.mark.parametrize(
    ("form", "printed"),
    [
        ("text", "one\ntwo\n"),
        ("json", '{\n  "a": 1\n}\n'),
        ("yaml", "a: 1\n---\nb: é\n"),
        ("markdown", "# A\n"),
    ],
)
def test_a_result_is_printed_in_the_form_that_was_asked_for(form: str, printed: str) -> None:
    """Each with the line ends that its readers expect."""
    assert CliRunner().invoke(command, ["-o", form]).stdout == printed


def test_a_form_that_is_not_asked_for_is_not_made() -> None:
    """It may take long, or ask for what is not there."""
    assert CliRunner().invoke(command, ["--fails"]).stdout == "one\ntwo\n"
    assert CliRunner().invoke(command, ["--fails", "-o", "json"]).exit_code == 1


@pytest.mark.parametrize(
    "document", [{"é": ["ü", 1.5, None, True, [], {}]}, {"large": 2**70}, {"half": "\ud800"}, []]
)
def test_json_is_read_back_as_it_was(document: object, capsys: pytest.CaptureFixture[str]) -> None:
    """Integers of any size, and texts that files may hold and no terminal can show."""
    print_json(document)
    assert json.loads(capsys.readouterr().out) == document


def test_json_is_indented_and_not_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    """For people who look at it all the same."""
    print_json({"why": "für später"})
    assert capsys.readouterr().out == '{\n  "why": "für später"\n}\n'


def test_several_objects_are_one_list() -> None:
    """As kubectl prints them; one is itself."""
    assert as_one([{"a": 1}]) == {"a": 1}
    assert as_one([])["items"] == []
    assert as_one([{"a": 1}, {"b": 2}])["kind"] == "List"
