"""`fairlead disable`: for a time no pod is sent to the webhook."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import click

from webhook.cli.cluster_options import client_of, cluster_options
from webhook.cli.duration import Duration, text
from webhook.cli.output_option import output_option

if TYPE_CHECKING:
    from pathlib import Path

# Less is said of nobody's clock: the request has taken its time, too.
_CLOCKS_DIFFER: Final = timedelta(seconds=30)


@click.command("disable")
@click.option(
    "--for",
    "span",
    type=Duration(timedelta(seconds=1), timedelta(hours=24)),
    required=True,
    metavar="TIME",
    help="How long: 15m, 90s, 1h30m; at most 24h. After that the controller puts the rules back.",
)
@cluster_options
@output_option()
def command(span: timedelta, kubeconfig: Path | None, context: str, output: str) -> None:
    """Send no pods to the webhook for a time: for the worst night.

    The rules of the MutatingWebhookConfiguration are taken away, by one write, and kept in an
    annotation of it. Pods of runs are then created as they come, without placement; nothing else
    changes. When the time is over the controller puts the rules back; `fairlead enable` does it
    before. A second call moves the end. Whoever applies the manifests meanwhile enables it.

    \b
    Examples:
      fairlead disable --for 15m
      fairlead disable --for 2h
      fairlead enable

    \b
    Exit codes:
      0  disabled
      1  not: no such configuration, no right to change it, or the cluster did not answer
      2  wrong usage
    """
    asyncio.run(_run(span, kubeconfig, context, output))


async def _run(span: timedelta, kubeconfig: Path | None, context: str, output: str) -> None:
    from webhook.installation.disabling import disable, leader

    async with client_of(kubeconfig, context) as client:
        now = datetime.now(UTC)
        until = (now + span).replace(microsecond=0)
        before, server_time = await disable(client, until)
        leads = await leader(client, datetime.now(UTC))
    if output == "json":
        document = {
            "disabledUntil": until.isoformat(),
            "disabledUntilBefore": before.isoformat() if before else None,
            "leader": leads or None,
            "serverTime": server_time.isoformat() if server_time else None,
        }
        click.echo(json.dumps(document, indent=2))
        return
    moved = f" (it was until {local(before)})" if before else ""
    click.echo(f"disabled for {text(span)}, until {local(until)}{moved}")
    click.echo("Pods of runs are created without placement until then. `fairlead enable` ends it.")
    if not leads:
        _warn(
            "no controller leads now: as long as none does, nobody puts the rules back but "
            "`fairlead enable`"
        )
    if server_time and abs(server_time - now) > _CLOCKS_DIFFER:
        _warn(
            f"this machine's clock and the API server's differ by {text(abs(server_time - now))}: "
            f"for the cluster it is {text(until - server_time)} from now"
            if until > server_time
            else "by the API server's clock that time is over already: set this machine's clock"
        )


def _warn(words: str) -> None:
    click.secho("warning: ", fg="yellow", nl=False, err=True)
    click.echo(words, err=True)


def local(time: datetime) -> str:
    """A time as a clock on the wall shows it here, with the day and the zone."""
    return time.astimezone().strftime("%a %H:%M:%S %Z (%Y-%m-%d)")
