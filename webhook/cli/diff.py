"""`fairlead diff`: compare what two policy sets do to pods."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

import click

from webhook.cli.dry_run import server_of
from webhook.cli.exit_codes import UNKNOWN, errors_exit, gate
from webhook.cli.options import cluster_options, progress_option
from webhook.cli.output import output_option, print_notes, print_result
from webhook.cli.short_help import Command
from webhook.questions.diff.settings import Question, SourceType
from webhook.settings import settings_options

if TYPE_CHECKING:
    from webhook.progress import Progress


@click.command("diff", cls=Command)
@click.argument("old", metavar="OLD", type=SourceType())
@click.argument("new", metavar="NEW", type=SourceType())
@settings_options(Question)
@cluster_options
@progress_option(only_terminals=True)
@output_option(
    "markdown: a comment on a pull request (bounded); html: a page in one file; json and yaml: "
    "every pod.",
    ("text", "markdown", "html", "json", "yaml"),
    report="PolicyDiff",
    tables=True,
)
def command(question: Question, progress: Progress, output: str) -> None:
    """Show which pods NEW policies would place differently from OLD ones, and by which policy.

    OLD and NEW are each a folder or a file of policies, a path in a git revision (REV:PATH), or
    `cluster` for the policies in the cluster. Use /dev/null for no policies.

    Every pod is evaluated under both, by the code of the webhook. The result counts pods that are
    newly rejected, newly without a node, or placed differently, by namespace and policy. In a
    cluster, the command evaluates the templates of workloads, and live pods without a workload as
    they are now, without their node. It changes nothing.

    \b
    Examples:
      fairlead diff main:policies policies --pods jobs/ --nodes nodes.json
      fairlead diff cluster policies/
      fairlead diff cluster policies/ -n research --fail-on rejected
      fairlead diff origin/main:policies policies -o markdown > comment.md
      fairlead diff cluster policies/ -o html > change.html
      fairlead diff /dev/null policies -o json | jq '.changes[] | select(.change == "rejected")'

    \b
    Exit codes:
      0  no difference, or none that --fail-on names; with --fail-on never, always
      1  differences
      2  none, as far as known: a fact is unknown that could change the answer (stderr names it);
         wrong usage, policies or pods that cannot be read, or the cluster did not answer
    """
    from webhook.questions.decisions import NOT_ASKED, PODS
    from webhook.questions.diff import report
    from webhook.questions.diff.question import answer

    if question.everywhere and (question.namespace or question.pods):
        raise click.UsageError("give -A, or -n NAME, or files with --pods")
    for source in (question.old, question.new):
        if not source.is_known:
            raise click.UsageError(
                f"{source.text}: no such file or folder; want a path, REV:PATH for a git "
                "revision's folder, or cluster"
            )
    if question.fail_on == "unplaceable" and not (question.nodes or question.asks_cluster):
        raise click.UsageError(
            "--fail-on unplaceable needs nodes: give --nodes FILE, or --nodes cluster"
        )
    # Policies, pods and results stay until the end, and each collection would walk all of them: a
    # sixth of the time for ten thousand pods. Reference counts still free memory.
    gc.disable()
    click.get_current_context().call_on_close(gc.enable)
    server = server_of(question.kubeconfig) if question.dry_run else None
    with errors_exit(UNKNOWN):
        outcome = answer(question, server, progress if question.asks_cluster else None, print_notes)
    if server is None:
        print_notes([f"{NOT_ASKED} {PODS}"])
    print_result(
        output,
        json=lambda: outcome,
        text=lambda: report.lines(outcome),
        markdown=lambda: report.markdown(outcome),
        html=lambda: report.html(outcome),
    )
    pods = outcome.pods
    failing = {
        "changed": pods.differing,
        "unplaceable": pods.rejected
        + pods.without_node
        + sum(change.takes_room for change in outcome.changes),
        "rejected": pods.rejected,
        "unknown": 0,
    }
    if question.fail_on != "never":
        failed = bool(failing[question.fail_on])
        sys.exit(gate(failed=failed, unknown=bool(outcome.unknown)))
