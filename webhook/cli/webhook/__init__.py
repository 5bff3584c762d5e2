"""`fairlead webhook`: whether pods are sent to the webhook, and with which certificates."""

from __future__ import annotations

from typing import Final

import click

from webhook.cli.lazy import LazyGroup

COMMANDS: Final[dict[str, str]] = {
    "certs": "Show certificates, which clients trust them, and what is due.",
    "disable": "Stop sending pods to the webhook for a time.",
    "enable": "Send pods to the webhook again.",
    "rotate": "Request a new leaf or a new authority.",
    "status": "Show whether pods are sent to the webhook.",
}


@click.group(
    "webhook",
    cls=LazyGroup,
    package=__name__,
    table=COMMANDS,
    elsewhere={"rotate": "webhook.cli.webhook.certs:rotate"},
)
def command() -> None:
    """Show, disable or enable the webhook in a cluster, and rotate its certificates.

    \b
    In an emergency:
      fairlead webhook disable --for 15m
      fairlead webhook enable
    """
