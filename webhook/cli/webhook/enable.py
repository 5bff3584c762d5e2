"""`fairlead webhook enable`: send pods to the webhook again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.cli.options import cluster_options
from webhook.cli.output import output_option, print_result
from webhook.cli.short_help import Command

if TYPE_CHECKING:
    from webhook.kube.kubeconfig import Kubeconfig


@click.command("enable", cls=Command)
@cluster_options
@output_option(report="Enabled")
def command(kubeconfig: Kubeconfig, output: str) -> None:
    """Send pods to the webhook again, before the time of `fairlead webhook disable` is over.

    The rules are restored as they were; lost rules are replaced by the default rules. Pods that
    were created meanwhile stay as they are: `fairlead doctor` lists them.

    \b
    Examples:
      fairlead webhook enable
      fairlead webhook enable -o json | jq .wasDisabled

    \b
    Exit codes:
      0  enabled, also if it already was
      1  there is no such configuration
      2  wrong usage, or the cluster did not answer or refused
    """
    from webhook.installation.webhook_configuration import enable

    result = kubeconfig.ask(enable)
    lines = ["enabled" if result.was_disabled else "it was enabled already: nothing to do"]
    if result.lost:
        lines.append(f"the rules of {', '.join(result.lost)} were lost: every entry's own are back")
    print_result(
        output,
        json=lambda: {"wasDisabled": result.was_disabled, "lostRulesOf": list(result.lost)},
        text=lambda: lines,
    )
