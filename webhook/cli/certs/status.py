"""`fairlead certs status`: which certificates there are, who trusts them, and what is due."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

import click

from webhook.cli.certs.installation import installation_of, installation_options
from webhook.cli.cluster_options import client_of, cluster_options
from webhook.cli.failing import fail
from webhook.cli.output_option import output_option
from webhook.errors import FairleadError

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.cli.certs.sight import Sight


@click.command("status")
@installation_options
@cluster_options
@output_option("What to print. JSON has whole serial numbers, and times as they are.")
def command(
    namespace: str,
    webhook_configuration: str,
    kubeconfig: Path | None,
    context: str,
    output: str,
) -> None:
    """Show the webhook's certificates: the authority, the leaf, and every caBundle.

    The authority's Secret holds its key, so that you may not be allowed to read it: then its phase
    cannot be told, and everything else is. No key is ever printed.

    \b
    Phases of the authority:
      steady     nothing is under way
      staged     a new one is made, and not everywhere in the caBundles yet
      published  it is, and every API server gets the time to see it
      retiring   it signs, and the old one stays until every replica serves the new leaf
      absent     there is none that can be read

    \b
    Examples:
      fairlead certs status
      fairlead certs status -o json | jq -r .leaf.expires

    \b
    Exit codes:
      0  as it should be
      1  something is wrong
      2  wrong usage, or the cluster did not answer
    """
    try:
        sight = asyncio.run(_look(namespace, webhook_configuration, kubeconfig, context))
    except FairleadError as error:
        fail(error, 2)
    from datetime import UTC, datetime

    from webhook.cli.certs import report_text
    from webhook.cli.certs.report import document

    now = datetime.now(UTC)
    told = document(sight, now)
    if output == "json":
        click.echo(json.dumps(told, indent=2))
    else:
        for line in report_text.lines(told, now):
            click.echo(line)
    if told["problems"]:
        sys.exit(1)


async def _look(namespace: str, configuration: str, kubeconfig: Path | None, context: str) -> Sight:
    from webhook.cli.certs.sight import look

    async with client_of(kubeconfig, context) as client:
        return await look(client, installation_of(namespace, configuration))
