"""`fairlead diff`: compare what two policy sets do to pods."""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.cli.dry_run import HELP
from webhook.cli.exit_codes import DONE, FAILED, UNKNOWN, errors_exit
from webhook.cli.options import (
    CLUSTER,
    HISTORY,
    Kubeconfig,
    Where,
    WhereType,
    cluster_options,
)
from webhook.cli.output import output_option, print_result
from webhook.settings import setting, settings_options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a policy set, as given on the command line."""

    text: str

    @property
    def is_cluster(self) -> bool:
        """True for the word `cluster`; a folder of that name is ./cluster."""
        return self.text == CLUSTER.value

    @property
    def is_known(self) -> bool:
        """True if it can be a path, a git revision's, or the cluster."""
        return self.is_cluster or ":" in self.text or Path(self.text).exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The arguments and options. Without `pods`, the cluster's pods are compared."""

    old: Source
    new: Source
    kubeconfig: Kubeconfig
    pods: tuple[Path, ...] = setting(
        "--pods",
        multiple=True,
        type=click.Path(exists=True, path_type=Path, allow_dash=True),
        metavar="PATH",
        help="Objects that create pods, YAML or JSON: a file, a folder with its subfolders, or "
        "- for standard input. Repeatable. Default: the cluster's workloads, and its live pods "
        "that no workload makes.",
    )
    namespace: str = setting(
        "-n",
        "--namespace",
        default="",
        metavar="NAME",
        help="With --pods, the namespace of objects without one (default: default). Without "
        "--pods, the only namespace of the cluster that is read.",
    )
    namespaces_file: Path | None = setting(
        "--namespaces",
        type=click.Path(exists=True, path_type=Path, dir_okay=False),
        metavar="FILE",
        help="What `kubectl get ns,priorityclass,runtimeclass,limits -A -o yaml` prints. Default: "
        "the cluster's, if the command reads a cluster.",
    )
    nodes: Where | None = setting(
        "--nodes",
        type=WhereType(folders=False),
        metavar="FILE",
        help="What `kubectl get nodes -o yaml` (or json) prints, or `cluster`. Checks whether any "
        "of them admits the pods. Default: the cluster's nodes, if the command reads a cluster.",
    )
    fail_on: str = setting(
        "--fail-on",
        type=click.Choice(["changed", "unplaceable", "rejected", "never"]),
        default="changed",
        show_default=True,
        help="What gives exit code 1. changed: any difference; unplaceable: pods newly rejected or "
        "newly without a node; rejected: pods newly rejected; never: nothing does.",
    )
    history: Sequence[tuple[str, int, timedelta | None]] = setting("--history", **HISTORY)
    dry_run: str | None = setting("--dry-run", type=click.Choice(["server"]), help=HELP)

    @property
    def asks_cluster(self) -> bool:
        """Whether part of the input comes from a cluster."""
        named = self.old.is_cluster or self.new.is_cluster or self.nodes is CLUSTER
        return named or not self.pods


@click.command("diff")
@click.argument("old", metavar="OLD", type=Source)
@click.argument("new", metavar="NEW", type=Source)
@settings_options(Question)
@cluster_options
@output_option(
    "Text for people, Markdown for a comment on a pull request (bounded), a page in one file, or "
    "JSON with every pod.",
    ("text", "markdown", "html", "json"),
)
def command(question: Question, output: str) -> None:
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
      0  no difference, or none that --fail-on names
      1  differences
      2  wrong usage, policies or pods that cannot be read, or the cluster did not answer
    """
    from webhook.cli.diff import report
    from webhook.cli.diff.question import answer

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
    with errors_exit(UNKNOWN):
        outcome = answer(question)
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
        "unplaceable": pods.rejected + pods.without_node,
        "rejected": pods.rejected,
        "never": 0,
    }
    sys.exit(FAILED if failing[question.fail_on] else DONE)
