"""`fairlead guard stamp`: print the guard of a webhook that may be ignored."""

from __future__ import annotations

import click

from webhook.cli.guard.options import entries, namespaces_option, sources_option


@click.command("stamp")
@click.option(
    "--action",
    type=click.Choice(["warn", "deny"]),
    default="warn",
    show_default=True,
    help="warn: create the pod, warn its author and note it in the audit log. deny: refuse it.",
)
@sources_option
@namespaces_option
def command(action: str, sources: tuple[str, ...], only_namespaces: tuple[str, ...]) -> None:
    """Print the guard for `failurePolicy: Ignore`: a pod of a run must carry Fairlead's stamp.

    It is a policy and a binding for each entry of the webhook's configuration. It guards against
    a webhook that does not answer, and not against authors, who can write the stamp themselves.

    \b
    Examples:
      fairlead guard stamp --action deny | kubectl apply -f -
      fairlead guard stamp --source fairlead --source mlrun --source namespace

    \b
    Exit codes:
      0  printed
      2  wrong usage
    """
    from webhook.cli.yaml_out import yaml_documents
    from webhook.guards import stamp

    guard = stamp.documents(entries(sources, only_namespaces), deny=action == "deny")
    click.echo(yaml_documents(guard), nl=False)
