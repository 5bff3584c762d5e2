"""`fairlead run suspend`, `resume`, `start`, `delete`: change Runs, one after the other."""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from webhook import names
from webhook.cli.exit_codes import DONE, code_of
from webhook.cli.output import TABLE_FORMS, output_option, print_error, print_notes
from webhook.cli.run.cluster import several_options
from webhook.cli.run.list import print_runs
from webhook.cli.short_help import Command
from webhook.errors import FairleadError, UnreadableInput
from webhook.run_client.find_runs import find_runs, list_pods
from webhook.run_client.rows import reference
from webhook.run_client.submit import run_path
from webhook.times import to_microsecond

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from webhook.api_paths import ObjectPath
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.questions.live.live_objects import NoSuchObject
    from webhook.run_client.find_runs import Targets

    # Changes a raw Run at its path.
    Change: TypeAlias = Callable[[Client, ObjectPath, Mapping[str, Any]], Awaitable[Any]]
    # What --queued does: of which Runs, and its help.
    Queued: TypeAlias = tuple[Change, Callable[[Mapping[str, Any]], bool], str]

# Seconds between two looks, and until a deletion is given up.
LOOK_SECONDS: Final = 0.5
DELETION_TIMEOUT_SECONDS: Final = 600.0
_HELP = """{verb} Runs by name or label. {about}

\b
Examples:
  fairlead run {name} mnist
  fairlead run {name} -l team=vision
{more}
\b
Exit codes:
  0  {done}
  1  {no}
  2  wrong usage, no such Run, or the cluster refused or did not answer: the others are {done}
  130  ended by Ctrl-C: some may be {done}
"""


_QUEUED = (
    "Only Runs that wait in a queue of Kueue: they lose their places. An older controller knows no "
    "queues and would start them. `fairlead run resume --queued` resumes exactly these."
)


def _command(
    name: str,
    done: str,
    about: str,
    change: Change,
    *,
    waiting: Change | None = None,
    in_queue: Queued | None = None,
    no: str = "the Run is over",
) -> click.Command:
    """Return a command; with `waiting` it has an option to return when all is done, with `in_queue`
    one for the Runs of queues. no: what is wrong with a Run that cannot be changed so.
    """
    more = f"  fairlead run {name} --queued -A\n" if in_queue else ""
    text = _HELP.format(name=name, verb=name.title(), done=done, about=about, more=more, no=no)

    @click.command(name, help=text, cls=Command)
    @several_options
    @click.option("--all", "everything", is_flag=True, help="All Runs of the namespace.")
    @output_option(
        "Print the Runs as they are then; name: only their names.",
        TABLE_FORMS[1:],
        tables=True,
        default=None,
    )
    def command(
        targets: Targets,
        kubeconfig: Kubeconfig,
        everything: bool,
        output: str | None,
        wait: bool = False,
        queued: bool = False,
    ) -> None:
        if not (targets.are_chosen or everything or queued):
            ways = "--all, or --queued" if in_queue else "or --all"
            raise click.UsageError(f"give names, --selector, {ways}")
        if targets.are_chosen and everything:
            raise click.UsageError("--all is for all Runs: give names or --selector, or --all")
        suffix = "" if output else f" {done}"
        chosen = waiting if wait and waiting else change
        wanted: Callable[[Mapping[str, Any]], bool] = _every
        if queued and in_queue:
            chosen, wanted, _ = in_queue

        async def change_all(client: Client) -> int:
            changed, code = await _change_each(client, targets, suffix, chosen, wanted)
            if output:
                print_runs(changed, output, everywhere=not targets.namespace)
            return code

        sys.exit(kubeconfig.ask(change_all))

    if in_queue:
        return click.option("--queued", is_flag=True, help=in_queue[2])(command)
    if waiting:
        about_it = "Return when they and their pods are gone; after ten minutes with an error."
        return click.option("--wait", is_flag=True, help=about_it)(command)
    return command


async def _change_each(
    client: Client,
    targets: Targets,
    suffix: str,
    change: Change,
    wanted: Callable[[Mapping[str, Any]], bool],
) -> tuple[list[dict[str, Any]], int]:
    """Change each Run that is wanted, and print its name as kubectl does, unless `suffix` is empty.

    Return those that were changed, and the exit code: the greatest of all errors.
    """
    absent: list[NoSuchObject] = []
    runs = [run for run in await find_runs(client, targets, absent) if wanted(run)]
    changed, code = [], max(map(code_of, absent), default=DONE)
    if not runs and not absent:
        print_notes(["there are no such Runs"])
    for run in runs:
        metadata = run["metadata"]
        try:
            answer = await change(client, run_path(metadata["namespace"], metadata["name"]), run)
        except FairleadError as error:
            print_error(error)
            code = max(code, code_of(error))
        else:
            is_run = isinstance(answer, dict) and answer.get("kind") == names.RUN_KIND
            changed.append(answer if is_run else run)
            same = is_run and all(
                answer["metadata"].get(field) == metadata.get(field)
                for field in ("generation", "annotations")
            )
            if suffix:
                click.echo(f"{reference(run)}{' unchanged' if same else suffix}")
    for missing in absent:
        print_error(missing)
    return changed, code


def _every(_run: Mapping[str, Any]) -> bool:
    return True


def _suspending(wanted: bool, mark: str | None = None) -> Change:
    """Return what suspends or resumes a Run. mark: the value of its label SUSPENDED then."""

    async def change(client: Client, path: ObjectPath, run: Mapping[str, Any]) -> Any:
        """Patch the Run. Raises UnreadableInput if it is over."""
        phase = (run.get("status") or {}).get("phase")
        name, labels = run["metadata"]["name"], run["metadata"].get("labels") or {}
        if phase in names.TERMINAL_PHASES:
            where = run["metadata"]["namespace"]
            cure = f"to try it again, give: fairlead run retry {name} -n {where}"
            raise UnreadableInput([f"run {name} is over ({phase}); {cure}"])
        patch: dict[str, Any] = {"spec": {"suspend": wanted}}
        if labels.get(names.SUSPENDED) != mark:
            patch["metadata"] = {"labels": {names.SUSPENDED: mark}}
        return await client.patch(path, patch, "merge")

    return change


def _waits(run: Mapping[str, Any]) -> bool:
    # They take time to be imported; --help does not need them.
    from webhook.run.queue import waits_in_queue
    from webhook.run.reading import read_run

    parsed_run = read_run(run).run
    if parsed_run is None and names.KUEUE_QUEUE in (run["metadata"].get("labels") or {}):
        where = f"{run['metadata']['namespace']}/{run['metadata']['name']}"
        print_notes([f"run {where} is in a queue, and this version cannot read its spec"])
    return parsed_run is not None and waits_in_queue(parsed_run)


def _was_suspended_in_queue(run: Mapping[str, Any]) -> bool:
    labels = run["metadata"].get("labels") or {}
    return bool(
        labels.get(names.SUSPENDED) == names.SUSPENDED_IN_QUEUE and run["spec"].get("suspend")
    )


suspend = _command(
    "suspend",
    "suspended",
    "Their pods are deleted, and their counts are kept: `fairlead run resume` starts them again.",
    _suspending(True),
    in_queue=(
        _suspending(True, names.SUSPENDED_IN_QUEUE),
        _waits,
        _QUEUED,
    ),
)
resume = _command(
    "resume",
    "resumed",
    "Their pods are created again.",
    _suspending(False),
    in_queue=(
        _suspending(False),
        _was_suspended_in_queue,
        "Only Runs that `fairlead run suspend --queued` suspended, and nobody resumed.",
    ),
)


async def _start_now(client: Client, path: ObjectPath, run: Mapping[str, Any]) -> Any:
    """Ask for a start without a pause. Raises UnreadableInput if the Run waits for none."""
    name, gang = run["metadata"]["name"], (run.get("status") or {}).get("gang") or {}
    if not (run.get("spec") or {}).get("gang"):
        raise UnreadableInput([f"run {name} has no spec.gang: each replica starts by itself"])
    if gang.get("state") != "Waiting":
        state = gang.get("state") or "not reconciled yet"
        raise UnreadableInput([f"run {name} does not wait for a start: it is {state}"])
    now = to_microsecond(datetime.now(UTC))
    return await client.patch(path, {"metadata": {"annotations": {names.START_NOW: now}}}, "merge")


start = _command(
    "start",
    "asked to start",
    "They start all at once (`spec.gang`), and have paused after a try in which some replicas had "
    "no node. It is tried again now.",
    _start_now,
    no="the Run waits for no start",
)


async def _delete(client: Client, path: ObjectPath, _run: Mapping[str, Any]) -> None:
    await client.delete(path, {"propagationPolicy": "Background"})


async def _delete_and_wait(client: Client, path: ObjectPath, run: Mapping[str, Any]) -> None:
    """Return when the Run and its pods are gone. Raises UnreadableInput if that takes long."""
    await _delete(client, path, run)
    end = time.monotonic() + DELETION_TIMEOUT_SECONDS
    while left := await _left(client, path, run):
        if time.monotonic() > end:
            raise UnreadableInput([f"run {run['metadata']['name']} is deleted, and its {left}"])
        await asyncio.sleep(LOOK_SECONDS)


async def _left(client: Client, path: ObjectPath, run: Mapping[str, Any]) -> str:
    """Return what of the Run is not gone, with the command that shows it; empty if nothing is."""
    name, namespace, uid = (run["metadata"][key] for key in ("name", "namespace", "uid"))
    live_run = await client.find(path)
    if live_run and live_run["metadata"]["uid"] == uid:
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
    waiting=_delete_and_wait,
)
