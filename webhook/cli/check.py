"""`fairlead check`: validate policies, and check them against a cluster's nodes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from webhook import names
from webhook.cli.exit_codes import DONE, FAILED
from webhook.cli.options import cluster_options
from webhook.cli.output import output_option, print_notes, print_result
from webhook.cli.short_help import Command
from webhook.questions.where import Where, WhereType

if TYPE_CHECKING:
    from webhook.kube.kubeconfig import Kubeconfig


@click.command("check", cls=Command)
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    metavar="PATH...",
    type=WhereType(folders=True),
)
@click.option(
    "--nodes",
    type=WhereType(folders=False),
    metavar="FILE",
    help="What `kubectl get nodes -o yaml` (or json) prints, or `cluster`. Reports policies "
    "that leave none of these nodes.",
)
@click.option(
    "--namespaces",
    type=WhereType(folders=False),
    metavar="FILE",
    help="What `kubectl get ns -o yaml` (or json) prints, or `cluster`. Checks the values that "
    "policies take from their labels.",
)
@click.option("--strict", is_flag=True, help="Fail for warnings, too.")
@click.option(
    "--rollback-to",
    type=click.Choice(names.RELEASES),
    default=names.RELEASES[-1],
    help="Report fields that this release does not read, as errors.",
)
@cluster_options
@output_option(report="PolicyCheck", tables=True)
def command(
    paths: tuple[Where, ...],
    nodes: Where | None,
    namespaces: Where | None,
    strict: bool,
    rollback_to: str,
    kubeconfig: Kubeconfig,
    output: str,
) -> None:
    """Validate policies, capacity classes, exceptions and sources, from files or from a cluster.

    A PATH is a file, a folder with all folders in it, or - for standard input; all paths together
    are one set. All errors are reported, with file, line, column and field. `cluster` as PATH
    means the objects of the cluster.

    With --nodes, the command also reports policies that leave no node, policies that tolerate none
    of the taints of the nodes they select, and classes without nodes. With a cluster, it also
    reports policies that set a PriorityClass or RuntimeClass that the cluster does not have.

    \b
    Examples:
      fairlead check policies/
      fairlead check policies/ classes/gke.yaml --strict
      kubectl get nodes -o json > nodes.json
      fairlead check policies/ --nodes nodes.json
      fairlead check cluster --nodes cluster
      fairlead check policies/ -o json | jq '.findings[].message'

    \b
    Exit codes:
      0  no errors (with --strict: no warnings either)
      1  errors, or a file cannot be read
      2  wrong usage, no policy there, or the cluster did not answer
    """
    from datetime import UTC, datetime

    from webhook.questions import policy_check as check_report

    given = check_report.read_input(paths, nodes, namespaces, kubeconfig)
    checked = check_report.check(given, datetime.now(UTC), rollback_to=rollback_to)
    if checked is None:
        where = ", ".join(map(str, paths))
        what = "objects" if where == "cluster" else "*.yaml, *.yml, *.json"
        raise click.UsageError(f"no policies and no classes in {where} ({what})")
    print_notes(check_report.notes(given, checked))
    print_result(
        output,
        json=lambda: check_report.document(given, checked),
        text=lambda: check_report.lines(given, checked),
    )
    failed = any(strict or finding.severity == "error" for finding in checked.findings)
    sys.exit(FAILED if failed else DONE)
