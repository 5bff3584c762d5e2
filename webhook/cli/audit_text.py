"""The answer of `fairlead audit`, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.cli.harmless import harmless, one_line
from webhook.cli.layout import table, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.audited.from_log import Log
    from webhook.audited.tally import Row

_TITLES = ("NAMESPACE", "POLICY", "WOULD REJECT", "WOULD CHANGE", "THE SAME", "")


def lines(rows: Sequence[Row], log: Log | None) -> Iterator[str]:
    """A table, and below it what those would have been told that would have been rejected.

    `log` is what the rows are from, unless they are from metrics.
    """
    if log is not None:
        yield f"Pods created in the log: {log.created}; decided on by Fairlead: {log.decided}."
    if log is not None and log.failed_open:
        missing = f"Created without an answer, for the webhook failed open: {log.failed_open}."
        yield click.style(f"{missing} They are not counted below.", fg="yellow")
    if log is not None and log.unread:
        more = ", …" if log.unread > len(log.unread_at) else ""
        where = f"{', '.join(map(one_line, log.unread_at))}{more}"
        lines_ = "1 line" if log.unread == 1 else f"{log.unread} lines"
        missing = f"Not read, cut or no audit event: {lines_} ({where})."
        yield click.style(f"{missing} What they tell is not counted below.", fg="yellow")
    if not rows:
        yield "No policy under Audit has matched a pod."
        return
    # A pod was recorded before the API server looked at its name.
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
    """The same as JSON."""
    pods = log and {
        "created": log.created,
        "decided": log.decided,
        "failedOpen": log.failed_open,
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
