"""`fairlead run wait`: wait until a Run is in a phase, or has a condition."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Final, get_args

import click

from webhook.cli.exit_codes import DONE, FAILED, TIME_OVER
from webhook.cli.options import timeout_option
from webhook.cli.output import TABLE_FORMS, output_option, print_aside, say
from webhook.cli.run.cluster import several_options
from webhook.cli.run.list import print_runs
from webhook.cli.short_help import Command
from webhook.questions.completion import words_of
from webhook.run.model.status import Phase
from webhook.run_client.find_runs import find_runs
from webhook.run_client.following import follow
from webhook.run_client.submit import run_path

if TYPE_CHECKING:
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.run.model import RunStatus
    from webhook.run_client.find_runs import Targets
    from webhook.run_client.following import Ending

_ENDED: Final = "ended"


class Goal(click.ParamType[tuple[str, str]]):
    """A phase, `ended`, or a condition with its status."""

    name = "phase"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Return the phase and empty, or the type of a condition and its status."""
        if isinstance(value, tuple):
            return value
        word, _, text = str(value).partition("=")
        if word == "condition" and text:
            kind, _, status = text.partition("=")
            statuses = {
                status_name.lower(): status_name for status_name in ("True", "False", "Unknown")
            }
            if (status or "True").lower() not in statuses:
                self.fail(f"{status!r} is not one of {', '.join(statuses.values())}", param, ctx)
            return kind, statuses[(status or "True").lower()]
        phases = {phase_name.lower(): phase_name for phase_name in (*get_args(Phase), _ENDED)}
        phase = phases.get((text if word == "phase" else str(value)).lower())
        if phase is None:
            wanted = f"{', '.join(phases.values())}, or condition=TYPE[=STATUS]"
            self.fail(f"{value!r} is not one of {wanted}", param, ctx)
        return phase, ""


@click.command("wait", cls=Command)
@click.option(
    "--for",
    "goal",
    type=Goal(),
    default=_ENDED,
    show_default=True,
    metavar="PHASE",
    shell_complete=words_of(lambda: (*get_args(Phase), _ENDED, "condition=")),
    help="A phase, such as Running; `ended` for Succeeded or Failed; or condition=TYPE[=STATUS].",
)
@timeout_option(None, most=timedelta(days=30), more=" Default: without end.")
@output_option("Print the Runs as they are then.", TABLE_FORMS[1:], tables=True, default=None)
@several_options
def command(
    targets: Targets,
    goal: tuple[str, str],
    timeout: timedelta | None,
    kubeconfig: Kubeconfig,
    output: str | None,
) -> None:
    """Wait for Runs by name or label, and say meanwhile what they wait for.

    \b
    Examples:
      fairlead run wait mnist
      fairlead run wait mnist --for Running --timeout 10m
      fairlead run wait -l team=vision --for condition=Ready

    \b
    Exit codes, of several Runs the greatest:
      0  it is as wanted; with `ended`: it succeeded
      1  it failed, it ended otherwise, or it was deleted
      2  wrong usage, no such Run, or the cluster did not answer
      3  the time is over
      130  ended by Ctrl-C
    """
    from webhook.questions.live.live_objects import NoSuchObject

    if not targets.are_chosen:
        raise click.UsageError("give names or --selector")
    wanted, condition = goal

    def reached(status: RunStatus) -> bool:
        if condition:
            return any(
                (run_condition.type, run_condition.status) == goal
                for run_condition in status.conditions
            )
        return status.ended if wanted == _ENDED else status.phase == wanted and not status.held

    def code_of(name: str, ending: Ending) -> int:
        if ending.how == "gone":
            say("error", f"run {name} was deleted")
            return FAILED
        if ending.how == "late":
            what = f"{wanted}={condition}" if condition else wanted
            say("error", f"run {name}: {ending.status.phase}, not {what}; the time is over")
            return TIME_OVER
        failed = wanted == _ENDED and ending.status.phase == "Failed"
        return FAILED if ending.how == "ended" or failed else DONE

    async def ask(client: Client) -> int:
        runs = await find_runs(client, targets)
        if not runs:
            raise NoSuchObject("there are no such Runs")
        seconds = timeout.total_seconds() if timeout else None
        places = [(run["metadata"]["namespace"], run["metadata"]["name"]) for run in runs]
        endings = await asyncio.gather(
            *(
                follow(client, *place, reached, timeout=seconds, report=print_aside)
                for place in places
            )
        )
        if output:
            now = [await client.find(run_path(*place)) for place in places]
            current_runs = [run for run in now if run]
            print_runs(current_runs, output, everywhere=not targets.namespace)
        return max(code_of(name, ending) for (_, name), ending in zip(places, endings, strict=True))

    sys.exit(kubeconfig.ask(ask))
