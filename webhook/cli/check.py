"""`fairlead check`: validate policies, and hold them against a cluster's nodes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from webhook.cli.cluster_options import client_of, cluster_options
from webhook.cli.failing import fail
from webhook.cli.output_option import output_option
from webhook.cli.where import WhereType
from webhook.errors import ClusterError

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.cli.where import Where


@click.command("check")
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
    help="What `kubectl get nodes -o yaml` (or json) prints, or `cluster`: which policies leave "
    "none of these nodes?",
)
@click.option("--strict", is_flag=True, help="Fail for warnings, too.")
@cluster_options
@output_option("How to print what is found.")
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[Where, ...],
    nodes: Where | None,
    strict: bool,
    kubeconfig: Path | None,
    context: str,
    output: str,
) -> None:
    """Validate policies, capacity classes and exceptions: of files, or those that a cluster has.

    A PATH is a file, a folder with all folders in it, or - for standard input; all of them
    together are one set. Every error is named at once, with file, line, column and field. The word
    `cluster` in the place of PATH means those that are objects of the cluster.

    With --nodes, also names the policies that leave no node, or that tolerate none of the taints
    of the nodes that they choose, and the classes of which there is no node.

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

    from webhook.cli import check_run, check_text

    try:
        given = check_run.read(paths, nodes, lambda: client_of(kubeconfig, context))
    except ClusterError as error:
        fail(error, 2)
    checked = check_run.check(given, datetime.now(UTC)) if given else None
    if checked is None:
        where = ", ".join(map(str, paths))
        what = "objects" if where == "cluster" else "*.yaml, *.yml, *.json"
        raise click.UsageError(f"no policies and no classes in {where} ({what})")
    if output == "json":
        click.echo(json.dumps(check_text.document(checked), indent=2, ensure_ascii=False))
    else:
        for line in check_text.lines(checked):
            click.echo(line)
    ctx.exit(1 if checked.errors or (strict and checked.warnings) else 0)
