"""`fairlead explain`: why a pod gets what it gets, policy by policy and field by field."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from webhook.cli.output_option import output_option
from webhook.cli.pod_options import pod_options

if TYPE_CHECKING:
    from pathlib import Path


@click.command("explain")
@pod_options
@output_option("Text for people, or JSON with everything: all nodes by name, the whole patch.")
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
    """Explain why pods get what they get, without a cluster.

    For each pod: who it is; each policy, and if it does not match the very condition that fails;
    each field, by whom it is set, kept, lost, dropped, removed, skipped or rejected, and why; and
    with --nodes, what shuts the pod out of each node.

    \b
    Examples:
      fairlead explain -f pod.yaml --policies policies/
      kubectl get pod train-0 -o yaml | fairlead explain -f - --policies policies/
      kubectl get nodes -o json > nodes.json
      fairlead explain -f job.yaml --policies policies/ --nodes nodes.json
      fairlead explain -f job.yaml --policies policies/ -o json | jq '.pods[].trace'

    \b
    Exit codes:
      0  every pod would be admitted
      1  a pod would be rejected, or a file cannot be read
      2  wrong usage
    """
    from webhook.cli import explain_json, explain_text
    from webhook.cli.decisions import decisions
    from webhook.cli.offline import read_nodes, read_offline

    offline = read_offline(filenames, policies, namespace, namespaces_file)
    nodes = read_nodes(nodes_file) if nodes_file else None
    decided = decisions(offline)
    for note in offline.unknown_namespaces():
        click.secho("note: ", fg="yellow", bold=True, nl=False, err=True)
        click.echo(note, err=True)
    if output == "json":
        found = explain_json.document(decided, offline.policies, nodes)
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        texts = ("\n".join(explain_text.lines(each, offline.policies, nodes)) for each in decided)
        click.echo("\n\n".join(texts))
    if any(not each.decision.allowed for each in decided):
        context.exit(1)
