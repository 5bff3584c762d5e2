"""`fairlead demo`: all of it at work, on loopback or on a real control plane."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli.output_option import output_option


@click.command("demo")
@click.option(
    "--cluster/--no-cluster",
    default=None,
    help="On a real control plane of its own, building its binaries if need be; or without any. "
    "Default: with one if the binaries are there.",
)
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write all of the demo into a new folder, to play with, and stop.",
)
@output_option()
def command(cluster: bool | None, save: Path | None, output: str) -> None:
    """Show the webhook at work: seven pods, before and after, and why; and a Run of three.

    Without a cluster the real webhook gets real AdmissionReviews over TLS on loopback: that takes
    a second, and no pod is created. With one, kubectl creates the pods on a real API server, the
    controller makes the Run's, the real scheduler places them on simulated nodes, and a table says
    which pod went where. Which of the two it is stands at the top. Nothing is left behind.

    \b
    Examples:
      fairlead demo                   with a cluster if its binaries are there, else without
      fairlead demo --no-cluster
      fairlead demo --cluster         builds the binaries, once, in about 8 minutes
      fairlead demo --save mine       all of it as files

    \b
    Exit codes:
      0  shown
      1  something could not be started, or did not answer as it should
      2  wrong usage
    """
    from webhook.cli.demo.show import run, saved

    if save:
        saved(save)
    else:
        run(cluster, as_json=output == "json")
