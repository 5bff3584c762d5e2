"""`fairlead version`: of the command."""

from __future__ import annotations

import json
import platform

import click

import webhook
from webhook.cli.output_option import output_option


@click.command("version")
@output_option()
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
    if output == "json":
        click.echo(json.dumps(versions, indent=2))
        return
    for name, version in versions.items():
        click.echo(f"{name} {version}")
