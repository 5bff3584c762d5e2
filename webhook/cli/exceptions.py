"""`fairlead exceptions`: which are in force, until when, and how many pods they let pass."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from webhook.cli import noting
from webhook.cli.cluster_options import client_of, cluster_options
from webhook.cli.failing import fail
from webhook.cli.output_option import output_option
from webhook.cli.where import WhereType, paths_of
from webhook.errors import FairleadError, UnreadableInput

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.cli.exceptions_found import Found
    from webhook.cli.where import Where


@click.command("exceptions")
@click.option(
    "--policies",
    multiple=True,
    type=WhereType(folders=True),
    metavar="PATH",
    help="Files or folders with exceptions, or the word cluster. Repeatable.  [default: cluster]",
)
@click.option("--in-force", is_flag=True, help="Leave out those that have ended.")
@cluster_options
@output_option("Text for people, or JSON for programs.")
def command(
    policies: tuple[Where, ...],
    in_force: bool,
    kubeconfig: Path | None,
    context: str,
    output: str,
) -> None:
    """Show exceptions: which policies they set aside, in which pods, until when, and why.

    Of a cluster's exceptions also how many of its live pods have passed by each: those whose stamp
    names it. A pod that passed keeps that stamp when the exception has ended. Exceptions that end
    soonest come first, and those that have ended last. Where the webhook serves files, name them
    with --policies.

    \b
    Examples:
      fairlead exceptions
      fairlead exceptions --in-force
      fairlead exceptions --policies policies/
      fairlead exceptions -o json | jq '.exceptions[] | select(.inForce | not) | .name'

    \b
    Exit codes:
      0  they are shown, also if there are none
      2  wrong usage, a file or a document that cannot be read (all others are shown), or the
         cluster did not answer
    """
    import json
    from datetime import UTC, datetime

    from webhook.cli.exceptions_found import of_files
    from webhook.cli.exceptions_text import document, lines

    paths = paths_of(policies)
    try:
        found = of_files(paths) if paths else asyncio.run(_asked(kubeconfig, context))
    except FairleadError as error:
        fail(error, 2)
    now = datetime.now(UTC)
    shown = found.ordered(now, in_force=in_force)
    if output == "json":
        click.echo(json.dumps(document(found, shown, now), indent=2, ensure_ascii=False))
    else:
        for line in lines(found, shown, now):
            click.echo(line)
        noting.tell(found.notes)
    if found.wrong:
        fail(UnreadableInput(found.wrong), 2)


async def _asked(kubeconfig: Path | None, context: str) -> Found:
    from webhook.cli.exceptions_found import of_cluster

    async with client_of(kubeconfig, context) as client:
        return await of_cluster(client)
