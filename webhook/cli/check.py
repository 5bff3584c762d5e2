"""`fairlead check`: validate policy files, and hold them against a cluster's nodes."""

from __future__ import annotations

import json
from pathlib import Path

import click

from webhook.cli.output_option import output_option


@click.command("check")
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    metavar="PATH...",
    type=click.Path(exists=True, path_type=Path, allow_dash=True),
)
@click.option(
    "--nodes",
    "nodes_file",
    type=click.Path(exists=True, path_type=Path, allow_dash=True, dir_okay=False),
    metavar="FILE",
    help="What `kubectl get nodes -o yaml` (or json) prints: which policies leave none of them?",
)
@click.option("--strict", is_flag=True, help="Fail for warnings, too.")
@output_option("How to print what is found.")
@click.pass_context
def command(
    context: click.Context,
    paths: tuple[Path, ...],
    nodes_file: Path | None,
    strict: bool,
    output: str,
) -> None:
    """Validate policies and capacity classes, without a cluster.

    A PATH is a file, a folder with all folders in it, or - for standard input; all of them
    together are one set. Every error is named at once, with file, line, column and field.

    With --nodes, also names the policies that leave no node, or that tolerate none of the taints
    of the nodes that they choose, and the classes of which there is no node.

    \b
    Examples:
      fairlead check policies/
      fairlead check policies/ classes/gke.yaml --strict
      kubectl get nodes -o json > nodes.json
      fairlead check policies/ --nodes nodes.json
      fairlead check policies/ -o json | jq '.findings[].message'

    \b
    Exit codes:
      0  no errors (with --strict: no warnings either)
      1  errors, or a file cannot be read
      2  wrong usage, or no policy there
    """
    from webhook.cli import check_run, check_text

    checked = check_run.check(paths, nodes_file)
    if checked is None:
        where = ", ".join(map(str, paths))
        raise click.UsageError(f"no policies and no classes in {where} (*.yaml, *.yml, *.json)")
    if output == "json":
        click.echo(json.dumps(check_text.document(checked), indent=2, ensure_ascii=False))
    else:
        for line in check_text.lines(checked):
            click.echo(line)
    context.exit(1 if checked.errors or (strict and checked.warnings) else 0)
