"""`fairlead run status`: how a Run is, for people."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Final

import click

from webhook.cli.output_option import output_option
from webhook.cli.run.cluster import Target, connected, target_options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# Seconds between two looks of --watch.
PERIOD: Final = 2.0


@click.command("status")
@click.argument("name")
@target_options
@click.option(
    "-a",
    "--all",
    "everything",
    is_flag=True,
    help="Every replica in a line of its own, however many there are.",
)
@click.option("-w", "--watch", is_flag=True, help="Print it anew when it changes, until it ends.")
@output_option("What to print. JSON has the status as it is, and every replica.")
def command(
    name: str,
    namespace: str,
    kubeconfig: Path | None,
    context: str,
    everything: bool,
    watch: bool,
    output: str,
) -> None:
    """Show how the Run NAME is: its phase and why, its replicas, and its last failure.

    Of a large run those replicas that are as they should be are put together; a replica that waits
    says why, in the words of the scheduler or the kubelet. Capacity and node pool are told by the
    nodes' labels, if you may see nodes.

    \b
    Examples:
      fairlead run status mnist
      fairlead run status mnist -n research --watch
      fairlead run status mnist -o json | jq .status.phase

    \b
    Exit codes:
      0  shown, whatever the Run's phase
      1  no such Run, or the cluster did not answer
      2  wrong usage
    """
    if watch and output == "json":
        raise click.UsageError("--watch prints text; for programs there is kubectl get run -w")
    target = Target(kubeconfig, context, namespace)
    try:
        asyncio.run(_show(target, name, everything=everything, watch=watch, output=output))
    except KeyboardInterrupt:
        sys.exit(130)


async def _show(target: Target, name: str, *, everything: bool, watch: bool, output: str) -> None:
    from datetime import UTC, datetime

    from webhook.cli.run import status_text
    from webhook.cli.run.report import fetch

    async with connected(target) as (client, namespace):
        report = await fetch(client, namespace, name)
        if output == "json":
            click.echo(json.dumps(report.document(), indent=2, ensure_ascii=False))
            return
        _print(list(status_text.lines(report, datetime.now(UTC), everything=everything)))
        while watch and not report.ended:
            await asyncio.sleep(PERIOD)
            before, report = report, await fetch(client, namespace, name)
            if report != before:
                click.echo()
                click.clear()
                _print(list(status_text.lines(report, datetime.now(UTC), everything=everything)))


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(line)
