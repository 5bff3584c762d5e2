"""`fairlead run retry`: create the next try of a Run that is over."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from webhook.cli.run.cluster import RunName
from webhook.cli.run.creating import conclude, following_options
from webhook.cli.short_help import Command

if TYPE_CHECKING:
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig


@click.command("retry", cls=Command)
@click.argument("name", type=RunName())
@following_options
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
        return await conclude(client, stored, output, wait=wait, logs=logs)

    sys.exit(kubeconfig.ask(ask))
