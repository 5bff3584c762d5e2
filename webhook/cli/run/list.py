"""`fairlead run list`: show Runs, each in a line."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.exit_codes import UNKNOWN
from webhook.cli.output import (
    TABLE_FORMS,
    output_option,
    print_error,
    print_json,
    print_notes,
    print_yaml,
)
from webhook.cli.run.cluster import several_options
from webhook.cli.short_help import Command
from webhook.cluster_objects.heartbeat import silence
from webhook.run_client.find_runs import find_runs
from webhook.run_client.rows import NOT_COUNTED, Row, reference, row_of
from webhook.shortening import harmless
from webhook.text.documents import as_list
from webhook.text.layout import table
from webhook.times import format_age

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.questions.live.live_objects import NoSuchObject
    from webhook.run_client.find_runs import Targets

# Seconds between two looks of --watch.
LOOK_SECONDS: Final = 2.0
_HEAD: Final = ("name", "phase", "ready", "restarts", "disruptions", "age")


# Phases whose message says nothing new.
_AS_WISHED: Final = ("Running", "Succeeded")


@click.command("list", cls=Command)
@several_options
@click.option("-w", "--watch", is_flag=True, help="Print each Run again when it changes.")
@output_option(
    "wide: with kind, and the message of all; json and yaml: the Runs as they are stored.",
    TABLE_FORMS,
    tables=True,
)
def command(targets: Targets, kubeconfig: Kubeconfig, watch: bool, output: str) -> None:
    """Show the Runs of a namespace, of all, or those that are named.

    \b
    Examples:
      fairlead run list
      fairlead run list -A -o wide
      fairlead run list -l team=vision -w

    \b
    Exit codes:
      0  shown, also if there are none
      2  wrong usage, no such Run, or the cluster did not answer
         (the others are shown)
      130  --watch was ended by Ctrl-C
    """
    if watch and output not in ("text", "wide"):
        raise click.UsageError("--watch prints text; for programs there is kubectl get runs -w")

    absent: list[NoSuchObject] = []

    async def show(client: Client) -> None:
        runs = await find_runs(client, targets, absent)
        if absent and not runs:
            return
        if runs and output in ("text", "wide"):
            print_notes(filter(None, [await silence(client, datetime.now(UTC))]))
        if not runs and output in ("text", "wide") and not watch:
            where = f" in namespace {targets.namespace}" if targets.namespace else ""
            print_notes([f"there are no Runs{where}"])
        elif watch:
            await _print_changes(client, targets, runs, wide=output == "wide")
        else:
            print_runs(runs, output, everywhere=not targets.namespace)

    kubeconfig.ask(show)
    for error in absent:
        print_error(error)
    if absent:
        sys.exit(UNKNOWN)


def print_runs(runs: Sequence[Mapping[str, Any]], output: str, *, everywhere: bool) -> None:
    """Print Runs in one of TABLE_FORMS."""
    if output == "json":
        print_json(as_list(runs))
    elif output == "yaml":
        print_yaml([as_list(runs)])
    elif output == "name":
        for run in runs:
            click.echo(reference(run))
    else:
        for line in lines(list(map(row_of, runs)), everywhere=everywhere, wide=output == "wide"):
            click.echo(line)


async def _print_changes(
    client: Client, targets: Targets, runs: Sequence[Mapping[str, Any]], *, wide: bool
) -> None:
    before: dict[tuple[str, str], Row] = {}
    while True:
        rows = [row_of(run) for run in runs]
        new = [row for row in rows if before.get((row.namespace, row.name)) != row]
        if new:
            for line in lines(new, everywhere=not targets.namespace, wide=wide):
                click.echo(line)
        before = {(row.namespace, row.name): row for row in rows}
        await asyncio.sleep(LOOK_SECONDS)
        runs = await find_runs(client, targets)


def _is_as_wished(row: Row) -> bool:
    return row.phase in _AS_WISHED and row.ready != NOT_COUNTED


def lines(rows: Sequence[Row], *, everywhere: bool, wide: bool) -> Iterator[str]:
    """Yield the Runs as a table, by namespace and name."""
    now = datetime.now(UTC)
    space = ("namespace",) if everywhere else ()
    more = ("kind", "message") if wide else ("message",)
    cells = [
        (
            *((row.namespace,) if everywhere else ()),
            row.name,
            row.phase,
            row.ready,
            str(row.restarts),
            str(row.disruptions),
            format_age(row.created, now),
            *((row.kind,) if wide else ()),
            harmless(row.message) if wide or not _is_as_wished(row) else "",
        )
        for row in sorted(rows)
    ]
    yield from table((*space, *_HEAD, *more), cells)
