"""`fairlead run logs`: print the logs of a Run's replicas."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import click

from webhook.cli.exit_codes import FAILED, INTERRUPTED
from webhook.cli.output import print_error
from webhook.cli.run.cluster import fetch_run, find_runs, list_pods, several_options
from webhook.errors import FairleadError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.cli.options import Kubeconfig
    from webhook.cli.run.cluster import Targets
    from webhook.cli.run.log_reading import LogSelection, Source
    from webhook.kube.client import Client
    from webhook.run.model import RunStatus


@click.command("logs")
@several_options
@click.option("--role", metavar="ROLE", help="Only the replicas of this role, such as worker.")
@click.option(
    "--index", type=click.IntRange(0), metavar="N", help="Only the replicas of this index."
)
@click.option(
    "-c",
    "--container",
    default="",
    metavar="NAME",
    help="The container. Default: the main container.",
)
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="Go on until the Run ends, with the logs of pods that come later too.",
)
@click.option(
    "--tail",
    type=click.IntRange(0),
    metavar="N",
    help="Only so many of the last lines of each log. Default: all.",
)
def command(
    targets: Targets,
    kubeconfig: Kubeconfig,
    role: str | None,
    index: int | None,
    container: str,
    follow: bool,
    tail: int | None,
) -> None:
    """Print the logs of Runs by name or label, each line with its replica in front.

    Without --follow one replica's log comes after the other's, by role and index. With it lines
    come as they are written, each replica's in order; up to 64 replicas can be followed. Replicas
    without a log are reported on stderr, with the reason. Of several Runs each line has the Run in
    front too.

    \b
    Examples:
      fairlead run logs mnist
      fairlead run logs -l team=vision --tail 1
      fairlead run logs mnist --role worker --index 2 --tail 50
      fairlead run logs mnist -f | grep loss

    \b
    Exit codes:
      0  every log that is there was printed
      1  no such Run or replica, no log at all, or one that could not be read to its end
      2  wrong usage
    """
    from webhook.cli.run.log_reading import LogSelection

    if not targets.are_chosen:
        raise click.UsageError("give names or --selector")
    wanted = LogSelection(role, index, container)
    try:
        fine = kubeconfig.ask(
            lambda client: _print_each(client, targets, wanted, follow=follow, tail=tail)
        )
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    if not fine:
        sys.exit(FAILED)


async def _print_each(
    client: Client, targets: Targets, wanted: LogSelection, *, follow: bool, tail: int | None
) -> bool:
    """Print the logs of each Run; whether every one could be read, and each had one."""
    from webhook.cli.live.live_objects import NoSuchObject
    from webhook.cli.run.log_reading import FOLLOWED

    runs = await find_runs(client, targets)
    if not runs:
        raise NoSuchObject("there are no such Runs")
    turns = asyncio.Semaphore(len(runs) if follow else 1)

    async def print_one(run: Mapping[str, Any]) -> bool:
        namespace, name = run["metadata"]["namespace"], run["metadata"]["name"]
        label = "" if len(runs) == 1 else f"{name}/"
        async with turns:
            try:
                return await print_logs(
                    client,
                    namespace,
                    name,
                    wanted,
                    follow=follow,
                    tail=tail,
                    label=label if targets.namespace or not label else f"{namespace}/{label}",
                    most=FOLLOWED // len(runs),
                )
            except FairleadError as error:
                if len(runs) == 1:
                    raise
                print_error(error)
                return False

    return all(await asyncio.gather(*map(print_one, runs)))


async def print_logs(
    client: Client,
    namespace: str,
    name: str,
    wanted: LogSelection,
    *,
    follow: bool,
    tail: int | None,
    label: str = "",
    most: int | None = None,
) -> bool:
    """Print the logs; whether every one could be read, and there was one.

    label: what is in front of each replica. most: how many logs may be followed.
    """
    from webhook.cli.run.log_reading import (
        FOLLOWED,
        LogReader,
        Prefixes,
        check_selection,
        without_pods,
    )
    from webhook.run.model import RunStatus

    most = FOLLOWED if most is None else most
    run = await fetch_run(client, namespace, name)
    status = RunStatus.model_validate(run.get("status") or {})
    check_selection(run, status, wanted)
    found = await find_sources(client, namespace, run, wanted)
    missing = list(without_pods(status, found, wanted))
    for replicas, why in missing:
        click.echo(f"{label}{replicas}: {why}", err=True)
    if follow and len(found) > most:
        raise FairleadError(
            f"run {name}: {len(found)} logs are too many to follow, {most} can be at a"
            " time: choose some by --role and --index, or leave --follow"
        )
    if not found and not follow:
        if not missing:
            click.echo(f"run {name}: there are no pods yet", err=True)
        return False

    async def look() -> tuple[list[Source], bool]:
        return await _now(client, namespace, run, wanted)

    names = [*(source.name for source in found), *_names(status, wanted)]
    prefixes = Prefixes(
        [f"{label}{each}" for each in names],
        coloured=sys.stdout.isatty() and "NO_COLOR" not in os.environ,
    )
    reader = LogReader(client, namespace, tail)
    fine = True
    async with aclosing(reader.follow(look) if follow else reader.read(found)) as pieces:
        async for piece in pieces:
            replica = f"{label}{piece.source.name}"
            if piece.lines:
                # The lines' own colours are theirs, wherever they go.
                text = prefixes.prefixed(replica, piece.lines)
                click.echo(text, nl=False, color=True)
            if piece.problem:
                click.echo(f"{replica}: {piece.problem}", err=True)
                fine = fine and not piece.failed
    return fine


async def find_sources(
    client: Client, namespace: str, run: Mapping[str, Any], wanted: LogSelection
) -> list[Source]:
    """Return the selected logs that there are now."""
    from webhook.cli.run.log_reading import sources_of
    from webhook.run.backends.engine_pods import pod_reader

    pods = await list_pods(client, namespace, run, lambda pod: pod)
    return sources_of(pod_reader(run, run["spec"].get("replicas") or {}), pods, wanted)


async def _now(
    client: Client, namespace: str, run: Mapping[str, Any], wanted: LogSelection
) -> tuple[list[Source], bool]:
    """Return the logs there are now, and whether no more will come: the run has ended, or is
    gone."""
    from webhook.cli.live.live_objects import NoSuchObject

    try:
        # First the run: a pod that ended before it is in the list then.
        current = await fetch_run(client, namespace, run["metadata"]["name"])
    except NoSuchObject:
        return [], True
    gone = current["metadata"]["uid"] != run["metadata"]["uid"]
    phase = (current.get("status") or {}).get("phase")
    found = await find_sources(client, namespace, run, wanted)
    return found, gone or phase in ("Succeeded", "Failed")


def _names(status: RunStatus, wanted: LogSelection) -> list[str]:
    """Return the longest names that may come; prefixes are made as wide."""
    return [
        f"{role}-{counts.desired - 1}"
        for role, counts in status.replicas.items()
        if wanted.role in (None, role)
    ]
