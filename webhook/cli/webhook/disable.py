"""`fairlead webhook disable`: stop sending pods to the webhook for a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import click

from webhook.cli.options import Duration, cluster_options, text
from webhook.cli.output import output_option, print_result, say
from webhook.cli.short_help import Command

if TYPE_CHECKING:
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig

# Smaller differences may come from the duration of the request.
_CLOCKS_DIFFER: Final = timedelta(seconds=30)


@click.command("disable", cls=Command)
@click.option(
    "--for",
    "span",
    type=Duration(timedelta(seconds=1), timedelta(hours=24)),
    required=True,
    metavar="TIME",
    help="How long: 15m, 90s, 1h30m; at most 24h. After that the controller restores the rules.",
)
@cluster_options
@output_option(report="Disabled")
def command(span: timedelta, kubeconfig: Kubeconfig, output: str) -> None:
    """Stop sending pods to the webhook for a time, in an emergency.

    The command moves the rules of the MutatingWebhookConfiguration into an annotation, in one
    write. Pods of runs are then created without placement; nothing else changes. When the time is
    over, the controller restores the rules; `fairlead webhook enable` restores them earlier. A
    second call changes the end. Applying the manifests also enables the webhook.

    \b
    Examples:
      fairlead webhook disable --for 15m
      fairlead webhook disable --for 2h
      fairlead webhook enable

    \b
    Exit codes:
      0  disabled
      1  there is no such configuration
      2  wrong usage, or the cluster did not answer or refused
    """
    from webhook.installation.webhook_configuration import disable, leader

    async def write(
        client: Client,
    ) -> tuple[datetime, datetime, datetime | None, datetime | None, str]:
        now = datetime.now(UTC)
        until = (now + span).replace(microsecond=0)
        return now, until, *await disable(client, until), await leader(client, datetime.now(UTC))

    now, until, before, server_time, leads = kubeconfig.ask(write)
    moved = f" (it was until {local(before)})" if before else ""
    print_result(
        output,
        json=lambda: {
            "disabledUntil": until.isoformat(),
            "disabledUntilBefore": before.isoformat() if before else None,
            "leader": leads or None,
            "serverTime": server_time.isoformat() if server_time else None,
        },
        text=lambda: (
            f"disabled for {text(span)}, until {local(until)}{moved}",
            (
                "Pods of runs are created without placement until then. `fairlead webhook enable` "
                "ends it."
            ),
        ),
    )
    if output == "text":
        _print_warnings(until, now, server_time, leads=bool(leads))


def _print_warnings(
    until: datetime, now: datetime, server_time: datetime | None, *, leads: bool
) -> None:
    if not leads:
        say(
            "warning",
            "no controller leads now: until one does, only `fairlead webhook enable` restores the "
            "rules",
            "yellow",
        )
    if server_time and abs(server_time - now) > _CLOCKS_DIFFER:
        say(
            "warning",
            f"this machine's clock and the API server's differ by {text(abs(server_time - now))}: "
            f"for the cluster it is {text(until - server_time)} from now"
            if until > server_time
            else "by the API server's clock that time is over already: set this machine's clock",
            "yellow",
        )


def local(time: datetime) -> str:
    """Return a time in the local time zone, with the day and the zone."""
    return time.astimezone().strftime("%a %H:%M:%S %Z (%Y-%m-%d)")
