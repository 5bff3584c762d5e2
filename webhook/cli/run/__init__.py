"""`fairlead run`: preview, render, convert, inspect and log Runs."""

from __future__ import annotations

from typing import Final

import click

from webhook.cli.lazy import LazyGroup

# Each is the attribute `command` of the module of its name in this package.
COMMANDS: Final[dict[str, str]] = {
    "convert": "Convert a Polyaxonfile or another engine's object to a Run.",
    "cost": "Show what Runs used, and an estimate of its price.",
    "logs": "Print the logs of all replicas of a Run.",
    "preview": "Preview a Run's objects and placement, without a cluster.",
    "render": "Render a Run as the object of another engine, without a cluster.",
    "status": "Show a Run's phase and reason, its replicas and its last failure.",
}


@click.group("run", cls=LazyGroup, package=__name__, table=COMMANDS)
def command() -> None:
    """Preview, render, convert, inspect and log Runs."""
