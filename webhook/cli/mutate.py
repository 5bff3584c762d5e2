"""`fairlead mutate`: what pods would become, without a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.cli.pod_options import pod_options

if TYPE_CHECKING:
    from pathlib import Path


@click.command("mutate")
@pod_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["diff", "yaml", "json", "patch", "name"]),
    default="diff",
    show_default=True,
    help="diff: what changes; yaml, json: all objects, with the templates as their pods would be; "
    "patch: the JSON Patch of each pod; name: a line for each pod.",
)
@click.pass_context
def command(
    context: click.Context,
    filenames: tuple[Path, ...],
    policies: tuple[Path, ...],
    namespace: str,
    namespaces_file: Path | None,
    nodes_file: Path | None,
    output: str,
) -> None:
    """Print what pods would become under policies, without a cluster.

    Takes Pods, and whatever makes pods: Jobs, CronJobs, Deployments, StatefulSets, Kubeflow's
    jobs, JobSets, Ray clusters, or any object with a pod template in it. Decides by the same code
    as the webhook. A workload's pods get the labels that its controller will give them; where
    replicas differ in what becomes of them, each kind of replica is shown.

    \b
    Examples:
      fairlead mutate -f job.yaml --policies policies/
      kubectl get tfjobs -A -o yaml | fairlead mutate -f - --policies policies/ -o name
      fairlead mutate -f pods/ --policies policies/ --nodes nodes.yaml
      fairlead mutate -f job.yaml --policies policies/ -o yaml | kubectl diff -f -

    \b
    Exit codes:
      0  every pod would be admitted
      1  a pod would be rejected (the reason is on stderr), or a file cannot be read
      2  wrong usage

    `fairlead explain` with the same options says why.
    """
    from webhook.cli.decisions import decisions
    from webhook.cli.mutate_text import Printer
    from webhook.cli.offline import read_nodes, read_offline

    offline = read_offline(filenames, policies, namespace, namespaces_file)
    nodes = read_nodes(nodes_file) if nodes_file else None
    decided = decisions(offline)
    printer = Printer(offline, decided, nodes)
    printer.notes()
    match output:
        case "diff":
            printer.diff()
        case "name":
            printer.names()
        case "patch":
            printer.patches()
        case _:
            printer.objects(as_json=output == "json")
    if any(not each.decision.allowed for each in decided):
        context.exit(1)
