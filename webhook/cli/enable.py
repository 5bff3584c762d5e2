"""`fairlead enable`: pods are sent to the webhook again."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import click

from webhook.cli.cluster_options import client_of, cluster_options
from webhook.cli.output_option import output_option

if TYPE_CHECKING:
    from pathlib import Path


@click.command("enable")
@cluster_options
@output_option()
def command(kubeconfig: Path | None, context: str, output: str) -> None:
    """Send pods to the webhook again, before the time of `fairlead disable` is over.

    The rules are put back as they were; those that were lost as every entry has them. Pods that
    were created meanwhile stay where they are: `fairlead doctor` lists them.

    \b
    Examples:
      fairlead enable
      fairlead enable -o json | jq .wasDisabled

    \b
    Exit codes:
      0  enabled, also if it was before
      1  not: no such configuration, no right to change it, or the cluster did not answer
      2  wrong usage
    """
    asyncio.run(_run(kubeconfig, context, output))


async def _run(kubeconfig: Path | None, context: str, output: str) -> None:
    from webhook.installation.disabling import enable

    async with client_of(kubeconfig, context) as client:
        found = await enable(client)
    if output == "json":
        document = {"wasDisabled": found.was_disabled, "lostRulesOf": list(found.lost)}
        click.echo(json.dumps(document, indent=2))
        return
    click.echo("enabled" if found.was_disabled else "it was enabled already: nothing to do")
    if found.lost:
        click.echo(f"the rules of {', '.join(found.lost)} were lost: every entry's own are back")
