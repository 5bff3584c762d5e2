"""`fairlead guard authors`: print the guard of Runs."""

from __future__ import annotations

import click


@click.command("authors")
def command() -> None:
    """Print the guard of Runs: who writes a Run's spec must be allowed to create pods there.

    Without it the right to create Runs would be a right to have any pod made. Like whoever
    creates pods, an author may use every service account of the namespace.

    \b
    Examples:
      fairlead guard authors | kubectl apply -f -

    \b
    Exit codes:
      0  printed
      2  wrong usage
    """
    from webhook.cli.yaml_out import yaml_documents
    from webhook.guards import run_authors

    click.echo(yaml_documents(run_authors.documents()), nl=False)
