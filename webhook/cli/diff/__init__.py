"""`fairlead diff`: which pods another policy set would move, reject, or leave without a node."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.cli import noting
from webhook.cli.cluster_options import cluster_options
from webhook.cli.output_option import output_option
from webhook.cli.where import WhereType

if TYPE_CHECKING:
    from webhook.cli.diff.comparison_input import ComparisonInput
    from webhook.cli.diff.question import Question
    from webhook.cli.diff.words import Outcome
    from webhook.cli.where import Where
    from webhook.comparison.report import Report


@click.command("diff")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option(
    "--pods",
    multiple=True,
    type=click.Path(exists=True, path_type=Path, allow_dash=True),
    metavar="PATH",
    help="Objects that make pods, YAML or JSON: a file, a folder with all in it, or - for "
    "standard input. Repeatable. Default: the cluster's workloads, and its live pods that no "
    "workload makes.",
)
@click.option(
    "-n",
    "--namespace",
    default="",
    metavar="NAME",
    help="With --pods the namespace of objects that name none (else it is default); without it "
    "the only one of the cluster's that is looked at.",
)
@click.option(
    "--namespaces",
    "namespaces_file",
    type=click.Path(exists=True, path_type=Path, dir_okay=False),
    metavar="FILE",
    help="What `kubectl get ns,priorityclass -o yaml` prints. Default: the cluster's, if one is "
    "asked at all.",
)
@click.option(
    "--nodes",
    type=WhereType(folders=False),
    metavar="FILE",
    help="What `kubectl get nodes -o yaml` (or json) prints, or `cluster`: does any admit the "
    "pods? Default: the cluster's, if one is asked at all.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["changed", "unplaceable", "rejected", "never"]),
    default="changed",
    show_default=True,
    help="What gives exit code 1. changed: any difference; unplaceable: pods newly rejected or "
    "newly without a node; rejected: pods newly rejected; never: nothing does.",
)
@cluster_options
@output_option(
    "Text for people, Markdown for a comment on a pull request (bounded), or JSON with every pod.",
    ("text", "markdown", "json"),
)
@click.pass_context
def command(
    ctx: click.Context,
    old: str,
    new: str,
    pods: tuple[Path, ...],
    namespace: str,
    namespaces_file: Path | None,
    nodes: Where | None,
    fail_on: str,
    kubeconfig: Path | None,
    context: str,
    output: str,
) -> None:
    """Tell which pods NEW policies would place otherwise than OLD ones, and by which policy.

    OLD and NEW are each a folder of policies, or a file; a git revision's, as REV:PATH; or
    `cluster`, for the policies that the cluster has. /dev/null stands for no policies at all.

    Every pod is decided on under both, by the code of the webhook: which would be newly rejected,
    left without a node, or placed otherwise, summed by namespace and policy. Of a cluster the
    templates of workloads are decided on, and live pods that have none as they are now, but for
    their node. Nothing is changed anywhere.

    \b
    Examples:
      fairlead diff main:policies policies --pods jobs/ --nodes nodes.json
      fairlead diff cluster policies/
      fairlead diff cluster policies/ -n research --fail-on rejected
      fairlead diff origin/main:policies policies -o markdown > comment.md
      fairlead diff /dev/null policies -o json | jq '.changes[] | select(.change == "rejected")'

    \b
    Exit codes:
      0  no difference, or none that --fail-on names
      1  differences
      2  wrong usage, policies or pods that cannot be read, or the cluster did not answer
    """
    from webhook.cli.diff.question import Question
    from webhook.cli.diff.sets import Source
    from webhook.cli.diff.uncollected import uncollected
    from webhook.cli.failing import fail
    from webhook.errors import FairleadError

    question = Question(
        Source(old),
        Source(new),
        pods,
        namespace,
        namespaces_file,
        nodes,
        kubeconfig,
        context,
    )
    for source in (question.old, question.new):
        if not source.is_known:
            raise click.UsageError(
                f"{source.said}: no such file or folder; want a path, REV:PATH for a git "
                "revision's folder, or cluster"
            )
    if fail_on == "unplaceable" and not (nodes or question.asks_cluster):
        raise click.UsageError(
            "--fail-on unplaceable needs nodes: give --nodes FILE, or --nodes cluster"
        )
    try:
        with uncollected():
            outcome = _answer(question)
    except FairleadError as error:
        fail(error, 2)
    _print(outcome, output)
    ctx.exit(1 if _fails(outcome.report, fail_on) else 0)


def _answer(question: Question) -> Outcome:
    from datetime import UTC, datetime

    from webhook.cli.diff.judging import compared
    from webhook.cli.diff.question import gather
    from webhook.cli.diff.words import Outcome
    from webhook.sandbox.progress import Lines, Silent

    # A person who waits for a cluster is told; what files say is there at once.
    waits = question.asks_cluster and sys.stderr.isatty()
    progress = Lines(sys.stderr) if waits else Silent()
    with progress.step("Reading the cluster"):
        gathered = gather(question)
    notes = _notes(gathered)
    noting.tell(notes)
    with progress.step(f"Deciding on {len(gathered.pods.makers):,} pods and templates"):
        report = compared(gathered, datetime.now(UTC))
    nodes = gathered.facts.nodes
    return Outcome(
        question.old.said,
        question.new.said,
        gathered.old,
        gathered.new,
        None if nodes is None else len(nodes),
        report,
        notes,
    )


def _notes(gathered: ComparisonInput) -> list[str]:
    """What is not known, or left out."""
    from webhook.cli.diff.comparison_input import Template
    from webhook.cli.unknown_labels import unknown_labels

    used = [
        (each.namespace, each.template if isinstance(each, Template) else None)
        for each in gathered.pods.makers
    ]
    known = gathered.facts.namespaces
    unknown = [
        line
        for policies in (gathered.old, gathered.new)
        for line in unknown_labels(policies, used, known, "--namespaces, or with --pods")
    ]
    return list(dict.fromkeys((*gathered.pods.notes, *unknown)))


def _print(outcome: Outcome, output: str) -> None:
    import json

    import orjson

    from webhook.cli.diff import document, markdown, text

    if output == "json":
        found = document.document(outcome)
        try:
            printed = orjson.dumps(found, option=orjson.OPT_INDENT_2).decode()
        except orjson.JSONEncodeError:
            # Files may ask for more pods than an integer of 64 bits can count.
            printed = json.dumps(found, indent=2)
        click.echo(printed)
    elif output == "markdown":
        click.echo(markdown.document(outcome), nl=False)
    else:
        for line in text.lines(outcome):
            click.echo(line)


def _fails(report: Report, fail_on: str) -> bool:
    match fail_on:
        case "changed":
            return report.differing > 0
        case "unplaceable":
            return report.counts["rejected"] > 0 or report.stranded > 0
        case "rejected":
            return report.counts["rejected"] > 0
    return False
