"""`fairlead demo`: show Fairlead at work, on loopback or on a real control plane."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli.output import output_option


@click.command("demo")
@click.option(
    "--cluster/--no-cluster",
    default=None,
    help="Run the demo on a real control plane, whose binaries are built if they are missing, or "
    "without one. Default: on a control plane if its binaries are there.",
)
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the demo's files into a new folder, and stop.",
)
@output_option()
def command(cluster: bool | None, save: Path | None, output: str) -> None:
    """Show what the webhook does to seven pods and to a Run of three pods, and why.

    Without a cluster, the webhook answers AdmissionReviews over TLS on loopback. That takes a
    second, and no pod is created. With one, kubectl creates the pods on a real API server, the
    controller creates the Run's pods, the scheduler places them on simulated nodes, and a table
    shows the node of each pod. The first line of the output says which demo it is. Nothing is left
    behind.

    \b
    Examples:
      fairlead demo                   on a control plane if its binaries are there
      fairlead demo --no-cluster
      fairlead demo --cluster         builds missing binaries, in about 8 minutes
      fairlead demo --save mine       write the files of the demo

    \b
    Exit codes:
      0  shown
      1  something could not be started, or did not answer as it should
      2  wrong usage
    """
    from webhook.cli.demo.show import run, save_files

    if save:
        save_files(save)
    else:
        run(cluster, output)
