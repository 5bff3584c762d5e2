"""`fairlead run suspend`, `resume` and `delete`: change several Runs, one after the other."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from webhook.cli.exit_codes import FAILED
from webhook.cli.output import print_error, print_notes
from webhook.cli.run.cluster import find_runs, several_options
from webhook.cli.run.list import reference
from webhook.cli.run.submit import runs_path
from webhook.errors import FairleadError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from webhook.cli.options import Kubeconfig
    from webhook.cli.run.cluster import Targets
    from webhook.kube.client import Client

    # Changes the Run at a path.
    Change: TypeAlias = Callable[[Client, str], Awaitable[Any]]

_HELP = """{verb} Runs by name or label. {about}

\b
Examples:
  fairlead run {name} mnist
  fairlead run {name} -l team=vision

\b
Exit codes:
  0  {done}
  1  no such Run, or the cluster refused or did not answer: others may be {done}
  2  wrong usage
"""


def _command(name: str, done: str, about: str, change: Change) -> click.Command:
    @click.command(name, help=_HELP.format(name=name, verb=name.title(), done=done, about=about))
    @several_options
    @click.option("--all", "everything", is_flag=True, help="All Runs of the namespace.")
    @click.option("-o", "--output", type=click.Choice(["name"]), help="Print only the names.")
    def command(
        targets: Targets, kubeconfig: Kubeconfig, everything: bool, output: str | None
    ) -> None:
        if not targets.are_chosen and not everything:
            raise click.UsageError("give names, --selector, or --all")
        told = "" if output else f" {done}"
        if not kubeconfig.ask(lambda client: _change_each(client, targets, told, change)):
            sys.exit(FAILED)

    return command


async def _change_each(client: Client, targets: Targets, told: str, change: Change) -> bool:
    """Change each Run, and print its name as kubectl does; whether all could be changed."""
    fine = True
    runs = await find_runs(client, targets)
    if not runs:
        print_notes(["there are no such Runs"])
    for each in runs:
        metadata = each["metadata"]
        try:
            await change(client, runs_path(metadata["namespace"], metadata["name"]))
        except FairleadError as error:
            print_error(error)
            fine = False
        else:
            click.echo(f"{reference(each)}{told}")
    return fine


def _suspending(wanted: bool) -> Change:
    return lambda client, path: client.patch(path, {"spec": {"suspend": wanted}}, "merge")


suspend = _command(
    "suspend",
    "suspended",
    "Their pods are deleted, and their counts are kept: `fairlead run resume` starts them again.",
    _suspending(True),
)
resume = _command("resume", "resumed", "Their pods are created again.", _suspending(False))
delete = _command(
    "delete",
    "deleted",
    "Their pods, and all else that they own, are deleted with them.",
    lambda client, path: client.delete(path, {"propagationPolicy": "Background"}),
)
