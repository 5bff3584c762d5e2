"""`fairlead run logs`: print the logs of a Run's replicas."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.color import color_option, has_color
from webhook.cli.exit_codes import DONE, FAILED, code_of
from webhook.cli.output import print_error
from webhook.cli.run.cluster import several_options
from webhook.cli.short_help import Command
from webhook.errors import FairleadError
from webhook.questions.completion import members_of
from webhook.run_client.find_runs import fetch_run, find_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.run.model import RunStatus
    from webhook.run_client.find_runs import Targets
    from webhook.run_client.log_sources import LogSelection, Source

_COLOURS: Final = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green")


@click.command("logs", cls=Command)
@several_options
@color_option(hidden=True)
@click.option(
    "--role",
    metavar="ROLE",
    shell_complete=members_of("webhook.names", "ROLES"),
    help="Only the replicas of this role, such as worker.",
)
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
    help="Print the last N lines of each log. Default: all.",
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
      1  no such replica, no log at all, or one that could not be read to its end
      2  wrong usage, no such Run, or the cluster did not answer
      130  ended by Ctrl-C
    """
    from webhook.run_client.log_sources import LogSelection

    if not targets.are_chosen:
        raise click.UsageError("give names or --selector")
    wanted = LogSelection(role, index, container)
    sys.exit(
        kubeconfig.ask(
            lambda client: _print_each(client, targets, wanted, follow=follow, tail=tail)
        )
    )


async def _print_each(
    client: Client, targets: Targets, wanted: LogSelection, *, follow: bool, tail: int | None
) -> int:
    """Print the logs of each Run; return the exit code, the greatest of all errors."""
    from webhook.questions.live.live_objects import NoSuchObject
    from webhook.run_client.log_reading import FOLLOWED

    absent: list[NoSuchObject] = []
    runs = await find_runs(client, targets, absent)
    for error in absent:
        print_error(error)
    if not runs and not absent:
        raise NoSuchObject("there are no such Runs")
    turns = asyncio.Semaphore(max(1, len(runs)) if follow else 1)

    async def print_one(run: Mapping[str, Any]) -> int:
        namespace, name = run["metadata"]["namespace"], run["metadata"]["name"]
        label = "" if len(runs) == 1 else f"{name}/"
        async with turns:
            try:
                whole = await print_logs(
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
                return code_of(error)
            return DONE if whole else FAILED

    return max([*map(code_of, absent), *await asyncio.gather(*map(print_one, runs))], default=DONE)


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
    from datetime import UTC, datetime

    from webhook.run.model import RunStatus
    from webhook.run_client.log_reading import FOLLOWED, LogReader
    from webhook.run_client.log_sources import (
        check_selection,
        describe_status,
        find_sources,
        find_sources_now,
        without_pods,
    )

    most = FOLLOWED if most is None else most
    run = await fetch_run(client, namespace, name)
    status = RunStatus.read(run.get("status"))
    check_selection(run, status, wanted)
    sources = await find_sources(client, namespace, run, wanted)
    for replicas, why in without_pods(status, sources, wanted):
        click.echo(f"{label}{replicas}: {why}", err=True)
    if not any(source.started for source in sources) and not status.ended:
        click.echo(f"run {name}: {describe_status(run, status, datetime.now(UTC))}", err=True)
    if follow and len(sources) > most:
        raise FairleadError(
            f"run {name}: {len(sources)} logs are too many to follow, {most} can be at a time: "
            "choose some by --role and --index, or leave --follow"
        )
    waiting = [] if follow else [source for source in sources if not source.started]
    for source in waiting:
        click.echo(f"{label}{source.name}: {source.waiting}", err=True)
    sources = [source for source in sources if source not in waiting]
    if not sources and not follow:
        return False

    async def look() -> tuple[list[Source], bool]:
        return await find_sources_now(client, namespace, run, wanted)

    names = [*(source.name for source in sources), *_names(status, wanted)]
    prefixes = Prefixes(
        [f"{label}{source_name}" for source_name in names],
        coloured=has_color(sys.stdout),
    )
    reader = LogReader(client, namespace, tail)
    fine = not waiting
    async with aclosing(reader.follow(look) if follow else reader.read(sources)) as pieces:
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


class Prefixes:
    """The names of replicas, of equal width, each in its own colour if there are colours."""

    def __init__(self, names: Iterable[str], *, coloured: bool) -> None:
        self._width = max(map(len, names), default=0)
        self._coloured = coloured
        self._known: dict[str, str] = {}

    def prefixed(self, name: str, lines: Sequence[str]) -> str:
        """`lines` as text, each with the name before it and a newline after it."""
        prefix = self._prefix(name)
        return "".join(f"{prefix} {line}\n" if line else f"{prefix}\n" for line in lines)

    def _prefix(self, name: str) -> str:
        if name not in self._known:
            text = f"{name:<{self._width}} |"
            colour = _COLOURS[len(self._known) % len(_COLOURS)]
            self._known[name] = click.style(text, fg=colour) if self._coloured else text
        return self._known[name]


def _names(status: RunStatus, wanted: LogSelection) -> list[str]:
    """Return the longest names that may come; prefixes are made as wide."""
    return [
        f"{role}-{counts.desired - 1}"
        for role, counts in status.replicas.items()
        if wanted.role in (None, role)
    ]
