"""Results in the form asked for on stdout; notes and errors on stderr."""

from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner

from tests.fast_yaml import load_yaml
from webhook.cli.output import (
    output_option,
    print_error,
    print_json,
    print_notes,
    print_result,
)
from webhook.errors import InvalidDocuments, UnreadableInput, WrongUsage
from webhook.policy.findings import Finding, Kind
from webhook.text.documents import REPORTS, as_one


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


def test_a_form_that_no_result_has_is_an_error() -> None:
    """It is never printed as text: a program would take the lines for what it asked for."""
    with click.Context(command), pytest.raises(NotImplementedError, match="toml"):
        print_result("toml", text=lambda: ["one"])


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


@click.command()
@output_option(formats=("text", "json", "yaml", "name"), report="Example")
@click.option("--error", type=click.Choice(["lines", "findings", "usage", "told", "late"]))
def reporting(output: str, error: str | None) -> None:
    """Print a report, or fail on the way to it."""
    finding = Finding("a.yaml", 3, 1, "spec.priority", "want a number")
    if error == "lines":
        raise UnreadableInput(["a: gone", "b: gone"])
    if error == "findings":
        raise InvalidDocuments([finding])
    if error == "usage":
        raise WrongUsage("give one")
    if error == "told":
        print_error(UnreadableInput(["a: gone"]))
        raise SystemExit(2)
    print_result(
        output, json=lambda: {"a": Kind.TIME, "b": 2**70}, names=lambda: ["x/a", "x/b", "x/a"]
    )
    if error == "late":
        print_error(UnreadableInput(["a: gone"]))


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_report_is_one_object_with_its_kind(form: str) -> None:
    """The same in both forms; an error that is told afterwards adds no second one."""
    for words in ((), ("--error", "late")):
        printed = CliRunner().invoke(reporting, ["-o", form, *words]).stdout
        head = {"apiVersion": REPORTS, "kind": "Example"}
        assert load_yaml(printed) == {**head, "a": "time", "b": 2**70}


@pytest.mark.parametrize(
    ("error", "messages"),
    [
        ("lines", ["a: gone", "b: gone"]),
        ("findings", ["want a number"]),
        ("told", ["a: gone"]),
    ],
)
def test_a_report_of_a_command_that_failed_has_the_errors(error: str, messages: list[str]) -> None:
    """Raised, or printed before the command ended."""
    report = json.loads(CliRunner().invoke(reporting, ["-o", "json", "--error", error]).stdout)
    assert [each["message"] for each in report["findings"]] == messages
    assert {each["severity"] for each in report["findings"]} == {"error"}
    if error == "findings":
        assert (report["findings"][0]["line"], report["findings"][0]["path"]) == (
            3,
            "spec.priority",
        )


def test_wrong_usage_and_text_have_no_report() -> None:
    """Nothing was asked that could be answered; people read the error."""
    assert CliRunner().invoke(reporting, ["-o", "json", "--error", "usage"]).stdout == ""
    assert CliRunner().invoke(reporting, ["--error", "lines"]).stdout == ""


def test_a_name_is_printed_once() -> None:
    """As kubectl names objects; for a loop of a shell."""
    assert CliRunner().invoke(reporting, ["-o", "name"]).stdout == "x/a\nx/b\n"
