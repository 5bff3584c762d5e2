"""`fairlead webhook status`: whether pods are sent to the webhook."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from webhook.cli.exit_codes import FAILED
from webhook.cli.options import cluster_options
from webhook.cli.output import output_option, print_result
from webhook.cli.short_help import Command

if TYPE_CHECKING:
    from webhook.kube.kubeconfig import Kubeconfig


@click.command("status", cls=Command)
@cluster_options
@output_option(report="WebhookStatus")
def command(kubeconfig: Kubeconfig, output: str) -> None:
    """Show whether pods are sent to the webhook, until when it is disabled, and which entries of
    its configuration have no rules.

    It reads the configuration alone. `fairlead doctor` also asks the webhook.

    \b
    Examples:
      fairlead webhook status
      fairlead webhook status -o json | jq .disabledUntil

    \b
    Exit codes:
      0  pods are sent to the webhook
      1  they are not, or some are not: there is no configuration, it is disabled, or an entry has
         no rules
      2  wrong usage, or the cluster did not answer
    """
    from webhook.cli.webhook.disable import local
    from webhook.installation.webhook_configuration import read_status

    status = kubeconfig.ask(read_status)
    if not status.entries:
        text = "not sent: there is no webhook configuration. `fairlead install` creates it"
    elif status.until:
        text = (
            f"not sent: disabled until {local(status.until)}. `fairlead webhook enable` ends it now"
        )
    elif status.silent:
        text = (
            f"not all sent: {', '.join(status.silent)} without rules. `fairlead webhook enable` "
            "restores them"
        )
    else:
        text = f"sent: all {len(status.entries)} entries of the configuration have rules"
    print_result(
        output,
        json=lambda: {
            "sent": status.sent,
            "disabledUntil": status.until.isoformat() if status.until else None,
            "entries": list(status.entries),
            "withoutRules": list(status.silent),
        },
        text=lambda: [f"pods are {text}"],
    )
    if not status.sent:
        sys.exit(FAILED)
