"""Options with a fraction take finite numbers within bounds."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from tests.wording import Wording, mentions
from webhook.cli import fairlead
from webhook.cli.number import Number


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
    assert len(found) >= 13
    assert [each.name for each in found if not isinstance(each.type, Number)] == []


def test_both_bounds_are_values() -> None:
    """As the help shows them."""
    number = Number(0.1, 3600)
    assert [number.convert(text, None, None) for text in ("0.1", "3600", "2e1")] == [0.1, 3600, 20]


@pytest.mark.parametrize("written", ["nan", "-nan", "inf", "-inf", "1e18", "3600.1", "0.09", "-1"])
def test_what_is_not_within_the_bounds_is_refused(written: str, wording: Wording) -> None:
    """With the value found, and those allowed."""
    with pytest.raises(click.BadParameter) as refused:
        Number(0.1, 3600).convert(written, None, None)
    mentions(refused.value.message, written, "0.1 and 3600")
    wording(refused.value.message)
