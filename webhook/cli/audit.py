"""`fairlead audit`: report what policies under Audit would have done."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.cli.exit_codes import DONE, FAILED, UNKNOWN, errors_exit
from webhook.cli.layout import table, wrapped
from webhook.cli.options import client_of, cluster_options
from webhook.cli.output import output_option, print_result
from webhook.shortening import harmless, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.audited import Log, Record, Row
    from webhook.kube.client import Client

_FILE = click.Path(exists=True, path_type=Path, allow_dash=True, dir_okay=False)
_TITLES = ("NAMESPACE", "POLICY", "WOULD REJECT", "WOULD CHANGE", "THE SAME", "")


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
    help="The output of /metrics of a replica, or - for standard input. Repeatable: one "
    "file for each replica.",
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
    """Show what policies under Audit would have done, by namespace and policy.

    A policy is under Audit by `enforcement: Audit`, or outside the namespaces of its `rollout`.
    Without a file, the command reads the metrics of the replicas in the cluster, which count since
    the start of each replica. The audit log goes back further, names pods, and has the message
    that each author would have received; pods with generateName have no name there. A pod that
    several such policies match is counted for each of them. Metrics count a pod twice if different
    replicas answered the API server's two calls about it; the audit log has the first answer.

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
    from webhook.audited import tally

    for given in (logs, metrics):
        if twice := next((each for each in given if given.count(each) > 1), None):
            raise click.UsageError(f"{twice}: given twice; its pods would be counted twice")
    if logs and metrics:
        raise click.UsageError("give --audit-log or --metrics: both count the same pods")
    with errors_exit(UNKNOWN):
        log = _from_logs(logs) if logs else None
        if log is not None:
            records = log.records
        elif metrics:
            records = list(_from_metrics(metrics))
        else:
            records = asyncio.run(_from_cluster(kubeconfig, context))
    rows = tally(records)
    print_result(output, json=lambda: document(rows, log), text=lambda: lines(rows, log))
    if any(row.rejects for row in rows):
        ctx.exit(FAILED)
    unknown = log is not None and (log.failed_open or log.unread or log.unanswered.count)
    ctx.exit(UNKNOWN if unknown else DONE)


def _from_logs(paths: Sequence[Path]) -> Log:
    from webhook.audited import Log, NoAnswer

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
    from webhook.audited import NoMetrics, records_of_metrics

    for path in paths:
        with click.open_file(str(path), encoding="utf-8", errors="replace") as file:
            try:
                yield from records_of_metrics(file.read())
            except NoMetrics as error:
                raise NoMetrics(f"{path}: {error}") from None


async def _from_cluster(kubeconfig: Path | None, context: str) -> list[Record]:
    from webhook.audited import records_of_metrics

    async with client_of(kubeconfig, context) as client:
        texts = await read_metrics(client)
    return [record for text in texts for record in records_of_metrics(text)]


async def read_metrics(client: Client) -> Sequence[str]:
    """Return the metrics of each replica that runs, as text. Raises ClusterError, also if none
    runs.
    """
    # The Kubernetes client takes its time to be imported.
    from webhook.kube.webhook_replicas import NoReplica, read_by_replica

    try:
        return [*(await read_by_replica(client)).values()]
    except NoReplica as error:
        raise NoReplica(f"{error}; --audit-log reads the API server's audit log instead") from error


def lines(rows: Sequence[Row], log: Log | None) -> Iterator[str]:
    """Yield a table, and below it what those would have been told that would have been rejected.

    `log` is what the rows are from, unless they are from metrics.
    """
    if log is not None:
        yield f"Pods created in the log: {log.created}; decided on by Fairlead: {log.decided}."
    if log is not None and log.failed_open:
        missing = f"Created without an answer, because the webhook failed open: {log.failed_open}."
        yield click.style(f"{missing} They are not counted below.", fg="yellow")
    if log is not None and (passed := log.unanswered).count:
        more = ", …" if passed.count > len(passed.names) else ""
        named = f"{', '.join(map(one_line, passed.names))}{more}"
        missing = f"Pods of runs that Fairlead was not asked about: {passed.count} ({named})."
        yield click.style(f"{missing} They are not counted below: fairlead doctor.", fg="yellow")
    if log is not None and log.unread:
        more = ", …" if log.unread > len(log.unread_at) else ""
        where = f"{', '.join(map(one_line, log.unread_at))}{more}"
        lines_ = "1 line" if log.unread == 1 else f"{log.unread} lines"
        missing = f"Not read, cut off or not an audit event: {lines_} ({where})."
        yield click.style(f"{missing} They are not counted below.", fg="yellow")
    if not rows:
        yield "No policy under Audit has matched a pod."
        return
    # A pod was recorded before the API server validated its name.
    cells = [
        (
            one_line(row.namespace),
            one_line(row.policy),
            _red(row.rejects),
            str(row.changes),
            str(row.same),
            "",
        )
        for row in rows
    ]
    yield from table([_TITLES, *cells], 0)
    for row in rows:
        if row.reasons:
            yield ""
            pods = f" ({', '.join(map(one_line, row.pods))})" if row.pods else ""
            yield f"{one_line(row.policy)} in {one_line(row.namespace)}{pods}:"
            for reason in row.reasons:
                yield from (f"  {line}" for line in wrapped(harmless(reason), 2))


def document(rows: Sequence[Row], log: Log | None) -> dict[str, object]:
    """Return the same as JSON."""
    pods = log and {
        "created": log.created,
        "decided": log.decided,
        "failedOpen": log.failed_open,
        "unanswered": {"pods": log.unanswered.count, "names": log.unanswered.names},
        "unreadLines": log.unread,
    }
    return {
        "log": pods,
        "rows": [
            {
                "namespace": row.namespace,
                "policy": row.policy,
                "rejects": row.rejects,
                "changes": row.changes,
                "same": row.same,
                "pods": row.pods,
                "reasons": row.reasons,
            }
            for row in rows
        ],
    }


def _red(count: int) -> str:
    return click.style(str(count), fg="red") if count else "0"
