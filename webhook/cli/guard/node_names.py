"""`fairlead guard node-names`: print the guard of nodeName."""

from __future__ import annotations

import click

from webhook.cli.guard.options import entries, exempt_option, namespaces_option, sources_option


@click.command("node-names")
@sources_option
@namespaces_option
@exempt_option
def command(
    sources: tuple[str, ...], only_namespaces: tuple[str, ...], exempt: tuple[str, ...]
) -> None:
    """Print the guard of nodeName: no pod of a run comes with its node already chosen.

    Kubernetes lets every author of a pod write nodeName, and so pass by the scheduler and by
    taints. The webhook rejects such a pod where a requirement about nodes is not met or cannot be
    checked; defaults and overrides do not reach it. The guard refuses it in any case.

    \b
    Examples:
      fairlead guard node-names | kubectl apply -f -
      fairlead guard node-names --source fairlead --source mlrun --source namespace

    \b
    Exit codes:
      0  printed
      2  wrong usage
    """
    from webhook.cli.yaml_out import yaml_documents
    from webhook.guards import node_names

    guard = node_names.documents(entries(sources, only_namespaces), exempt)
    click.echo(yaml_documents(guard), nl=False)
