"""`fairlead audit`: what policies under Audit would have done to pods."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.cli.cluster_options import client_of, cluster_options
from webhook.cli.output_option import output_option

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.audited.from_log import Log
    from webhook.audited.tally import Record
    from webhook.kube.client import Client

_FILE = click.Path(exists=True, path_type=Path, allow_dash=True, dir_okay=False)


@click.command("audit")
@click.option(
    "--audit-log",
    "logs",
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="The API server's audit log, a JSON event a line, or - for standard input. Repeatable.",
)
@click.option(
    "--metrics",
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="What a replica tells at /metrics, or - for standard input. Repeatable, a file a replica.",
)
@cluster_options
@output_option()
@click.pass_context
def command(
    ctx: click.Context,
    logs: tuple[Path, ...],
    metrics: tuple[Path, ...],
    kubeconfig: Path | None,
    context: str,
    output: str,
) -> None:
    """Sum up, by namespace and policy, what policies under Audit would have done.

    A policy is under Audit by `enforcement: Audit`, or outside the namespaces of its `rollout`.
    Without a file the replicas in the cluster are asked for their metrics, which count since each
    of them began. The audit log goes back further, names pods, and has the message that each author
    would have got; pods by generateName have no name there. A pod that several such policies match
    is counted for each of them.

    \b
    Examples:
      fairlead audit                              since the replicas began
      fairlead audit --audit-log audit.log        with pods and messages
      zcat audit-*.gz | fairlead audit --audit-log - -o json

    \b
    Exit codes:
      0  no pod would have been rejected
      1  some would have been
      2  not known: wrong usage, a file that is not the audit log or without answers of the webhook,
         lines that cannot be read, pods that were created without its answer, or the cluster did
         not answer
    """
    import json

    from webhook.audited.tally import tally
    from webhook.cli.audit_text import document, lines
    from webhook.cli.failing import fail
    from webhook.errors import FairleadError

    for given in (logs, metrics):
        if twice := next((each for each in given if given.count(each) > 1), None):
            raise click.UsageError(f"{twice}: given twice; its pods would be counted twice")
    if logs and metrics:
        raise click.UsageError("give --audit-log or --metrics: both count the same pods")
    try:
        log = _from_logs(logs) if logs else None
        if log is not None:
            records = log.records
        elif metrics:
            records = list(_from_metrics(metrics))
        else:
            records = asyncio.run(_from_cluster(kubeconfig, context))
    except FairleadError as error:
        fail(error, 2)
    rows = tally(records)
    if output == "json":
        click.echo(json.dumps(document(rows, log), indent=2, ensure_ascii=False))
    else:
        for line in lines(rows, log):
            click.echo(line)
    if any(row.rejects for row in rows):
        ctx.exit(1)
    ctx.exit(2 if log is not None and (log.failed_open or log.unread) else 0)


def _from_logs(paths: Sequence[Path]) -> Log:
    from webhook.audited.from_log import Log, NoAnswer

    log = Log()
    for path in paths:
        with click.open_file(str(path), "rb") as file:
            try:
                log.read(file, str(path))
            except NoAnswer as error:
                raise NoAnswer(f"{path}: {error}") from None
    log.check()
    return log


def _from_metrics(paths: Sequence[Path]) -> Iterator[Record]:
    from webhook.audited import from_metrics

    for path in paths:
        with click.open_file(str(path), encoding="utf-8", errors="replace") as file:
            try:
                yield from from_metrics.records(file.read())
            except from_metrics.NoMetrics as error:
                raise from_metrics.NoMetrics(f"{path}: {error}") from None


async def _from_cluster(kubeconfig: Path | None, context: str) -> list[Record]:
    from webhook.audited import from_metrics

    async with client_of(kubeconfig, context) as client:
        texts = await read_metrics(client)
    return [record for text in texts for record in from_metrics.records(text)]


async def read_metrics(client: Client) -> Sequence[str]:
    """The metrics of each replica that runs, as text. Raises ClusterError, also if none runs."""
    # The Kubernetes client takes its time to be imported.
    from webhook.kube.replicas import NoReplica, read_by_replica

    try:
        return [*(await read_by_replica(client)).values()]
    except NoReplica as error:
        raise NoReplica(f"{error}; --audit-log reads the API server's audit log instead") from error
