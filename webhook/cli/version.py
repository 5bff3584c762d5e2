"""`fairlead version`: print the version."""

from __future__ import annotations

import platform

import click

import webhook
from webhook.cli.output import output_option, print_result
from webhook.cli.short_help import Command


@click.command("version", cls=Command)
@output_option(report="Version")
def command(output: str) -> None:
    """Print the version of this command, and of the Python that runs it.

    Which versions run in a cluster, and whether they go together: `fairlead doctor --check
    versions`.

    \b
    Examples:
      fairlead version
      fairlead version -o json | jq -r .fairlead
    """
    versions = {"fairlead": webhook.__version__, "python": platform.python_version()}
    print_result(
        output,
        json=lambda: versions,
        text=lambda: (f"{name} {version}" for name, version in versions.items()),
    )
