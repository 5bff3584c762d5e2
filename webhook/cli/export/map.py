"""`fairlead export map`: print a policy set as admission policies of the API server."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli.guard.options import entries, namespaces_option, sources_option


@click.command("map")
@click.option(
    "--policies",
    "paths",
    required=True,
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Policy files: a file or a folder. May be repeated; all of them together are one set.",
)
@click.option(
    "--default-priority-class",
    default="",
    metavar="NAME",
    help="The cluster's PriorityClass with globalDefault, if there is one: a pod that has it "
    "has said nothing.",
)
@click.option(
    "--default-toleration-seconds",
    type=click.IntRange(0, 2**31 - 1),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="What the API server gives pods for nodes that go away, which is nobody's word: its "
    "--default-not-ready-toleration-seconds.",
)
@sources_option
@namespaces_option
def command(
    paths: tuple[Path, ...],
    default_priority_class: str,
    default_toleration_seconds: int,
    sources: tuple[str, ...],
    only_namespaces: tuple[str, ...],
) -> None:
    """Print policies as a MutatingAdmissionPolicy and a ValidatingAdmissionPolicy, with bindings.

    For clusters that want no webhook; Kubernetes 1.36 and later. The API server itself then gives
    pods the placement that the webhook would give them, and rejects those that it would reject.
    There are no warnings, no metrics and no trace of who set what, and policies under Audit are
    left out.

    What cannot be said in this form, or not exactly, is refused: every policy and field is named,
    with the reason and what to do. Nothing is printed then. docs/guides/without-a-webhook.md has
    the whole list.

    \b
    Examples:
      fairlead export map --policies mine/ > exported.yaml
      fairlead export map --policies mine/ --source fairlead --source mlrun | kubectl apply -f -
      fairlead export map --policies mine/ --only-namespace trial | kubectl apply -f -

    \b
    Exit codes:
      0  printed
      1  something cannot be exported, or a policy file is wrong
      2  wrong usage
    """
    from webhook.cli.export.placed import read_placed
    from webhook.cli.yaml_out import yaml_documents
    from webhook.exported.documents import documents

    placed, audited = read_placed(paths, default_priority_class, default_toleration_seconds)
    found = documents(placed, entries(sources, only_namespaces))
    if audited:
        click.echo(f"left out, for they are under Audit: {', '.join(audited)}", err=True)
    click.echo(yaml_documents(found), nl=False)
