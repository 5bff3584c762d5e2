"""What is worth knowing beside an answer, told on stderr as every command tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.cli.harmless import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable


def tell(notes: Iterable[str]) -> None:
    """Tell each note, in order."""
    for note in notes:
        click.secho("note: ", fg="yellow", bold=True, nl=False, err=True)
        click.echo(harmless(note), err=True)
