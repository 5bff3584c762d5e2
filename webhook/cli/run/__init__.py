"""`fairlead run`: what a person at a terminal does with Runs."""

from __future__ import annotations

from typing import Final

import click

from webhook.cli.lazy import LazyGroup

# Each is the attribute `command` of the module of its name in this package.
COMMANDS: Final[dict[str, str]] = {
    "convert": "A Polyaxonfile as a Run.",
}


@click.group("run", cls=LazyGroup, package=__name__, table=COMMANDS)
def command() -> None:
    """Runs: what they would become, how they are, and what they write."""
