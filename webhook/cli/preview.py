"""`fairlead preview`: print pods as the webhook would change them."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from webhook.cli.options import cluster_options
from webhook.cli.output import output_option, print_notes
from webhook.cli.preview_runs import FORMS, show_runs
from webhook.cli.selection import (
    answers_or_exit,
    asked_server,
    code_of_pods,
    decide_readable,
    read_files,
    references_argument,
)
from webhook.cli.short_help import Command
from webhook.questions.selection import Selection
from webhook.settings import ObjectName, settings_options


@click.command("preview", cls=Command)
@references_argument
@settings_options(Selection)
@click.option(
    "--cluster-domain",
    type=ObjectName(),
    default="",
    metavar="DOMAIN",
    help="With -o pods or objects, as the controller's: appended to the replicas' addresses, such "
    "as cluster.local.",
)
@output_option(
    "diff: what changes. yaml, json: all objects, with the templates as their pods would be. "
    "patch: the JSON Patch of each pod. text: a line for each kind of pods. Only for Runs in "
    "files, also without --policies: pods (resources, environment and placement), and objects "
    "(every object as it would be created).",
    ("diff", "text", "yaml", "json", "patch", "name", *FORMS),
    report="PodPatches",
    reports=("patch",),
    tables=True,
)
@cluster_options
def command(selection: Selection, cluster_domain: str, output: str) -> None:
    """Show what policies change in pods, from files or from a cluster.

    Accepts Pods and workloads: Jobs, CronJobs, Deployments, StatefulSets, Kubeflow's jobs,
    JobSets, the kinds of Ray, Spark, Dask, Argo, Volcano and KServe, or any object with a pod
    template. The webhook uses the same code. A
    workload's pods get the labels that its controller sets; if replicas are placed differently,
    each kind of replica is shown. A live pod is evaluated as its author wrote it, without the
    fields that policies set at creation. Kinds that create pods of which nothing is known (such as
    SeldonDeployment), and fields that change pods and are not read, are reported on stderr.

    \b
    Examples:
      fairlead preview -f job.yaml --policies policies/
      kubectl get tfjobs -A -o yaml | fairlead preview -f - --policies policies/ -o text
      fairlead preview -f pods/ --policies policies/ --nodes nodes.yaml
      fairlead preview -f job.yaml --policies policies/ -o yaml | kubectl diff -f -
      fairlead preview -f job.yaml --policies policies/ --nodes nodes.yaml --fail-on no-node
      fairlead preview -f run.yaml -o pods
      fairlead preview job/train -n research
      fairlead preview pod train-0 --policies policies/ --nodes cluster
      fairlead preview -f job.yaml --policies policies/ --dry-run=server

    \b
    Exit codes:
      0  every pod would be admitted; with --fail-on, nothing of that kind was found
      1  a pod would be rejected (with -o yaml, json and patch the reason is on stderr; also for
         a class that the cluster does not have, with --policies cluster or live), a template is
         wrong, a file or an object cannot be read, or an object cannot be printed as its pods
         would be; all others are printed; with --fail-on, something of that kind was found
      2  wrong usage; the cluster did not answer; live: no such object; with --fail-on, none was
         found, and a fact is unknown that could change the answer

    `fairlead explain` with the same options shows the reasons.
    """
    if output in FORMS:
        sys.exit(show_runs(selection, cluster_domain, output))
    from webhook.cli.preview_text import show
    from webhook.questions.decisions import remarks, unknown_facts

    if selection.live:
        from webhook.questions.live.live_pods import recreated

        answers = answers_or_exit(selection)
        offline = recreated(answers, whole=output in ("yaml", "json"))
        offline = replace(offline, world=replace(offline.world, server=asked_server(selection)))
        notes = answers.notes
    else:
        offline = read_files(selection)
        notes = ()
    decided, problems = decide_readable(offline)
    unknown = [*offline.describe_unknown()]
    if not selection.live:
        unknown += unknown_facts(decided)
    print_notes([*unknown, *remarks(decided)])
    whole = show(offline, decided, output)
    failed = bool(problems) or not whole
    sys.exit(code_of_pods(selection.fail_on, decided, [*notes, *unknown], failed=failed))
