"""`fairlead run cost`: what Runs used, by the class of their nodes, and an estimated price."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from webhook import names
from webhook.cli.output import READER_FORMS, output_option, print_notes, print_result
from webhook.cli.run.cluster import several_options
from webhook.cli.short_help import Command
from webhook.run_client.cost import estimate_of, fetch_costs
from webhook.run_client.rows import run_reference
from webhook.shortening import harmless
from webhook.text.layout import table
from webhook.times import format_span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.run_client.cost import RunCost
    from webhook.run_client.find_runs import Targets

_HEAD: Final = ("namespace", "run", "class", "resource", "on nodes", "waiting", "repeated")
_NO_CLASS: Final = "-"


@click.command("cost", cls=Command)
@several_options
@output_option(formats=READER_FORMS, report="RunCosts", tables=True)
def command(
    targets: Targets,
    kubeconfig: Kubeconfig,
    output: str,
) -> None:
    """Show what Runs used, by name or label, or each Run of the namespace.

    A row is the time of replicas, or of an accelerator that they request, by the capacity class of
    their nodes: on nodes, without a node, and repeated. Repeated is the part on nodes that
    disruptions and failures ended: at most so much was done twice, for programs that write
    checkpoints less. Of several accelerators each counts.

    If each class has a relativePrice, an estimate follows: what the time on nodes costs, and what
    the same useful time would cost on demand.

    \b
    Examples:
      fairlead run cost mnist
      fairlead run cost -l fairlead.dev/first-try=mnist
      fairlead run cost -A -o json | jq '.runs[] | {name, cost, useful}'

    \b
    Exit codes:
      0  shown
      2  wrong usage, no such Run, or the cluster did not answer
    """
    costs, notes = kubeconfig.ask(lambda client: fetch_costs(client, targets))
    print_result(
        output,
        json=lambda: {"runs": [cost.document() for cost in costs], "notes": notes},
        text=lambda: _lines(costs),
        names=lambda: [run_reference(cost.name) for cost in costs],
    )
    if output == "text":
        print_notes(notes)


def _lines(costs: Sequence[RunCost]) -> Iterator[str]:
    several = len({cost.namespace for cost in costs}) > 1
    first = 0 if several else 1
    rows = [
        (
            cost.namespace,
            cost.name,
            row.capacity_class or _NO_CLASS,
            harmless(row.resource),
            format_span(row.seconds),
            format_span(row.waiting_seconds),
            format_span(row.repeated_seconds),
        )[first:]
        for cost in costs
        for row in cost.usage
    ]
    yield from table(_HEAD[first:], rows)
    for cost in costs:
        name = f"{cost.namespace}/{cost.name}" if several else cost.name
        if not cost.usage:
            over = cost.phase in names.TERMINAL_PHASES
            yield f"{name}: {'no time was recorded' if over else 'no time yet'}"
        elif estimate := estimate_of(cost):
            yield f"{name}: {estimate}"
