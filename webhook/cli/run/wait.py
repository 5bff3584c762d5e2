"""`fairlead run wait`: wait until a Run is in a phase, or has a condition."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Final, get_args

import click

from webhook.cli.exit_codes import DONE, FAILED, INTERRUPTED
from webhook.cli.options import Duration
from webhook.cli.output import say
from webhook.cli.run.cluster import RunName, target_options
from webhook.run.model.status import Phase

if TYPE_CHECKING:
    from webhook.cli.options import Kubeconfig
    from webhook.cli.run.following import Ending
    from webhook.kube.client import Client
    from webhook.run.model import RunStatus

LATE: Final = 3
GONE: Final = 4
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
            statuses = {each.lower(): each for each in ("True", "False", "Unknown")}
            if (status or "True").lower() not in statuses:
                self.fail(f"{status!r} is not one of {', '.join(statuses.values())}", param, ctx)
            return kind, statuses[(status or "True").lower()]
        phases = {each.lower(): each for each in (*get_args(Phase), _ENDED)}
        found = phases.get((text if word == "phase" else str(value)).lower())
        if found is None:
            wanted = f"{', '.join(phases.values())}, or condition=TYPE[=STATUS]"
            self.fail(f"{value!r} is not one of {wanted}", param, ctx)
        return found, ""


@click.command("wait")
@click.argument("name", type=RunName())
@click.option(
    "--for",
    "goal",
    type=Goal(),
    default=_ENDED,
    show_default=True,
    metavar="PHASE",
    help="A phase, such as Running; `ended` for Succeeded or Failed; or condition=TYPE[=STATUS].",
)
@click.option(
    "--timeout",
    type=Duration(timedelta(seconds=1), timedelta(days=30)),
    metavar="TIME",
    help="Give up after this time, such as 90s or 2h. Default: never.",
)
@target_options
def command(
    name: str,
    goal: tuple[str, str],
    timeout: timedelta | None,
    namespace: str,
    kubeconfig: Kubeconfig,
) -> None:
    """Wait for the Run NAME, and say meanwhile what it waits for.

    \b
    Examples:
      fairlead run wait mnist
      fairlead run wait mnist --for Running --timeout 10m
      fairlead run wait mnist --for condition=Ready

    \b
    Exit codes:
      0  it is as wanted; with `ended`: it succeeded
      1  it failed, it ended otherwise, or the cluster did not answer
      2  wrong usage
      3  the time was over
      4  the Run is deleted, or was never there
      130  ended by Ctrl-C
    """
    from webhook.cli.live.live_objects import NoSuchObject
    from webhook.cli.run.cluster import fetch_run
    from webhook.cli.run.following import follow

    wanted, condition = goal
    within = namespace or kubeconfig.namespace()

    def reached(status: RunStatus) -> bool:
        if condition:
            return any((each.type, each.status) == goal for each in status.conditions)
        return status.ended if wanted == _ENDED else status.phase == wanted

    async def ask(client: Client) -> Ending:
        await fetch_run(client, within, name)
        seconds = timeout.total_seconds() if timeout else None
        return await follow(client, within, name, reached, timeout=seconds)

    try:
        ending = kubeconfig.ask(ask)
    except NoSuchObject as error:
        say("error", str(error))
        sys.exit(GONE)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    if ending.how == "gone":
        say("error", f"run {name} was deleted")
        sys.exit(GONE)
    if ending.how == "late":
        what = f"{wanted}={condition}" if condition else wanted
        say("error", f"run {name}: {ending.status.phase}, not {what}, after the time")
        sys.exit(LATE)
    failed = wanted == _ENDED and ending.status.phase == "Failed"
    sys.exit(FAILED if ending.how == "ended" or failed else DONE)
