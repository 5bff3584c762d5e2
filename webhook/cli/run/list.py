"""`fairlead run list`: show Runs, each in a line."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from webhook import names
from webhook.cli.exit_codes import INTERRUPTED
from webhook.cli.layout import table
from webhook.cli.output import as_list, output_option, print_json, print_notes, print_yaml
from webhook.cli.run.cluster import find_runs, several_options
from webhook.shortening import cut, harmless
from webhook.times import format_age

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.cli.options import Kubeconfig
    from webhook.cli.run.cluster import Targets
    from webhook.controller.node_health import Nodes
    from webhook.kube.client import Client

# Seconds between two looks of --watch.
PERIOD: Final = 2.0
_MOST_TEXT: Final = 300
_HEAD: Final = ("name", "phase", "ready", "restarts", "disruptions", "age")


class Row(NamedTuple):
    """A Run in a list, as its status says."""

    namespace: str
    name: str
    kind: str
    phase: str
    ready: str
    restarts: int
    disruptions: int
    message: str
    created: str


def row_of(raw: Mapping[str, Any]) -> Row:
    """Return the row of a raw Run."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    kind = str(spec.get("kind") or names.DEFAULT_KIND)
    framework = spec.get("framework")
    return Row(
        namespace=metadata["namespace"],
        name=metadata["name"],
        kind=f"{kind}, {framework}" if framework else kind,
        phase=str(status.get("phase") or "Pending"),
        ready=str(status.get("replicasReady") or ""),
        restarts=int(status.get("restarts") or 0),
        disruptions=int(status.get("disruptions") or 0),
        message=cut(str(status.get("message") or ""), _MOST_TEXT),
        created=str(metadata.get("creationTimestamp") or ""),
    )


def on_classes(known: Nodes, nodes: Iterable[str]) -> str:
    """Return how many of these are of which capacity class, as far as they have one: `spot 3`.

    nodes: the node of each pod; empty for one without.
    """
    found = (known.get(each) for each in nodes if each)
    counts = Counter(each.capacity_class for each in found if each and each.capacity_class)
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def reference(raw: Mapping[str, Any]) -> str:
    """Return the Run as kubectl names it: run.fairlead.dev/mnist."""
    return f"{names.RUN_KIND.lower()}.{names.GROUP}/{raw['metadata']['name']}"


# Phases whose message says nothing new.
_AS_WISHED: Final = ("Running", "Succeeded")
# How Runs are printed.
FORMS: Final = ("text", "wide", "json", "yaml", "name")


@click.command("list")
@several_options
@click.option("-w", "--watch", is_flag=True, help="Print each Run again when it changes.")
@output_option(
    "wide: with kind, and the message of all; json and yaml: the Runs as they are stored.", FORMS
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
      1  no such Run, or the cluster did not answer
      2  wrong usage
    """
    if watch and output not in ("text", "wide"):
        raise click.UsageError("--watch prints text; for programs there is kubectl get runs -w")

    async def show(client: Client) -> None:
        runs = await find_runs(client, targets)
        if not runs and output in ("text", "wide") and not watch:
            where = f" in namespace {targets.namespace}" if targets.namespace else ""
            print_notes([f"there are no Runs{where}"])
        elif watch:
            await _print_changes(client, targets, runs, wide=output == "wide")
        else:
            print_runs(runs, output, everywhere=not targets.namespace)

    try:
        kubeconfig.ask(show)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def print_runs(runs: Sequence[Mapping[str, Any]], output: str, *, everywhere: bool) -> None:
    """Print Runs in one of FORMS."""
    if output == "json":
        print_json(as_list(runs))
    elif output == "yaml":
        print_yaml([as_list(runs)])
    elif output == "name":
        for each in runs:
            click.echo(reference(each))
    else:
        for line in lines(list(map(row_of, runs)), everywhere=everywhere, wide=output == "wide"):
            click.echo(line)


async def _print_changes(
    client: Client, targets: Targets, runs: Sequence[Mapping[str, Any]], *, wide: bool
) -> None:
    before: dict[tuple[str, str], Row] = {}
    while True:
        rows = [row_of(each) for each in runs]
        new = [each for each in rows if before.get((each.namespace, each.name)) != each]
        if new:
            for line in lines(new, everywhere=not targets.namespace, wide=wide):
                click.echo(line)
        before = {(each.namespace, each.name): each for each in rows}
        await asyncio.sleep(PERIOD)
        runs = await find_runs(client, targets)


def lines(rows: Sequence[Row], *, everywhere: bool, wide: bool) -> Iterator[str]:
    """Yield the Runs as a table, by namespace and name."""
    now = datetime.now(UTC)
    space = ("namespace",) if everywhere else ()
    more = ("kind", "message") if wide else ("message",)
    found = [
        (
            *((each.namespace,) if everywhere else ()),
            each.name,
            each.phase,
            each.ready,
            str(each.restarts),
            str(each.disruptions),
            format_age(each.created, now),
            *((each.kind,) if wide else ()),
            harmless(each.message) if wide or each.phase not in _AS_WISHED else "",
        )
        for each in sorted(rows)
    ]
    yield from table([(*space, *_HEAD, *more), *found], 0)
