"""Values of options: paths or the cluster, finite numbers within bounds, and durations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner

from tests.cli.every_command import ALL, Words
from tests.wording import mentions
from webhook.cli import fairlead
from webhook.cli.controller import command as controller
from webhook.cli.options import Duration, text
from webhook.cli.serve import command as serve
from webhook.controller.settings import ControllerSettings
from webhook.kube.kubeconfig import Kubeconfig
from webhook.questions.where import CLUSTER, Where, paths_of
from webhook.server.settings import ServeSettings
from webhook.settings import Number, setting, settings_options

A, B = Path("a"), Path("b")


@pytest.mark.parametrize(
    ("policies", "paths"), [((), []), ((CLUSTER,), []), ((A, B), [A, B]), ((A,), [A])]
)
def test_without_a_path_the_cluster_s_policies_are_meant(
    policies: tuple[Where, ...], paths: list[Path]
) -> None:
    """Whether the word stands there or nothing."""
    assert paths_of(policies) == paths


def options(command: click.Command) -> Iterator[click.Parameter]:
    """Every parameter of a command and of those below it."""
    yield from command.params
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            if below := command.get_command(context, name):
                yield from options(below)


def test_every_option_with_a_fraction_has_bounds() -> None:
    """click's own types let nan through, and most of them infinity and 1e300."""
    of_floats = (click.types.FloatParamType, click.FloatRange)
    found = [each for each in options(fairlead) if isinstance(each.type, of_floats)]
    assert len(found) >= 11
    assert [each.name for each in found if not isinstance(each.type, Number)] == []


VALUES: Final = [
    (words, parameter)
    for words, command in ALL.items()
    for parameter in command.params
    if not (isinstance(parameter, click.Option) and parameter.is_flag)
]


@pytest.mark.parametrize(
    ("words", "parameter"), VALUES, ids=[f"{' '.join(words)} {each.name}" for words, each in VALUES]
)
def test_no_value_is_empty(words: Words, parameter: click.Parameter) -> None:
    """A shell variable that is not set is wrong usage, and not the current folder or a default."""
    if isinstance(parameter, click.Argument):
        arguments = [each for each in ALL[words].params if isinstance(each, click.Argument)]
        given = ["a"] * arguments.index(parameter) + [""]
        name = parameter.make_metavar(click.Context(ALL[words]))
    else:
        given, name = [f"{parameter.opts[-1]}="], parameter.opts[-1]
    done = CliRunner().invoke(fairlead, [*words, *given])
    assert done.exit_code == 2, done.output
    mentions(done.stderr, name, "is empty")


def test_help_needs_no_values() -> None:
    """Who asks for help gets it, whatever else stands there."""
    assert CliRunner().invoke(fairlead, ["diff", "", "--help"]).exit_code == 0


def test_the_command_of_a_run_may_have_empty_arguments() -> None:
    """It is what follows `--`."""
    line = ["run", "create", "mnist", "--image", "a", "--dry-run", "--", "python", ""]
    done = CliRunner().invoke(fairlead, line)
    assert done.exit_code == 0, done.output
    assert "- ''" in done.stdout


def test_both_bounds_are_values() -> None:
    """As the help shows them."""
    number = Number(0.1, 3600)
    assert [number.convert(text, None, None) for text in ("0.1", "3600", "2e1")] == [0.1, 3600, 20]


SPAN = Duration(timedelta(seconds=1), timedelta(hours=24))


@pytest.mark.parametrize(
    ("written", "seconds", "read"),
    [
        ("15m", 900, "15 min"),
        ("90s", 90, "1 min 30 s"),
        ("1h30m", 5400, "1 h 30 min"),
        ("24h", 86400, "24 h"),
        ("1s", 1, "1 s"),
    ],
)
def test_spans_are_read_and_written(written: str, seconds: int, read: str) -> None:
    """In hours, minutes and seconds."""
    span = SPAN.convert(written, None, None)
    assert span == timedelta(seconds=seconds)
    assert text(span) == read
    assert SPAN.convert(span, None, None) is span


def test_nothing_is_nothing() -> None:
    """Not the empty text."""
    assert text(timedelta()) == "0 s"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Of a process."""

    port: int = setting("--port", type=int, default=80, show_default=True, help="Where.")
    wide: bool = setting("--wide/--narrow", default=True, help="How.")
    others: tuple[str, ...] = setting("--name", multiple=True, help="Who.")


@click.command()
@settings_options(Settings)
def command(settings: Settings) -> None:
    """Print settings."""
    click.echo(repr(settings))


def test_settings_are_read_from_their_options() -> None:
    """By the field's name, whatever the option is called; defaults where none is given."""
    given = CliRunner().invoke(command, ["--port", "81", "--narrow", "--name=a", "--name=b"])
    assert given.stdout == f"{Settings(port=81, wide=False, others=('a', 'b'))}\n"
    assert CliRunner().invoke(command, []).stdout == f"{Settings(port=80, wide=True, others=())}\n"


def test_help_lists_settings_in_the_order_of_the_fields() -> None:
    """Under the command's own text."""
    text = CliRunner().invoke(command, ["--help"]).stdout
    places = [text.index(each) for each in ("Print settings.", "--port", "--wide", "--name")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("process", "settings"),
    [(serve, ServeSettings), (controller, ControllerSettings)],
    ids=["serve", "controller"],
)
def test_a_process_has_no_option_that_is_not_a_setting(
    process: click.Command, settings: type[ServeSettings] | type[ControllerSettings]
) -> None:
    """Its options are its settings' fields, in their order, each with a help text."""
    assert [each.name for each in process.params] == [each.name for each in fields(settings)]


def test_without_a_kubeconfig_that_of_the_home_directory_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As kubectl does; $KUBECONFIG goes before it."""
    (tmp_path / ".kube").mkdir()
    file = tmp_path / ".kube" / "config"
    file.write_text("")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert Kubeconfig().file == file
    monkeypatch.setenv("KUBECONFIG", "elsewhere")
    assert Kubeconfig().file is None
