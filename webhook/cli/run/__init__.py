"""`fairlead run`: create, list, follow, change, preview and convert Runs."""

from __future__ import annotations

from typing import Final

import click

from webhook.cli.lazy import LazyGroup

# Each is the attribute `command` of the module of its name in this package.
COMMANDS: Final[dict[str, str]] = {
    "convert": "Convert a Polyaxonfile or another engine's object to a Run.",
    "cost": "Show what Runs used, and an estimate of its price.",
    "create": "Create a Run from options or a file, and follow it.",
    "delete": "Delete Runs, with their pods.",
    "list": "Show Runs, each in a line.",
    "logs": "Print the logs of all replicas of a Run.",
    "resume": "Resume suspended Runs.",
    "retry": "Try a Run again that is over; its checkpoints are found.",
    "render": "Render a Run as the object of another engine, without a cluster.",
    "simulate": "Compare policies by what becomes of a Run on nodes that come and go.",
    "start": "Try a start again now, of Runs that start all at once.",
    "status": "Show a Run's phase and reason, its replicas and its last failure.",
    "suspend": "Suspend Runs: their pods are deleted, and their counts are kept.",
    "top": "Show what active Runs have and wait for, again and again.",
    "wait": "Wait until a Run is in a phase, or has a condition.",
}


_CHANGING: Final = ("suspend", "resume", "start", "delete")
_CHANGES: Final = {command: f"webhook.cli.run.changing:{command}" for command in _CHANGING}


@click.group("run", cls=LazyGroup, package=__name__, table=COMMANDS, elsewhere=_CHANGES)
def command() -> None:
    """Create, list, follow, suspend and delete Runs; convert and simulate them."""
