"""Help fits a screen, with examples before options; `fairlead help` has all of it."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from tests.cli.every_command import ALL, Words
from webhook.cli import fairlead
from webhook.cli.short_help import MOST_LINES


@pytest.mark.parametrize("words", [(), *ALL], ids=" ".join)
def test_help_fits_a_screen(words: Words) -> None:
    """In a terminal of 80 columns."""
    shown = CliRunner().invoke(fairlead, [*words, "--help"]).stdout.splitlines()
    assert 0 < len(shown) <= MOST_LINES, "\n".join(shown)


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_examples_come_before_options(words: Words) -> None:
    """What the reader wants to do, first."""
    shown = CliRunner().invoke(fairlead, [*words, "--help"]).stdout
    before, found, _ = shown.partition("Examples:")
    assert found
    assert "Options:" not in before


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_the_whole_help_has_every_option(words: Words) -> None:
    """The short one says where it is."""
    whole = CliRunner().invoke(fairlead, ["help", *words]).stdout
    for parameter in ALL[words].params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.opts[-1] in whole
    shown = CliRunner().invoke(fairlead, [*words, "--help"], prog_name="fairlead").stdout
    assert f"`fairlead help {' '.join(words)}`" in shown
