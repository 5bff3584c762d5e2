"""An error that ends a command, told on stderr as every command tells it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import click

from webhook.cli.harmless import harmless

if TYPE_CHECKING:
    from webhook.errors import FairleadError


def fail(error: FairleadError, code: int) -> NoReturn:
    """Tell the error, and end with this exit code."""
    tell(error)
    sys.exit(code)


def tell(error: FairleadError) -> None:
    """Tell the error, where there is more to say before the command ends."""
    say("error", str(error))


def say(word: str, text: str) -> None:
    """Write a line about what is wrong to stderr."""
    click.secho(f"{word}: ", fg="red", bold=True, nl=False, err=True)
    click.echo(harmless(text), err=True)
