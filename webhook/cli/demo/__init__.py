"""`fairlead demo`: show Fairlead at work, on loopback."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli.output import output_option
from webhook.cli.short_help import Command


@click.command("demo", cls=Command)
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the demo's files into a new folder, and stop.",
)
@output_option(report="Demonstration")
def command(save: Path | None, output: str) -> None:
    """Show what the webhook does to seven pods and to a Run of three pods, and why.

    The webhook answers AdmissionReviews over TLS on loopback, as an API server sends them. No pod
    is created, and nothing is left behind. `fairlead sandbox up` runs a real API server.

    \b
    Examples:
      fairlead demo
      fairlead demo --save demo       write the files of the demo

    \b
    Exit codes:
      0  shown
      1  something could not be started, or did not answer as it should
      2  wrong usage
    """
    from webhook.cli.demo import show

    if save:
        show.save(save)
    else:
        show.run(output)
