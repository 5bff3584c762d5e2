"""`fairlead mutate`: what pods would become."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.cli import noting
from webhook.cli.cluster_options import cluster_options
from webhook.cli.pod_options import pod_options

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.cli.fail_on import FailOn
    from webhook.cli.where import Where


@click.command("mutate")
@click.argument("words", nargs=-1, metavar="[TYPE NAME | TYPE/NAME]...")
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
@cluster_options
@click.pass_context
def command(
    ctx: click.Context,
    words: tuple[str, ...],
    filenames: tuple[Path, ...],
    policies: tuple[Where, ...],
    namespace: str,
    namespaces_file: Path | None,
    nodes: Where | None,
    fail_on: tuple[FailOn, ...],
    output: str,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """Print what pods would become under policies: objects of files, or of a cluster.

    Takes Pods, and whatever makes pods: Jobs, CronJobs, Deployments, StatefulSets, Kubeflow's
    jobs, JobSets, Ray clusters, or any object with a pod template in it. Decides by the same code
    as the webhook. A workload's pods get the labels that its controller will give them; where
    replicas differ in what becomes of them, each kind of replica is shown. A live pod is taken as
    its author wrote it, without what policies gave it when it was created. What makes pods of
    something else than a pod template (a SparkApplication) is told on stderr, once a kind.

    \b
    Examples:
      fairlead mutate -f job.yaml --policies policies/
      kubectl get tfjobs -A -o yaml | fairlead mutate -f - --policies policies/ -o name
      fairlead mutate -f pods/ --policies policies/ --nodes nodes.yaml
      fairlead mutate -f job.yaml --policies policies/ -o yaml | kubectl diff -f -
      fairlead mutate -f job.yaml --policies policies/ --nodes nodes.yaml --fail-on no-node
      fairlead mutate job/train -n research
      fairlead mutate pod train-0 --policies policies/ --nodes cluster

    \b
    Exit codes:
      0  every pod would be admitted; with --fail-on, nothing of that kind was found
      1  a pod would be rejected (the reason is on stderr), a template is wrong, a file or an
         object cannot be read, or an object cannot be printed as its pods would be; all others
         are printed; with --fail-on, something of that kind was found
      2  wrong usage; live: no such object, or the cluster did not answer

    `fairlead explain` with the same options says why.
    """
    from webhook.cli.decisions import readable, unjudged
    from webhook.cli.fail_on import check_usage, fails
    from webhook.cli.mutate_text import Printer
    from webhook.cli.selection import Selection, read_files

    selection = Selection(
        words, filenames, policies, namespace, namespaces_file, nodes, kubeconfig, context, fail_on
    )
    check_usage(selection)
    if selection.live:
        from webhook.cli.live.answers_or_exit import answers_or_exit
        from webhook.cli.live.recreated import recreated

        answers = answers_or_exit(selection)
        offline, known = recreated(answers, whole=output in ("yaml", "json")), answers.nodes
        told = answers.notes
    else:
        offline, known = read_files(selection)
        told = ()
    decided, problems = readable(offline)
    printer = Printer(offline, decided, known)
    unknown = [*offline.not_known(), *(() if selection.live else unjudged(decided, known))]
    noting.tell(unknown)
    match output:
        case "diff":
            printer.diff()
        case "name":
            printer.names()
        case "patch":
            printer.patches()
        case _:
            printer.objects(as_json=output == "json")
    failed = fails(fail_on, decided, offline.policies, known, [*told, *unknown])
    if failed or problems or printer.withheld:
        ctx.exit(1)
