"""`fairlead run suspend`, `resume` and `delete`: change several Runs, one after the other."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from webhook import names
from webhook.cli.exit_codes import FAILED
from webhook.cli.output import print_error, print_notes
from webhook.cli.run.cluster import several_options
from webhook.cli.run.list import FORMS, print_runs
from webhook.errors import FairleadError, UnreadableInput
from webhook.run_client.find_runs import find_runs, list_pods
from webhook.run_client.rows import reference
from webhook.run_client.submit import run_path

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from webhook.api_paths import ObjectPath
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.questions.live.live_objects import NoSuchObject
    from webhook.run_client.find_runs import Targets

    # Changes a raw Run at its path.
    Change: TypeAlias = Callable[[Client, ObjectPath, Mapping[str, Any]], Awaitable[Any]]

# Seconds between two looks, and until a deletion is given up.
PERIOD: Final = 0.5
PATIENCE: Final = 600.0
_HELP = """{verb} Runs by name or label. {about}

\b
Examples:
  fairlead run {name} mnist
  fairlead run {name} -l team=vision

\b
Exit codes:
  0  {done}
  1  no such Run, or the cluster refused or did not answer: the others are {done}
  2  wrong usage
  130  ended by Ctrl-C: some may be {done}
"""


def _command(
    name: str, done: str, about: str, change: Change, waiting: Change | None = None
) -> click.Command:
    """Return a command; with `waiting` it has an option to return when all is done."""

    @click.command(name, help=_HELP.format(name=name, verb=name.title(), done=done, about=about))
    @several_options
    @click.option("--all", "everything", is_flag=True, help="All Runs of the namespace.")
    @click.option(
        "-o",
        "--output",
        type=click.Choice(FORMS[1:]),
        help="Print the Runs as they are then; name: only their names.",
    )
    def command(
        targets: Targets,
        kubeconfig: Kubeconfig,
        everything: bool,
        output: str | None,
        wait: bool = False,
    ) -> None:
        if not targets.are_chosen and not everything:
            raise click.UsageError("give names, --selector, or --all")
        if targets.are_chosen and everything:
            raise click.UsageError("--all is for all Runs: give names or --selector, or --all")
        told = "" if output else f" {done}"
        chosen = waiting if wait and waiting else change

        async def change_all(client: Client) -> bool:
            changed, fine = await _change_each(client, targets, told, chosen)
            if output:
                print_runs(changed, output, everywhere=not targets.namespace)
            return fine

        if not kubeconfig.ask(change_all):
            sys.exit(FAILED)

    if waiting:
        about_it = "Return when they and their pods are gone; after ten minutes with an error."
        return click.option("--wait", is_flag=True, help=about_it)(command)
    return command


async def _change_each(
    client: Client, targets: Targets, told: str, change: Change
) -> tuple[list[dict[str, Any]], bool]:
    """Change each Run, and print its name as kubectl does, unless `told` is empty.

    Return those that were changed, and whether all could be.
    """
    absent: list[NoSuchObject] = []
    runs = await find_runs(client, targets, absent)
    changed, fine = [], not absent
    if not runs and fine:
        print_notes(["there are no such Runs"])
    for each in runs:
        metadata = each["metadata"]
        try:
            answer = await change(client, run_path(metadata["namespace"], metadata["name"]), each)
        except FairleadError as error:
            print_error(error)
            fine = False
        else:
            is_run = isinstance(answer, dict) and answer.get("kind") == names.RUN_KIND
            changed.append(answer if is_run else each)
            same = is_run and answer["metadata"]["generation"] == metadata["generation"]
            if told:
                click.echo(f"{reference(each)}{' unchanged' if same else told}")
    for missing in absent:
        print_error(missing)
    return changed, fine


def _suspending(wanted: bool) -> Change:
    async def change(client: Client, path: ObjectPath, run: Mapping[str, Any]) -> Any:
        """Patch the Run. Raises UnreadableInput if it is over."""
        phase = (run.get("status") or {}).get("phase")
        if phase in ("Succeeded", "Failed"):
            name = run["metadata"]["name"]
            raise UnreadableInput([f"run {name} is over ({phase}): create it again to run it"])
        return await client.patch(path, {"spec": {"suspend": wanted}}, "merge")

    return change


suspend = _command(
    "suspend",
    "suspended",
    "Their pods are deleted, and their counts are kept: `fairlead run resume` starts them again.",
    _suspending(True),
)
resume = _command("resume", "resumed", "Their pods are created again.", _suspending(False))


async def _delete(client: Client, path: ObjectPath, _run: Mapping[str, Any]) -> None:
    await client.delete(path, {"propagationPolicy": "Background"})


async def _delete_and_wait(client: Client, path: ObjectPath, run: Mapping[str, Any]) -> None:
    """Return when the Run and its pods are gone. Raises UnreadableInput if that takes long."""
    await _delete(client, path, run)
    end = time.monotonic() + PATIENCE
    while left := await _left(client, path, run):
        if time.monotonic() > end:
            raise UnreadableInput([f"run {run['metadata']['name']} is deleted, and its {left}"])
        await asyncio.sleep(PERIOD)


async def _left(client: Client, path: ObjectPath, run: Mapping[str, Any]) -> str:
    """Return what of the Run is not gone, with the command that shows it; empty if nothing is."""
    name, namespace, uid = (run["metadata"][key] for key in ("name", "namespace", "uid"))
    found = await client.find(path)
    if found and found["metadata"]["uid"] == uid:
        look = f"kubectl get run {name} -n {namespace} -o jsonpath={{.metadata.finalizers}}"
        return f"finalizers are not gone yet: {look}"
    if await list_pods(client, namespace, run, lambda _: True):
        look = f"kubectl get pods -n {namespace} -l {names.RUN_UID}={uid}"
        return f"pods are not gone yet: {look}"
    return ""


delete = _command(
    "delete",
    "deleted",
    "Their pods, and all else that they own, are deleted with them. No Run waits for its pods, not "
    "with kubectl's --cascade=foreground either: --wait does.",
    _delete,
    _delete_and_wait,
)
