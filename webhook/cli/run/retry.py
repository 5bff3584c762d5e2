"""`fairlead run retry`: create the next try of a Run that is over."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from webhook.cli.output import output_option
from webhook.cli.run.cluster import RunName, target_options
from webhook.cli.run.creating import follow_to_end, print_created
from webhook.cli.short_help import Command

if TYPE_CHECKING:
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig


@click.command("retry", cls=Command)
@click.argument("name", type=RunName())
@click.option("--wait", is_flag=True, help="Wait until it ends; exit as its program did.")
@click.option("--logs", is_flag=True, help="As --wait, with the logs of all replicas.")
@target_options
@output_option("Print the new Run in this form.", ("name", "yaml", "json"), default=None)
def command(
    name: str,
    namespace: str,
    kubeconfig: Kubeconfig,
    wait: bool,
    logs: bool,
    output: str | None,
) -> None:
    """Create a Run of the same spec as the Run NAME, which is over.

    It is called NAME-2, or by the next number; a long name is cut. Its annotation
    fairlead.dev/retry-of names the Run before, and its label fairlead.dev/first-try the first one.
    FAIRLEAD_ATTEMPT goes on above that of all tries before, so a program that writes checkpoints
    under this number begins with the newest. Code of `fairlead run create --code` is copied.

    \b
    Examples:
      fairlead run retry mnist
      fairlead run retry mnist --logs
      fairlead run list -l fairlead.dev/first-try=mnist

    \b
    Exit codes:
      0  created; with --wait or --logs: it succeeded
      1  not created, such as for a Run that is not over; with --wait or --logs: it failed
      2  wrong usage, no such Run, or the cluster did not answer or refused
      130  ended by Ctrl-C; with --wait or --logs the Run goes on
    """
    within = namespace or kubeconfig.namespace()

    async def ask(client: Client) -> int:
        from webhook.run_client.retrying import retry

        stored = await retry(client, within, name)
        print_created(stored, output)
        if wait or logs:
            return await follow_to_end(client, within, stored["metadata"]["name"], logs=logs)
        return 0

    sys.exit(kubeconfig.ask(ask))
