"""`fairlead run status`: show the state of a Run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.output import READER_FORMS, output_option, print_notes, print_result
from webhook.cli.run.cluster import RunName, target_options
from webhook.cli.short_help import Command

if TYPE_CHECKING:
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig

# Seconds between two looks of --watch.
LOOK_SECONDS: Final = 2.0


@click.command("status", cls=Command)
@click.argument("name", type=RunName())
@target_options
@click.option(
    "-a",
    "--all",
    "everything",
    is_flag=True,
    help="Show every replica in its own line.",
)
@click.option(
    "-w", "--watch", is_flag=True, help="Print it again when it changes, until the Run ends."
)
@output_option(
    "json and yaml: the status as it is, and every replica. svg: when the run was active and "
    "replicas were down, as a picture for reports.",
    (*READER_FORMS, "svg"),
    report="RunReport",
)
def command(
    name: str,
    namespace: str,
    kubeconfig: Kubeconfig,
    everything: bool,
    watch: bool,
    output: str,
) -> None:
    """Show the phase of the Run NAME and its reason, its replicas, and its last failure.

    In a large run, replicas without problems are grouped. A replica that waits shows the reason
    from the scheduler or the kubelet. Capacity and node pool come from the nodes' labels, if you
    may read nodes.

    \b
    Examples:
      fairlead run status mnist
      fairlead run status mnist -n research --watch
      fairlead run status mnist -o json | jq .status.phase
      fairlead run status mnist -o svg > mnist.svg

    \b
    Exit codes:
      0  shown, whatever the Run's phase
      2  wrong usage, no such Run, or the cluster did not answer
      130  --watch was ended by Ctrl-C
    """
    if watch and output != "text":
        raise click.UsageError("--watch prints text; for programs there is kubectl get run -w")
    from datetime import UTC, datetime

    from webhook.cluster_objects.heartbeat import silence
    from webhook.run_client import status_text, timeline
    from webhook.run_client.report import fetch
    from webhook.run_client.rows import run_reference

    within = namespace or kubeconfig.namespace()

    async def show(client: Client) -> None:
        report = await fetch(client, within, name)
        silent = "" if report.ended else await silence(client, datetime.now(UTC))
        print_notes(filter(None, [report.unread, silent]))

        def lines() -> list[str]:
            now = datetime.now(UTC)
            if output == "svg":
                return [timeline.svg(report, now)]
            return list(status_text.lines(report, now, everything=everything))

        def document() -> dict[str, Any]:
            return {"answer": status_text.answer_of(report, datetime.now(UTC)), **report.document()}

        print_result(output, json=document, text=lines, names=lambda: [run_reference(name)])
        while watch and not report.ended:
            await asyncio.sleep(LOOK_SECONDS)
            before, report = report, await fetch(client, within, name)
            if report != before:
                click.echo()
                click.clear()
                print_result(output, json=document, text=lines, names=lambda: [run_reference(name)])

    kubeconfig.ask(show)
