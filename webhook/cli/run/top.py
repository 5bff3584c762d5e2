"""`fairlead run top`: what Runs have and wait for, again and again."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from webhook import names
from webhook.cli.output import TABLE_FORMS, output_option, print_notes, print_result
from webhook.cli.run.cluster import several_options
from webhook.cli.short_help import Command
from webhook.run_client.find_runs import find_runs
from webhook.run_client.rows import on_classes, reference, row_of
from webhook.shortening import harmless
from webhook.text.layout import table

if TYPE_CHECKING:
    from webhook.controller.observed_state import ObservedState
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.run_client.find_runs import Targets

# Seconds between two looks.
LOOK_SECONDS: Final = 2.0
_HEAD: Final = ("namespace", "run", "phase", "ready", "nodes", "on nodes of class", "waits for")
_REPLICAS: Final = ("replica", "state", "node", "class", "waits for")


@click.command("top", cls=Command)
@several_options
@click.option("--once", is_flag=True, help="Print it once. Default, if the output is no terminal.")
@output_option(
    "Others than text and wide print once; wide also has the messages of Runs that run.",
    TABLE_FORMS,
    report="RunTop",
    tables=True,
)
def command(targets: Targets, kubeconfig: Kubeconfig, once: bool, output: str) -> None:
    """Show the Runs that are not over: replicas, nodes, classes, and what each waits for.

    The table is shown again as it changes, until Ctrl-C.

    \b
    Examples:
      fairlead run top
      fairlead run top -A
      fairlead run top mnist --once       (each of its replicas)

    \b
    Exit codes:
      0    shown
      2    wrong usage, no such Run, or the cluster did not answer
      130  ended by Ctrl-C
    """

    async def show(client: Client) -> None:
        before: _Table | None = None
        while True:
            notes: list[str] = []
            run_table = await _table(client, targets, notes, wide=output == "wide")
            if run_table != before:
                if before:
                    click.clear()
                print_result(
                    output, json=run_table.document, text=run_table.lines, names=run_table.names
                )
                print_notes(notes)
                before = run_table
            if once or output not in ("text", "wide") or not sys.stdout.isatty():
                return
            await asyncio.sleep(LOOK_SECONDS)

    kubeconfig.ask(show)


class _Table(NamedTuple):
    """What there is now: Runs, or the replicas of one; `about` is the line before it, or none."""

    about: str
    what: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    references: list[str]

    def names(self) -> list[str]:
        """Return the Runs as kubectl names them."""
        return self.references

    def document(self) -> dict[str, Any]:
        """Return the rows for programs, by the names of the columns: waitsFor."""
        keys = [*map(_key, self.head)]
        return {self.what: [dict(zip(keys, row, strict=True)) for row in self.rows]}

    def lines(self) -> list[str]:
        """Return the table."""
        return [*filter(None, [self.about]), *table(self.head, self.rows)]


def _replicas(state: ObservedState, raw: dict[str, Any]) -> _Table:
    """Return a row for each pod of the Run."""
    row = row_of(raw)
    pods = state.observed(row.namespace, raw["metadata"]["uid"]).pods.values()
    rows: list[tuple[str, ...]] = [
        (
            pod.name.removeprefix(f"{row.name}-"),
            "Terminating" if pod.deleted_at else pod.phase,
            pod.node,
            node.capacity_class if (node := state.nodes.get(pod.node)) else "",
            harmless(pod.unscheduled or " ".join(pod.waiting or ())),
        )
        for pod in sorted(pods, key=lambda pod: (pod.role, pod.index))
    ]
    about = f"{row.name}: {row.phase}, {row.ready} ready"
    if row.phase != "Running" and row.message:
        about += f": {harmless(row.message)}"
    return _Table(about, "replicas", _REPLICAS, rows, [reference(raw)])


def _key(head: str) -> str:
    """Return the head of a column as a field: waitsFor."""
    first, *more = head.split()
    return first + "".join(map(str.title, more))


async def _table(client: Client, targets: Targets, notes: list[str], *, wide: bool) -> _Table:
    from webhook.run_client.cost import read_state

    runs = await find_runs(client, targets)
    state = await read_state(client, targets.namespace, notes)
    if len(targets.names) == 1 and runs:
        return _replicas(state, runs[0])
    rows: list[tuple[str, ...]] = []
    references: list[str] = []
    first = 1 if targets.namespace else 0
    for raw in runs:
        row = row_of(raw)
        if row.phase in names.TERMINAL_PHASES and row.name not in targets.names:
            continue
        pods = state.observed(row.namespace, raw["metadata"]["uid"]).pods.values()
        nodes = {pod.node for pod in pods if pod.node}
        references.append(reference(raw))
        rows.append(
            (
                row.namespace,
                row.name,
                row.phase,
                row.ready,
                str(len(nodes)),
                on_classes(state.nodes, [pod.node for pod in pods]),
                "" if row.phase == "Running" and not wide else harmless(row.message),
            )[first:]
        )
    return _Table(
        "" if rows else "no Run is active", "runs", _HEAD[first:], sorted(rows), references
    )
