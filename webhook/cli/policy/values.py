"""`fairlead policy values`: what policies take from labels of namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.cli.options import cluster_options, policies_option
from webhook.cli.output import output_option, print_result
from webhook.cli.short_help import Command
from webhook.questions.where import CLUSTER, Where, WhereType

if TYPE_CHECKING:
    from webhook.kube.kubeconfig import Kubeconfig


@click.command("values", cls=Command)
@policies_option("Files or folders, or the word cluster. Repeatable.  [default: cluster]")
@click.option(
    "--namespaces",
    type=WhereType(folders=False),
    metavar="FILE",
    default=CLUSTER.value,
    help="What `kubectl get ns -o yaml` prints, or `cluster`.  [default: cluster]",
)
@click.option("--missing", is_flag=True, help="Only namespaces that give no value.")
@cluster_options
@output_option(report="NamespaceValueList", tables=True)
def command(
    policies: tuple[Where, ...],
    namespaces: Where,
    missing: bool,
    kubeconfig: Kubeconfig,
    output: str,
) -> None:
    """Show the values that policies take from labels of namespaces.

    A row for each entry of nodeSelectorFrom and tolerationsFrom, in each namespace whose pods the
    policy may match. Without a value and a default, defaults leave the entry out; overrides and
    requirements reject the pod.

    \b
    Examples:
      fairlead policy values
      fairlead policy values --missing
      fairlead policy values --policies policies/ --namespaces namespaces.yaml

    \b
    Exit codes:
      0  they are shown, also if there are none
      1  a file cannot be read, or has errors
      2  wrong usage, or the cluster did not answer
    """
    from webhook.questions.policies.namespace_values_report import document, lines, read_rows

    rows = [row for row in read_rows(policies, namespaces, kubeconfig) if not missing or row.lacks]
    print_result(output, json=lambda: document(rows), text=lambda: lines(rows))
