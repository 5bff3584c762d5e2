"""`fairlead guard tolerations`: print the guard of capacity."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli.guard.options import entries, exempt_option, namespaces_option, sources_option


@click.command("tolerations")
@click.option(
    "--policies",
    "paths",
    required=True,
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Where your capacity classes are: a file or a folder. May be repeated: each is a set of "
    "its own, so that those of several providers can stand beside each other.",
)
@sources_option
@namespaces_option
@exempt_option
def command(
    paths: tuple[Path, ...],
    sources: tuple[str, ...],
    only_namespaces: tuple[str, ...],
    exempt: tuple[str, ...],
) -> None:
    """Print the guard of capacity: a pod of a run gets no toleration of a class's taint later.

    Kubernetes lets whoever may update a pod add tolerations to it. The guard refuses those whose
    key is that of a taint of your capacity classes, and those without a key, which cover all.

    \b
    Examples:
      fairlead guard tolerations --policies policies/ | kubectl apply -f -
      fairlead guard tolerations --policies mine/ \\
        --exempt system:serviceaccount:kueue-system:kueue-controller-manager

    \b
    Exit codes:
      0  printed
      1  a policy file is wrong, or no class has a taint
      2  wrong usage
    """
    from webhook.cli.offline import read_policies
    from webhook.cli.yaml_out import yaml_documents
    from webhook.errors import UnreadableInput
    from webhook.guards import tolerations
    from webhook.interception import chosen

    keys = {
        taint["key"]
        for path in paths
        for capacity in read_policies([path]).classes.values()
        for taint in capacity.taints
    }
    if not keys:
        where = ", ".join(map(str, paths))
        raise UnreadableInput([f"{where}: no capacity class with a taint, so nothing to guard"])
    marks = [mark for source in chosen(sources) for mark in source.marks]
    guard = tolerations.documents(entries(sources, only_namespaces), marks, keys, exempt)
    click.echo(yaml_documents(guard), nl=False)
