"""`fairlead run render`: a Run as the object of another engine, without a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.cli.options import filenames_option, namespace_option
from webhook.cli.output import output_option, print_notes, print_result
from webhook.cli.short_help import Command
from webhook.questions.completion import members_of
from webhook.text.documents import as_one

if TYPE_CHECKING:
    from pathlib import Path


@click.command("render", cls=Command)
@filenames_option
@click.option(
    "--backend",
    "backend_name",
    required=True,
    metavar="NAME",
    shell_complete=members_of("webhook.run.backends.table", "BACKENDS"),
    help="The engine: kubeflow (training operator, MPI operator), jobset, dask, trainer, "
    "kuberay, or spark.",
)
@namespace_option("The namespace of Runs without one.  [default: none is written]")
@click.option(
    "--mpijob",
    type=click.Choice(("v2beta1", "v1")),
    default="v2beta1",
    show_default=True,
    help="The version of MPIJob with `--backend kubeflow`: v2beta1 of the MPI operator, or v1 of "
    "the training operator. A cluster has one of them.",
)
@output_option("How to print the objects.", ("yaml", "json"))
def command(
    filenames: tuple[Path, ...], backend_name: str, namespace: str, mpijob: str, output: str
) -> None:
    """Print a Run as the object of another engine, which needs no Fairlead in the cluster.

    The engine connects the replicas; on a JobSet, variables in the template do. Layers, placement
    and resources of the Run are in the object; policies are not. A field that the engine does not
    have is an error. Unset fields are left out, so the engine's own defaults hold.

    \b
    Examples:
      fairlead run render -f run.yaml --backend kubeflow | kubectl apply -f -
      fairlead run render -f run.yaml --backend jobset -n research
      fairlead run render -f runs/ --backend kubeflow -o json | jq '.items[].kind'

    \b
    Exit codes:
      0  the objects are printed
      1  a Run is wrong, or the engine cannot run it, or a file cannot be read
      2  wrong usage
    """
    from webhook.run.backends.table import BACKENDS, NATIVE
    from webhook.run.backends.training_operator import MPIJOB_VERSIONS, Kubeflow
    from webhook.run_client.run_files import read_rendered
    from webhook.strict import guess

    if backend_name == NATIVE:
        raise click.UsageError(
            "--backend native: Fairlead's controller creates pods and needs no other object; "
            "fairlead preview -o pods shows them"
        )
    if backend_name not in BACKENDS:
        hint = guess(backend_name, tuple(BACKENDS))
        backend_names = ", ".join(BACKENDS)
        raise click.UsageError(f"--backend {backend_name}: want one of {backend_names}{hint}")
    backend = BACKENDS[backend_name]
    if mpijob != MPIJOB_VERSIONS[0]:
        if backend_name != Kubeflow.name:
            raise click.UsageError(f"--mpijob {mpijob} is for --backend {Kubeflow.name}; remove it")
        backend = Kubeflow(mpijob)
    rendered_runs = read_rendered(filenames, backend, namespace)
    print_notes(str(warning) for rendered_run in rendered_runs for warning in rendered_run.warnings)
    manifests = [manifest for rendered_run in rendered_runs for manifest in rendered_run.manifests]
    print_result(output, json=lambda: as_one(manifests), yaml=lambda: manifests)
