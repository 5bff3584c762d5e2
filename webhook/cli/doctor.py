"""`fairlead doctor`: what is wrong with an installation, and what to do."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import click

from webhook.cli.cluster_options import client_of, cluster_options
from webhook.cli.failing import fail
from webhook.cli.output_option import output_option
from webhook.errors import FairleadError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webhook.installation.doctor.diagnose import Outcome


@click.command("doctor")
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Look for pods without a stamp here only, and try a pod here. May be repeated. Default: "
    "every namespace; the pod is tried in default.",
)
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="NAME",
    help="Only this check's findings, such as 'unplaced pods'. May be repeated. Default: all.",
)
@cluster_options
@output_option()
@click.pass_context
def command(
    ctx: click.Context,
    namespaces: tuple[str, ...],
    checks: tuple[str, ...],
    kubeconfig: Path | None,
    context: str,
    output: str,
) -> None:
    """Say what is wrong with Fairlead in the cluster, and the cure for each finding.

    It reads the webhook configuration, Deployments and pods, certificates (no key), endpoints,
    policies, permissions and versions; tries a pod of a run by dry run; and finds the pods of runs
    that no policy was applied to, such as those that were created while the webhook did not answer.
    Nothing is changed. An error: pods are refused or go unplaced, now or soon. A warning may become
    one.

    \b
    Examples:
      fairlead doctor
      fairlead doctor -n research -n team-a
      fairlead doctor --check 'unplaced pods'
      fairlead doctor -o json | jq '.findings[] | select(.severity == "error")'

    \b
    Exit codes:
      0  no errors
      1  errors
      2  wrong usage, or the cluster did not answer
    """
    from webhook.cli import doctor_text
    from webhook.installation.doctor.diagnose import CHECKS

    known = [check.name for check in CHECKS]
    for name in checks:
        if name not in known:
            raise click.UsageError(f"--check {name!r} is none of {', '.join(known)}")
    try:
        outcomes = asyncio.run(_run(namespaces, kubeconfig, context))
    except FairleadError as error:
        fail(error, 2)
    if checks and outcomes[0].name in known:
        outcomes = [each for each in outcomes if each.name in checks]
    if output == "json":
        document = doctor_text.document(outcomes)
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        for line in doctor_text.lines(outcomes):
            click.echo(line)
    ctx.exit(1 if doctor_text.errors(outcomes) else 0)


async def _run(
    namespaces: Sequence[str], kubeconfig: Path | None, context: str
) -> Sequence[Outcome]:
    from datetime import UTC, datetime

    import webhook
    from webhook.installation.doctor.diagnose import diagnose
    from webhook.installation.doctor.reading import Reader

    async with client_of(kubeconfig, context) as client:
        seen = await Reader(client).read(datetime.now(UTC), webhook.__version__, namespaces)
    return diagnose(seen)
