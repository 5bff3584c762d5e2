"""`fairlead certs rotate`: have the leaf, or the authority, made anew."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from webhook.cli.certs.installation import installation_of, installation_options
from webhook.cli.cluster_options import client_of, cluster_options
from webhook.cli.duration import Duration

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.controller.certificates.places import Installation


@click.command("rotate")
@click.option(
    "--authority",
    is_flag=True,
    help="The authority too, and with it the leaf. Default: the leaf alone.",
)
@click.option("--wait", is_flag=True, help="Say how it goes on, until it is done.")
@click.option(
    "--timeout",
    type=Duration(timedelta(seconds=1), timedelta(hours=24)),
    default="10m",
    show_default=True,
    metavar="TIME",
    help="How long to wait: 90s, 10m. It goes on without you.",
)
@installation_options
@cluster_options
def command(
    authority: bool,
    wait: bool,
    timeout: timedelta,
    namespace: str,
    webhook_configuration: str,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """Ask the controller for a new leaf, or a new authority; it does the rest.

    The request is an annotation of the Secret. Nobody is refused meanwhile: a new authority signs
    once every API server trusts it, and the old one leaves once every replica serves the new leaf,
    which takes about a minute. If the authority's key is in wrong hands, this is the cure.

    \b
    Examples:
      fairlead certs rotate
      fairlead certs rotate --authority --wait

    \b
    Exit codes:
      0  asked for; with --wait: done
      1  no such Secret, no right to change it, not done in time, or the cluster did not answer
      2  wrong usage
    """
    installation = installation_of(namespace, webhook_configuration)
    limit = timeout if wait else None
    asyncio.run(_rotate(installation, kubeconfig, context, authority=authority, limit=limit))


async def _rotate(
    installation: Installation,
    kubeconfig: Path | None,
    context: str,
    *,
    authority: bool,
    limit: timedelta | None,
) -> None:
    from webhook.cli.certs.request import ask, progress

    what = "authority" if authority else "leaf"
    async with client_of(kubeconfig, context) as client:
        before = await ask(client, installation, datetime.now(UTC), authority=authority)
        click.echo(f"asked for a new {what}")
        if limit is None:
            click.echo("`fairlead certs status` shows how it goes on.")
            return
        async for line in progress(client, installation, before, limit, authority=authority):
            click.echo(line)
    click.echo(f"done: a new {what} is in use")
