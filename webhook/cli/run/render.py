"""`fairlead run render`: a Run as the object of another engine, without a cluster."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli.output import output_option, print_notes, print_result

_PATH = click.Path(exists=True, path_type=Path, allow_dash=True)


@click.command("render")
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    required=True,
    type=_PATH,
    metavar="PATH",
    help="Runs, YAML or JSON: a file, a folder with all in it, or - for standard input. "
    "Repeatable.",
)
@click.option(
    "--backend",
    "backend_name",
    required=True,
    metavar="NAME",
    help="The engine: kubeflow (training operator, MPI operator), jobset, dask, trainer, "
    "kuberay, or spark.",
)
@click.option(
    "-n",
    "--namespace",
    default="",
    metavar="NAME",
    help="The namespace of Runs without one.  [default: none is written]",
)
@output_option("How to print the objects.", ("yaml", "json"))
def command(filenames: tuple[Path, ...], backend_name: str, namespace: str, output: str) -> None:
    """Print a Run as the object of another engine, which needs no Fairlead in the cluster.

    The engine connects the replicas; on a JobSet, variables in the template do. Layers, placement
    and resources of the Run are in the object; policies are not. A field that the engine does not
    have is an error. Unset fields are left out, so the engine's own defaults hold.

    \b
    Examples:
      fairlead run render -f run.yaml --backend kubeflow | kubectl apply -f -
      fairlead run render -f run.yaml --backend jobset -n research
      fairlead run render -f runs/ --backend kubeflow -o json | jq '.[].kind'

    \b
    Exit codes:
      0  the objects are printed
      1  a Run is wrong, or the engine cannot run it, or a file cannot be read
      2  wrong usage
    """
    from webhook.cli.run.run_files import read_rendered
    from webhook.run.backends.table import BACKENDS, NATIVE
    from webhook.strict import guess

    if backend_name == NATIVE:
        raise click.UsageError(
            "--backend native: Fairlead's controller creates pods and needs no other object; "
            "fairlead run preview shows them"
        )
    if backend_name not in BACKENDS:
        hint = guess(backend_name, tuple(BACKENDS))
        known = ", ".join(BACKENDS)
        raise click.UsageError(f"--backend {backend_name}: want one of {known}{hint}")
    found = read_rendered(filenames, BACKENDS[backend_name], namespace)
    print_notes(str(warning) for each in found for warning in each.warnings)
    manifests = [manifest for each in found for manifest in each.manifests]
    print_result(output, json=lambda: manifests, yaml=lambda: manifests)
