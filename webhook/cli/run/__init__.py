"""`fairlead run`: what a person at a terminal does with Runs."""

from __future__ import annotations

from typing import Final

import click

from webhook.cli.lazy import LazyGroup

# Each is the attribute `command` of the module of its name in this package.
COMMANDS: Final[dict[str, str]] = {
    "convert": "A Polyaxonfile as a Run.",
    "logs": "What the replicas of a Run write, all of them at once.",
    "preview": "What a Run would become, without a cluster.",
    "status": "How a Run is: its phase and why, its replicas, its last failure.",
}


@click.group("run", cls=LazyGroup, package=__name__, table=COMMANDS)
def command() -> None:
    """Runs: what they would become, how they are, and what they write."""
